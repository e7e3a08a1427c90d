/* resized.c - crop, pad and resize parts of images. */
#include "content/images/resized.h"

#include <string.h>

#include "column/convert.h"
#include "column/dims.h"

static tundish_status
open_column(const struct resized *resized, const struct stage_config *config,
            struct column_spec *column, bool *batch_wide)
{
    tundish_status status = images_check(config, column);
    uint32_t axis;

    if (status != TUNDISH_OK)
        return status;
    if (column->dtype == TUNDISH_BOOL && !resized->takes_bools)
        return stage_complain(config, "%s: '%s' has dtype bool; expected a numeric dtype",
                              config->stage->info->name, column->name);
    axis = images_height_axis((uint32_t)column->rank, resized->channels_first);
    column->shape[axis] = resized->keeps_proportions ? -1 : resized->height;
    column->shape[axis + 1] = resized->keeps_proportions ? -1 : resized->width;
    *batch_wide |= config->depth > 0 && axis == 0;
    if (!resized->keeps_dtype) {
        column->dtype = TUNDISH_FLOAT32;
        column->has_range = false;
    }
    return TUNDISH_OK;
}

tundish_status
resized_open(struct resized *resized, const struct stage_config *config, struct schema *ret_schema,
             bool *ret_batch_wide)
{
    tundish_status status = content_targets_open(config, ret_schema, &resized->targets);

    for (uint32_t i = 0; i < resized->targets.count && status == TUNDISH_OK; i++)
        status = open_column(resized, config, &ret_schema->columns[resized->targets.list[i].output],
                             ret_batch_wide);
    return status;
}

/* The state of one column. */
struct pass {
    const struct resized *resized;
    struct resample_work *work;
    tundish_dtype dtype; /* of the values: UINT8, FLOAT32, or any if it is kept */
    const uint8_t *values;
    size_t value_bytes;
};

enum { ROOM_PADDED, ROOM_TURNED, ROOM_MADE, ROOMS };

/* The part as floats, with padding around it. */
static const float *
pad(const struct pass *pass, struct resample_work *rooms, const struct image_part *part,
    const uint8_t *from, int64_t row_values, int64_t channels)
{
    int64_t height = part->height + 2 * part->pad_height;
    int64_t width = part->width + 2 * part->pad_width;
    float *padded =
        resample_room(rooms, ROOM_PADDED, (size_t)(height * width * channels) * sizeof *padded);

    for (int64_t i = 0; i < height * width * channels; i++)
        padded[i] = pass->resized->fill;
    for (int64_t y = 0; y < part->height; y++) {
        float *to = padded + ((part->pad_height + y) * width + part->pad_width) * channels;
        const uint8_t *row = from + (size_t)(y * row_values) * pass->value_bytes;

        if (pass->dtype == TUNDISH_FLOAT32)
            memcpy(to, row, (size_t)(part->width * channels) * sizeof *to);
        else
            for (int64_t i = 0; i < part->width * channels; i++)
                to[i] = (float)row[i];
    }
    return padded;
}

/* Copy a part that needs no resampling. */
static void
copy_rows(const struct pass *pass, const struct resample *resample, const uint8_t *from, void *to)
{
    size_t row_values = (size_t)(resample->to_width * resample->channels);

    for (int64_t y = 0; y < resample->to_height; y++) {
        const uint8_t *row = from + (size_t)(y * resample->row_values) * pass->value_bytes;

        if (pass->resized->keeps_dtype || pass->dtype == TUNDISH_FLOAT32)
            memcpy((uint8_t *)to + (size_t)y * row_values * pass->value_bytes, row,
                   row_values * pass->value_bytes);
        else
            for (size_t i = 0; i < row_values; i++)
                ((float *)to)[(size_t)y * row_values + i] = (float)row[i];
    }
}

/* Nearest neighbours with a float32 result. */
static void
nearest_floats(const struct pass *pass, const struct resample *resample,
               struct resample_work *rooms, const uint8_t *from, float *to)
{
    int64_t count = resample->to_height * resample->to_width * resample->channels;
    uint8_t *bytes;

    if (pass->dtype == TUNDISH_FLOAT32) {
        resample_nearest(resample, pass->work, from, sizeof(float), to);
        return;
    }
    bytes = resample_room(rooms, ROOM_PADDED, (size_t)count);
    resample_nearest(resample, pass->work, from, 1, bytes);
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)bytes[i];
}

