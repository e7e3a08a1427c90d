/* content_center_crop.c - keras.layers.CenterCrop. If the plan knows that an image is too small,
 * Keras crops it to the target's proportions and resizes it (smart_resize). If the plan does not
 * know the size, Keras takes slices, whatever they give. */
#include "content/images/resized.h"

/* Half of a value, rounded down: the Python operator //. */
static int64_t
floor_half(int64_t value)
{
    return value >= 0 ? value / 2 : -((1 - value) / 2);
}

/* A slice [begin, begin + length) of a side with Python's rules: a negative bound counts from the
 * end. */
static void
slice(int64_t side, int64_t length, int64_t *ret_begin, int64_t *ret_length)
{
    int64_t begin = floor_half(side - length), end = begin + length;

    if (begin < 0)
        begin = begin + side > 0 ? begin + side : 0;
    if (end < 0)
        end = end + side > 0 ? end + side : 0;
    end = end < side ? end : side;
    *ret_begin = begin < side ? begin : side;
    *ret_length = end > *ret_begin ? end - *ret_begin : 0;
}

static void
choose_slice(const struct resized *resized, const struct images *images, int64_t element,
             int64_t index, struct frame *output, struct image_part *part)
{
    (void)element;
    (void)index;
    (void)output;
    slice(images->height, resized->height, &part->top, &part->height);
    slice(images->width, resized->width, &part->left, &part->width);
    part->to_height = part->height;
    part->to_width = part->width;
}

/* Keras knows the sizes here, so it computes in Python's floats, which are doubles. */
static void
choose_smart(const struct resized *resized, const struct images *images, int64_t element,
             int64_t index, struct frame *output, struct image_part *part)
{
    int64_t height = (int64_t)((double)(images->width * resized->height) / (double)resized->width);
    int64_t width = (int64_t)((double)(images->height * resized->width) / (double)resized->height);

    (void)element;
    (void)index;
    (void)output;
    part->height = image_part_within(height, 1, images->height);
    part->width = image_part_within(width, 1, images->width);
    part->top = (images->height - part->height) / 2;
    part->left = (images->width - part->width) / 2;
    part->to_height = resized->height;
    part->to_width = resized->width;
}

/* Whether a side of this column is known to be too small. */
static bool
is_small(const struct resized *resized, const struct column_spec *column)
{
    uint32_t axis = images_height_axis((uint32_t)column->rank, resized->channels_first);

    return (column->shape[axis] >= 0 && column->shape[axis] < resized->height) ||
           (column->shape[axis + 1] >= 0 && column->shape[axis + 1] < resized->width);
}

static bool
is_known(const struct resized *resized, const struct column_spec *column)
{
    uint32_t axis = images_height_axis((uint32_t)column->rank, resized->channels_first);

    return column->shape[axis] >= 0 && column->shape[axis + 1] >= 0;
}

static tundish_status
center_crop_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct resized *resized = state;
    bool any_small = false, any_large = false;
    tundish_status status;

    *ret_batch_wide = false;
    resized->height = spec_int(config->stage, "height");
    resized->width = spec_int(config->stage, "width");
    resized->channels_first = images_channels_first(config);
    resized->takes_bools = true;
    status = resized_open(resized, config, ret_schema, ret_batch_wide);
    for (uint32_t i = 0; i < resized->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &resized->targets.list[i];
        const struct column_spec *from = &config->input->columns[target->input];
        struct column_spec *column = &ret_schema->columns[target->output];
        uint32_t axis = images_height_axis((uint32_t)column->rank, resized->channels_first);
        bool small = is_small(resized, from);

        any_small |= small;
        any_large |= !small;
        if (!small && !is_known(resized, from))
            column->shape[axis] = column->shape[axis + 1] = -1;
    }
    if (any_small && any_large)
        return stage_complain(config,
                              "center_crop: some columns are smaller than %lld by %lld "
                              "and some are not; give each kind a stage of its own",
                              (long long)resized->width, (long long)resized->height);
    resized->copies = !any_small;
    resized->choose_part = any_small ? choose_smart : choose_slice;
    resized->method = RESAMPLE_BILINEAR;
    return status;
}

const struct content_ops content_center_crop = {
    .name = "center_crop",
    .takes_missing = true,
    .state_bytes = sizeof(struct resized),
    .open = center_crop_open,
    .apply = resized_apply_state,
    .close = resized_close_state,
};
