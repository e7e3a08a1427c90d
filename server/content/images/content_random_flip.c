/* content_random_flip.c - keras.layers.RandomFlip: one number decides for both axes. */
#include <string.h>

#include "content/images/image_layer.h"

static bool
flips(const float *u)
{
    return u[0] <= 0.5F;
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "horizontal", (double)(flips(u) && layer->horizontal) };
    ret_drawn[1] = (struct content_drawn){ "vertical", (double)(flips(u) && layer->vertical) };
    return 2;
}

static void
flip(const struct image_layer *layer, const struct images *images, const float *u,
     const float *from, float *to)
{
    int64_t height = images->height, width = images->width, channels = images->channels;
    bool across = flips(u) && layer->horizontal, down = flips(u) && layer->vertical;

    for (int64_t y = 0; y < height; y++) {
        const float *row = from + (down ? height - 1 - y : y) * width * channels;

        if (!across)
            memcpy(to, row, (size_t)(width * channels) * sizeof *to);
        else if (channels == 3) /* the usual number: no calls */
            for (int64_t x = 0; x < width; x++)
                memcpy(to + 3 * x, row + 3 * (width - 1 - x), 3 * sizeof *to);
        else
            for (int64_t x = 0; x < width; x++)
                memcpy(to + x * channels, row + (width - 1 - x) * channels,
                       (size_t)channels * sizeof *to);
        to += width * channels;
    }
}

static tundish_status
random_flip_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    const char *mode = spec_text(config->stage, "mode");

    layer->make = flip;
    layer->tell = tell;
    layer->draws = 1;
    layer->horizontal = strcmp(mode, "vertical") != 0;
    layer->vertical = strcmp(mode, "horizontal") != 0;
    status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_flip = {
    .name = "random_flip",
    .takes_missing = true,
    .keeps_pixels = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_flip_open,
    .apply = image_layer_apply,
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
