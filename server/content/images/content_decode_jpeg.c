/* content_decode_jpeg.c - tf.io.decode_jpeg, which takes PNG and GIF as well. */
#include <string.h>

#include "content/images/decoded_resized.h"
#include "content/images/resized.h"

/* Whether the stage resizes this column alone, in place. */
static bool
resizes(const struct content_step *step, const char *name)
{
    const struct resized *resized = step->state;

    return step->ops->apply == resized_apply_state && resized->takes_all &&
           resized->targets.count == 1 && !spec_given(step->stage, "output") &&
           strcmp(step->input->columns[resized->targets.list[0].input].name, name) == 0;
}

/* The size that the picture must cover: that of the resize that follows. Stages in between must not
 * look at pixels. */
static tundish_status
find_size(struct decoded *decoded, const struct content_step *steps, uint32_t count,
          struct spec_errors *errors)
{
    struct picture_jpeg *jpeg = &decoded->options.jpeg;
    const char *name = steps[0].output->columns[decoded->targets.list[0].output].name;
    uint32_t next = 1;

    while (next < count && steps[next].ops->keeps_pixels)
        next++;
    if (next == count || !resizes(&steps[next], name))
        return spec_complain(errors, steps[0].stage->line, steps[0].stage->column,
                             "decode_jpeg: scaled needs a later resize (or resizing) of '%s' in "
                             "place, before any other stage that reads pixels",
                             name);
    jpeg->cover_height = ((const struct resized *)steps[next].state)->height;
    jpeg->cover_width = ((const struct resized *)steps[next].state)->width;
    return TUNDISH_OK;
}

static tundish_status
decode_jpeg_look_ahead(void *state, const struct content_step *steps, uint32_t count,
                       struct spec_errors *errors, struct content_fused *ret_fused)
{
    tundish_status status =
        spec_bool(steps[0].stage, "scaled") ? find_size(state, steps, count, errors) : TUNDISH_OK;

    return status == TUNDISH_OK ? decoded_look_ahead(state, steps, count, errors, ret_fused)
                                : status;
}

static tundish_status
check_scaled(const struct decoded *decoded, const struct stage_config *config)
{
    if (decoded->targets.count != 1)
        return stage_complain(config, "decode_jpeg: scaled takes one column, not %u",
                              decoded->targets.count);
    if (decoded->options.jpeg.ratio != 1)
        return stage_complain(config, "decode_jpeg: scaled chooses the ratio; remove ratio");
    return TUNDISH_OK;
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
        status = check_scaled(decoded, config);
    return status;
}

const struct content_ops content_decode_jpeg = {
    .name = "decode_jpeg",
    .takes_missing = true,
    .state_bytes = sizeof(struct decoded),
    .open = decode_jpeg_open,
    .apply = decoded_apply,
    .close = decoded_close,
    .look_ahead = decode_jpeg_look_ahead,
};
