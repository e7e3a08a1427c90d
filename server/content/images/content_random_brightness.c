/* content_random_brightness.c - keras.layers.RandomBrightness: add one number to all values. */
#include "column/array_loops.h"
#include "content/draws.h"
#include "content/images/image_layer.h"

static float
delta_of(const struct image_layer *layer, const float *u)
{
    return draws_between(u[0], layer->low[0], layer->high[0]) *
           (float)(layer->range[1] - layer->range[0]);
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "delta", (double)delta_of(layer, u) };
    return 1;
}

static void
brighten(const struct image_layer *layer, const struct images *images, const float *u,
         const float *from, float *to)
{
    size_t values = (size_t)(images->height * images->width * images->channels);

    array_brighten_loop(from, values, delta_of(layer, u), (float)layer->range[0],
                        (float)layer->range[1], to);
}

static tundish_status
random_brightness_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    layer->make = brighten;
    layer->tell = tell;
    layer->draws = 1;
    status = image_layer_factor(config, "factor", -1, &layer->low[0], &layer->high[0]);
    if (status == TUNDISH_OK)
        status = image_layer_open_range(layer, config, true);
    if (status == TUNDISH_OK)
        status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_brightness = {
    .name = "random_brightness",
    .takes_missing = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_brightness_open,
    .apply = image_layer_apply,
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
