/* warp.h - an image seen through an affine map, as TensorFlow's ImageProjectiveTransformV3. */
#ifndef CONTENT_IMAGES_WARP_H
#define CONTENT_IMAGES_WARP_H

#include <stdbool.h>
#include <stdint.h>

enum warp_fill { WARP_REFLECT, WARP_WRAP, WARP_CONSTANT, WARP_NEAREST };

struct warp {
    enum warp_fill fill;
    float fill_value; /* beyond the image, WARP_CONSTANT */
    bool nearest;     /* the nearest pixel; else between four */
};

/* Pixel (x, y) of what comes out is taken from (a0 x + a1 y + a2, b0 x + b1 y + b2). */
struct warp_map {
    float a0, a1, a2, b0, b1, b2;
};

/* [height, width, channels]; both sides at least 1. */
void warp_image(const struct warp *warp, const struct warp_map *map, int64_t height, int64_t width,
                int64_t channels, const float *from, float *to);

#endif
