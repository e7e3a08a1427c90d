/* content_random_translation.c - keras.layers.RandomTranslation: also by fractions of a pixel. */
#include "content/draws.h"
#include "content/images/image_layer.h"

/* Which draw it is: 0 for the height, 1 for the width; a share of it. */
static float
share_of(const struct image_layer *layer, const float *u, int which)
{
    return draws_between(u[which], layer->low[which], layer->high[which]);
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "height_factor", (double)share_of(layer, u, 0) };
    ret_drawn[1] = (struct content_drawn){ "width_factor", (double)share_of(layer, u, 1) };
    return 2;
}

static void
translate(const struct image_layer *layer, const struct images *images, const float *u,
          const float *from, float *to)
{
    float down = share_of(layer, u, 0) * (float)images->height;
    float across = share_of(layer, u, 1) * (float)images->width;
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
    layer->tell = tell;
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
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
