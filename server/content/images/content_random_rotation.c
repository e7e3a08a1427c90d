/* content_random_rotation.c - keras.layers.RandomRotation: positive angles turn
 * counter-clockwise. */
#include <math.h>

#include "content/draws.h"
#include "content/images/image_layer.h"

static float
degrees_of(const struct image_layer *layer, const float *u)
{
    return draws_between(u[0], layer->low[0] * 360.0, layer->high[0] * 360.0);
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "degrees", (double)degrees_of(layer, u) };
    return 1;
}

static void
rotate(const struct image_layer *layer, const struct images *images, const float *u,
       const float *from, float *to)
{
    float angle = degrees_of(layer, u) * (float)(3.141592653589793 / 180.0);
    float cosine = cosf(angle), sine = sinf(angle);
    float x = 0.5F * (float)(images->width - 1), y = 0.5F * (float)(images->height - 1);
    struct warp_map map = { .a0 = cosine, .a1 = -sine, .b0 = sine, .b1 = cosine };

    map.a2 = x - x * map.a0 - y * map.a1;
    map.b2 = y - x * map.b0 - y * map.b1;
    warp_image(&layer->warp, &map, images->height, images->width, images->channels, from, to);
}

static tundish_status
random_rotation_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                     bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    layer->make = rotate;
    layer->tell = tell;
    layer->draws = 1;
    image_layer_open_warp(layer, config);
    status = image_layer_factor(config, "factor", -1, &layer->low[0], &layer->high[0]);
    if (status == TUNDISH_OK)
        status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_rotation = {
    .name = "random_rotation",
    .takes_missing = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_rotation_open,
    .apply = image_layer_apply,
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
