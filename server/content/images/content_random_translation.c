/* content_random_translation.c - keras.layers.RandomTranslation: also by fractions of a pixel. */
#include "content/draws.h"
#include "content/images/image_layer.h"

static void
translate(const struct image_layer *layer, const struct images *images, const float *u,
          const float *from, float *to)
{
    float down = draws_between(u[0], layer->low[0], layer->high[0]) * (float)images->height;
    float across = draws_between(u[1], layer->low[1], layer->high[1]) * (float)images->width;
    struct warp_map map = { .a0 = 1, .a2 = -across, .b1 = 1, .b2 = -down };

    warp_image(&layer->warp, &map, images->height, images->width, images->channels, from, to);
}

static tundish_status
random_translation_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                        bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    layer->make = translate;
    layer->draws = 2;
    image_layer_open_warp(layer, config);
    status = image_layer_factor(config, "height_factor", -1, &layer->low[0], &layer->high[0]);
    if (status == TUNDISH_OK)
        status = image_layer_factor(config, "width_factor", -1, &layer->low[1], &layer->high[1]);
    if (status == TUNDISH_OK)
        status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_translation = {
    .name = "random_translation",
    .takes_missing = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_translation_open,
    .apply = image_layer_apply,
    .close = image_layer_close,
};
