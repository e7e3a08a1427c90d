/* content_random_contrast.c - keras.layers.RandomContrast: stretch values around each channel's
 * mean. */
#include "content/draws.h"
#include "content/images/image_layer.h"

/* The mean in Keras' order: down the columns first, then across. A float sum depends on the
 * order. */
static float
channel_mean(const struct images *images, int64_t channel, const float *from)
{
    int64_t row_values = images->width * images->channels;
    float sum = 0;

    for (int64_t x = 0; x < images->width; x++) {
        const float *at = from + x * images->channels + channel;
        float column = 0;

        for (int64_t y = 0; y < images->height; y++)
            column += at[y * row_values];
        sum += column / (float)images->height;
    }
    return sum / (float)images->width;
}

static float
factor_of(const struct image_layer *layer, const float *u)
{
    return draws_between(u[0], 1.0 - layer->low[0], 1.0 + layer->high[0]);
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "factor", (double)factor_of(layer, u) };
    return 1;
}

static void
contrast(const struct image_layer *layer, const struct images *images, const float *u,
         const float *from, float *to)
{
    float factor = factor_of(layer, u);
    float least = (float)layer->range[0], most = (float)layer->range[1];
    int64_t channels = images->channels, values = images->height * images->width * channels;

    for (int64_t c = 0; c < channels; c++) {
        float mean = channel_mean(images, c, from);

        for (int64_t i = c; i < values; i += channels) {
            float value = (from[i] - mean) * factor + mean;

            value = value > most ? most : value;
            to[i] = value < least ? least : value;
        }
    }
}

static tundish_status
random_contrast_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                     bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    layer->make = contrast;
    layer->tell = tell;
    layer->draws = 1;
    status = image_layer_factor(config, "factor", 0, &layer->low[0], &layer->high[0]);
    if (status == TUNDISH_OK)
        status = image_layer_open_range(layer, config, false);
    if (status == TUNDISH_OK)
        status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_contrast = {
    .name = "random_contrast",
    .takes_missing = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_contrast_open,
    .apply = image_layer_apply,
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