static void
make_part(struct pass *pass, struct resample_work *rooms, const struct image_part *part,
          const struct images *images, const uint8_t *image, void *to)
{
    const struct resized *resized = pass->resized;
    int64_t row_values = images->width * images->channels;
    const uint8_t *from = image + (size_t)(part->top * row_values + part->left * images->channels) *
                                      pass->value_bytes;
    struct resample resample = { .method = resized->method,
                                 .antialias = resized->antialias,
                                 .from_height = part->height + 2 * part->pad_height,
                                 .from_width = part->width + 2 * part->pad_width,
                                 .to_height = part->to_height,
                                 .to_width = part->to_width,
                                 .channels = images->channels,
                                 .row_values = row_values };
    struct pass padded = *pass;

    if (part->pad_height > 0 || part->pad_width > 0) {
        from = (const uint8_t *)pad(pass, rooms, part, from, row_values, images->channels);
        resample.row_values = resample.from_width * images->channels;
        padded.dtype = TUNDISH_FLOAT32;
        padded.value_bytes = sizeof(float);
        pass = &padded;
    }
    if (images->height < 1 || images->width < 1 || part->height < 1 || part->width < 1)
        memset(to, 0,
               (size_t)(part->to_height * part->to_width * images->channels) *
                   (resized->keeps_dtype ? pass->value_bytes : sizeof(float)));
    else if (resized->copies)
        copy_rows(pass, &resample, from, to);
    else if (resized->keeps_dtype)
        resample_nearest(&resample, pass->work, from, pass->value_bytes, to);
    else if (resized->method == RESAMPLE_NEAREST)
        nearest_floats(pass, &resample, rooms, from, to);
    else if (pass->dtype == TUNDISH_FLOAT32)
        resample_floats(&resample, pass->work, (const float *)(const void *)from, to);
    else
        resample_bytes(&resample, pass->work, from, to);
}

/* For channels first: move the channels last, make the part, and move them back. */
static void
make_turned(struct pass *pass, struct resample_work *rooms, const struct image_part *part,
            const struct images *images, const float *image, float *to)
{
    int64_t values = images->height * images->width * images->channels;
    int64_t made_values = part->to_height * part->to_width * images->channels;
    float *turned = resample_room(rooms, ROOM_TURNED, (size_t)values * sizeof *turned);
    float *made = resample_room(rooms, ROOM_MADE, (size_t)made_values * sizeof *made);

    images_to_last(image, images->height, images->width, images->channels, turned);
    make_part(pass, rooms, part, images, (const uint8_t *)turned, made);
    images_to_first(made, part->to_height, part->to_width, images->channels, to);
}

/* Place the parts of all images, and set the size of each element's. */
static struct image_part *
choose_parts(const struct resized *resized, const struct column *from, struct frame *output,
             int64_t *heights, int64_t *widths)
{
    int64_t count = 0, at = 0;
    struct image_part *parts;

    for (int64_t i = 0; i < from->count; i++)
        count += images_at(from, i, resized->channels_first).count;
    parts = scratch_array(output->scratch, (size_t)count, sizeof *parts);
    for (int64_t i = 0; i < from->count; i++) {
        struct images images = images_at(from, i, resized->channels_first);

        heights[i] = resized->height > 0 ? resized->height : 0;
        widths[i] = resized->width > 0 ? resized->width : 0;
        for (int64_t k = 0; k < images.count; k++, at++) {
            parts[at] = (struct image_part){ .height = images.height, .width = images.width };
            resized->choose_part(resized, &images, i, k, output, &parts[at]);
            heights[i] = parts[at].to_height;
            widths[i] = parts[at].to_width;
        }
    }
    return parts;
}

static void
resize_column(const struct resized *resized, const struct content_target *target,
              const struct frame *input, struct frame *output)
{
    const struct column *from = &input->columns[target->input];
    tundish_dtype dtype = input->schema->columns[target->input].dtype;
    struct resample_work work = { .scratch = output->scratch };
    struct resample_work rooms = { .scratch = output->scratch };
    bool as_is = resized->keeps_dtype || (dtype == TUNDISH_UINT8 && !resized->channels_first);
    struct pass pass = { .resized = resized, .work = &work, .dtype = dtype };
    struct column *column = &output->columns[target->output];
    int64_t *heights = scratch_array(output->scratch, (size_t)from->count, sizeof *heights);
    int64_t *widths = scratch_array(output->scratch, (size_t)from->count, sizeof *widths);
    const struct image_part *part = choose_parts(resized, from, output, heights, widths);
    size_t to_bytes;
    uint8_t *to;

    pass.dtype = as_is ? dtype : TUNDISH_FLOAT32;
    pass.values =
        as_is ? from->values : convert_column(TUNDISH_FLOAT32, dtype, from, output->scratch);
    pass.value_bytes = tnd_dtype_bytes(pass.dtype);
    images_set_size(column, from, heights, widths, resized->channels_first, output->scratch);
    to_bytes = resized->keeps_dtype ? pass.value_bytes : sizeof(float);
    to = frame_values(output, target->output, (size_t)column->value_count * to_bytes);
    column->values = to;
    for (int64_t i = 0; i < from->count; i++) {
        struct images images = images_at(from, i, resized->channels_first);
        size_t image_bytes =
            (size_t)(images.height * images.width * images.channels) * pass.value_bytes;
        const uint8_t *image = pass.values + (size_t)images.offset * pass.value_bytes;

        for (int64_t k = 0; k < images.count; k++, part++, image += image_bytes) {
            if (resized->channels_first)
                make_turned(&pass, &rooms, part, &images, (const float *)(const void *)image,
                            (float *)(void *)to);
            else
                make_part(&pass, &rooms, part, &images, image, to);
            to += (size_t)(part->to_height * part->to_width * images.channels) * to_bytes;
        }
    }
}

tundish_status
resized_apply_state(const void *state, const struct frame *input, struct frame *output)
{
    const struct resized *resized = state;

    for (uint32_t i = 0; i < resized->targets.count; i++)
        resize_column(resized, &resized->targets.list[i], input, output);
    return TUNDISH_OK;
}

void
resized_close_state(void *state)
{
    struct resized *resized = state;

    content_targets_close(&resized->targets);
}
