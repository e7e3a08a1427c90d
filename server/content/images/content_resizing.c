/* content_resizing.c - keras.layers.Resizing, whose result is always float32. */
#include "content/images/resized.h"

struct resizing {
    struct resized resized;
    bool crops, pads;
};

/* One side in proportion to the other. Keras computes it in float32. */
static int64_t
proportional(int64_t side, int64_t wanted, int64_t other)
{
    return (int64_t)((float)(side * wanted) / (float)other);
}

static void
choose_part(const struct resized *resized, const struct images *images, int64_t element,
            int64_t index, struct frame *output, struct image_part *part)
{
    const struct resizing *layer = (const struct resizing *)resized;
    int64_t height = proportional(images->width, resized->height, resized->width);
    int64_t width = proportional(images->height, resized->width, resized->height);

    (void)index;
    part->to_height = resized->height;
    part->to_width = resized->width;
    if (images->height < 1 || images->width < 1) {
        frame_reject(output, element, "resizing: the image is empty (%lld x %lld pixels)",
                     (long long)images->width, (long long)images->height);
        return;
    }
    if (layer->crops) {
        part->height = image_part_within(height, 1, images->height);
        part->width = image_part_within(width, 1, images->width);
        part->top = (images->height - part->height) / 2;
        part->left = (images->width - part->width) / 2;
    } else if (layer->pads) {
        part->pad_height = height > images->height ? (height - images->height) / 2 : 0;
        part->pad_width = width > images->width ? (width - images->width) / 2 : 0;
    }
}

static tundish_status
resizing_open(void *state, const struct stage_config *config, struct schema *ret_schema,
              bool *ret_batch_wide)
{
    struct resizing *layer = state;
    struct resized *resized = &layer->resized;

    *ret_batch_wide = false;
    layer->crops = spec_bool(config->stage, "crop_to_aspect_ratio");
    layer->pads = spec_bool(config->stage, "pad_to_aspect_ratio");
    if (layer->crops && layer->pads)
        return stage_complain(config, "resizing takes only one of crop_to_aspect_ratio and "
                                      "pad_to_aspect_ratio");
    resized->height = spec_int(config->stage, "height");
    resized->width = spec_int(config->stage, "width");
    if (resized->height > INT32_MAX || resized->width > INT32_MAX)
        return stage_complain(config, "resizing: height and width are too large");
    resized->has_one_size = !layer->pads;
    resized->choose_part = choose_part;
    resized->takes_all = true;
    resample_method_of(spec_text(config->stage, "interpolation"), &resized->method);
    resized->antialias = spec_bool(config->stage, "antialias");
    resized->fill = (float)spec_number(config->stage, "fill_value");
    resized->channels_first = images_channels_first(config);
    resized->takes_bools = true;
    return resized_open(resized, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_resizing = {
    .name = "resizing",
    .takes_missing = true,
    .state_bytes = sizeof(struct resizing),
    .open = resizing_open,
    .apply = resized_apply_state,
    .close = resized_close_state,
};
