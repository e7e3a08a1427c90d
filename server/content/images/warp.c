/* warp.c - map each pixel to its source and interpolate, as the op ImageProjectiveTransformV3. */
#include "content/images/warp.h"

#include <math.h>

/* Beyond any image; from here on positions are integers, whose conversion must not overflow. */
static const float FAR = 1e9F;

static float
clamp(float at, int64_t length)
{
    float last = (float)(length - 1);

    return at < 0.0F ? 0.0F : at > last ? last : at;
}

/* Reflect: dcba|abcd|dcba. */
static float
reflect(float at, int64_t length)
{
    int64_t twice = 2 * length;

    if (at < 0) {
        at = (float)(twice * (int64_t)(-at / (float)twice)) + at;
        return at < (float)-length ? at + (float)twice : -at - 1.0F;
    }
    at -= (float)(twice * (int64_t)(at / (float)twice));
    return at >= (float)length ? (float)twice - at - 1.0F : at;
}

/* Wrap: nearly abcd|abcd|abcd, but TensorFlow divides by the length less one. */
static float
wrap(float at, int64_t length)
{
    float last = (float)(length - 1);

    if (at < 0)
        return at + (float)(length * ((int64_t)(-at / last) + 1));
    return at - (float)(length * (int64_t)(at / last));
}

static float
fold(float at, int64_t length, enum warp_fill fill)
{
    if (!(at > -FAR && at < FAR))
        at = at > 0 ? FAR : -FAR;
    if (fill == WARP_CONSTANT)
        return at;
    if (fill != WARP_NEAREST && (at < 0 || at > (float)(length - 1))) {
        if (length <= 1)
            return 0.0F;
        at = fill == WARP_REFLECT ? reflect(at, length) : wrap(at, length);
    }
    return clamp(at, length);
}

struct canvas {
    int64_t height, width, channels;
    const float *from;
    float beyond;
};

static float
pixel(const struct canvas *canvas, int64_t y, int64_t x, int64_t channel)
{
    if (y < 0 || y >= canvas->height || x < 0 || x >= canvas->width)
        return canvas->beyond;
    return canvas->from[(y * canvas->width + x) * canvas->channels + channel];
}

/* Interpolate between four pixels; those outside have the fill value. The order of products is the
 * op's. */
static void
between_four(const struct canvas *canvas, float y, float x, float *to)
{
    float top = floorf(y), left = floorf(x), bottom = top + 1.0F, right = left + 1.0F;
    int64_t y0 = (int64_t)top, x0 = (int64_t)left;

    for (int64_t c = 0; c < canvas->channels; c++) {
        float upper =
            (right - x) * pixel(canvas, y0, x0, c) + (x - left) * pixel(canvas, y0, x0 + 1, c);
        float lower = (right - x) * pixel(canvas, y0 + 1, x0, c) +
                      (x - left) * pixel(canvas, y0 + 1, x0 + 1, c);

        to[c] = (bottom - y) * upper + (y - top) * lower;
    }
}

void
warp_image(const struct warp *warp, const struct warp_map *map, int64_t height, int64_t width,
           int64_t channels, const float *from, float *to)
{
    struct canvas canvas = { height, width, channels, from, warp->fill_value };

    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++, to += channels) {
            float x = map->a0 * (float)column + map->a1 * (float)row + map->a2;
            float y = map->b0 * (float)column + map->b1 * (float)row + map->b2;

            x = fold(x, width, warp->fill);
            y = fold(y, height, warp->fill);
            if (!warp->nearest) {
                between_four(&canvas, y, x, to);
                continue;
            }
            for (int64_t c = 0; c < channels; c++)
                to[c] = pixel(&canvas, (int64_t)roundf(y), (int64_t)roundf(x), c);
        }
}
