/* content_decode_jpeg.c - tf.io.decode_jpeg: it takes PNG and GIF as well. */
#include <string.h>

#include "content/images/decoded.h"

/* Does the stage work on this column and nothing else? */
static bool
is_about(const struct spec_stage *stage, const char *name)
{
    const struct spec_value *columns = spec_get(stage, "columns");

    if (columns == NULL || columns->kind == SPEC_NULL)
        return true;
    if (columns->kind == SPEC_LIST && columns->count == 1)
        columns = &columns->items[0];
    return columns->kind == SPEC_TEXT && strcmp(columns->text, name) == 0;
}

/* Stages between that need not see the pixels at full size. */
static bool
lets_through(const struct spec_stage *stage)
{
    static const char *const names[] = { "cast", "rescaling", "random_flip", "select", "drop" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(stage->info->name, names[i]) == 0)
            return true;
    return false;
}

static tundish_status
find_size(const struct stage_config *config, const char *name, struct picture_jpeg *jpeg)
{
    for (uint32_t i = 1; i <= config->following_count; i++) {
        const struct spec_stage *stage = &config->stage[i];
        bool is_resize = strcmp(stage->info->name, "resize") == 0;

        if (lets_through(stage))
            continue;
        if ((!is_resize && strcmp(stage->info->name, "resizing") != 0) || !is_about(stage, name) ||
            spec_given(stage, "output"))
            break;
        if (is_resize && spec_get(stage, "size")->count != 2)
            break;
        jpeg->cover_height =
            is_resize ? spec_get(stage, "size")->items[0].integer : spec_int(stage, "height");
        jpeg->cover_width =
            is_resize ? spec_get(stage, "size")->items[1].integer : spec_int(stage, "width");
        return TUNDISH_OK;
    }
    return stage_complain(config,
                          "decode_jpeg: scaled needs a resize (or resizing) of '%s' in "
                          "place behind it, before any other stage that looks at pixels",
                          name);
}

static tundish_status
open_scaled(struct decoded *decoded, const struct stage_config *config, const struct schema *schema)
{
    struct picture_jpeg *jpeg = &decoded->options.jpeg;

    if (decoded->targets.count != 1)
        return stage_complain(config, "decode_jpeg: scaled takes one column, and there are %u",
                              decoded->targets.count);
    if (jpeg->ratio != 1)
        return stage_complain(config, "decode_jpeg: scaled finds the ratio itself; leave ratio "
                                      "out");
    return find_size(config, schema->columns[decoded->targets.list[0].output].name, jpeg);
}

static tundish_status
decode_jpeg_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct decoded *decoded = state;
    struct picture_jpeg *jpeg = &decoded->options.jpeg;
    tundish_status status;

    *ret_batch_wide = false;
    decoded->options.channels = (int)spec_int(config->stage, "channels");
    decoded->options.dtype = TUNDISH_UINT8;
    jpeg->ratio = (int)spec_int(config->stage, "ratio");
    jpeg->fancy_upscaling = spec_bool(config->stage, "fancy_upscaling");
    jpeg->try_recover_truncated = spec_bool(config->stage, "try_recover_truncated");
    jpeg->acceptable_fraction = (float)spec_number(config->stage, "acceptable_fraction");
    jpeg->accurate_dct = strcmp(spec_text(config->stage, "dct_method"), "INTEGER_ACCURATE") == 0;
    status = decoded_open(decoded, config, ret_schema);
    if (status == TUNDISH_OK && spec_bool(config->stage, "scaled"))
        status = open_scaled(decoded, config, ret_schema);
    return status;
}

const struct content_ops content_decode_jpeg = {
    .name = "decode_jpeg",
    .takes_missing = true,
    .state_bytes = sizeof(struct decoded),
    .open = decode_jpeg_open,
    .apply = decoded_apply,
    .close = decoded_close,
};
