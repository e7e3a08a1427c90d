/* content_random_contrast.c - keras.layers.RandomContrast: stretch values around each channel's
 * mean. */
#include <string.h>

#include "column/array_loops.h"
#include "content/draws.h"
#include "content/images/image_layer.h"

/* Channels that are done together, and values. */
enum { TOGETHER = 64 };

/* The mean in Keras' order: down the columns first, then across. A float sum depends on the
 * order. */
static float
channel_mean(const struct images *images, int64_t channel, const float *columns)
{
    float sum = 0;

    for (int64_t x = 0; x < images->width; x++)
        sum += columns[x * images->channels + channel] / (float)images->height;
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
    int64_t channels = images->channels, row_values = images->width * channels;
    int64_t values = images->height * row_values;
    float *columns = to, means[TOGETHER];

    /* The sums of some channels are read before these are written over them. */
    memset(columns, 0, (size_t)row_values * sizeof *columns);
    for (int64_t i = 0; i < values; i += row_values)
        array_add_loop(from + i, (size_t)row_values, columns);
    for (int64_t first = 0; first < channels; first += TOGETHER) {
        int64_t some = channels - first < TOGETHER ? channels - first : TOGETHER;
        int64_t count = some == channels ? TOGETHER / channels * channels : some;
        int64_t step = some == channels ? count : channels;

        for (int64_t i = 0; i < count; i++)
            means[i] = i < some ? channel_mean(images, first + i, columns) : means[i - some];
        for (int64_t i = first; i < values; i += step)
            array_contrast_loop(from + i, (size_t)(values - i < count ? values - i : count),
                                factor_of(layer, u), means, (float)layer->range[0],
                                (float)layer->range[1], to + i);
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
