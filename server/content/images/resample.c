/* resample.c - choose the resampling method. */
#include "content/images/resample.h"

#include <math.h>
#include <string.h>

#include "content/images/resample_private.h"

bool
resample_method_of(const char *name, enum resample_method *ret_method)
{
    static const char *const names[RESAMPLE_METHODS] = {
        [RESAMPLE_BILINEAR] = "bilinear", [RESAMPLE_NEAREST] = "nearest",
        [RESAMPLE_BICUBIC] = "bicubic",   [RESAMPLE_AREA] = "area",
        [RESAMPLE_LANCZOS3] = "lanczos3", [RESAMPLE_LANCZOS5] = "lanczos5",
        [RESAMPLE_GAUSSIAN] = "gaussian", [RESAMPLE_MITCHELLCUBIC] = "mitchellcubic",
    };

    for (int i = 0; i < RESAMPLE_METHODS; i++)
        if (strcmp(names[i], name) == 0) {
            *ret_method = (enum resample_method)i;
            return true;
        }
    return false;
}

void *
resample_room(struct resample_work *work, unsigned index, size_t bytes)
{
    if (work->room[index].capacity < bytes || work->room[index].data == NULL) {
        work->room[index].data = scratch_alloc(work->scratch, bytes);
        work->room[index].capacity = bytes;
    }
    return work->room[index].data;
}

void
resample_floats(const struct resample *resample, struct resample_work *work, const float *from,
                float *to)
{
    bool antialias = resample->antialias;

    if (resample->method == RESAMPLE_BILINEAR && !antialias)
        resample_bilinear(resample, work, NULL, from, to);
    else if (resample->method == RESAMPLE_BICUBIC && !antialias)
        resample_bicubic(resample, work, from, to);
    else if (resample->method == RESAMPLE_AREA)
        resample_area(resample, work, from, to);
    else
        resample_by_kernel(resample, work, from, to);
}

void
resample_bytes(const struct resample *resample, struct resample_work *work, const uint8_t *from,
               float *to)
{
    int64_t width = resample->from_width * resample->channels;
    struct resample tight = *resample;
    float *floats;

    if (resample->method == RESAMPLE_BILINEAR && !resample->antialias) {
        resample_bilinear(resample, work, from, NULL, to);
        return;
    }
    floats =
        resample_room(work, ROOM_FLOATS, (size_t)(resample->from_height * width) * sizeof *floats);
    for (int64_t y = 0; y < resample->from_height; y++)
        for (int64_t i = 0; i < width; i++)
            floats[y * width + i] = (float)from[y * resample->row_values + i];
    tight.row_values = width;
    resample_floats(&tight, work, floats, to);
}

/* The source column or row of each target one, at pixel centres (half_pixel_centers). */
static int64_t *
nearest_sources(struct resample_work *work, unsigned room, int64_t from, int64_t to)
{
    int64_t *sources = resample_room(work, room, (size_t)to * sizeof *sources);
    float scale = (float)from / (float)to;

    for (int64_t i = 0; i < to; i++)
        sources[i] = resample_bound((int64_t)floorf(((float)i + 0.5F) * scale), from);
    return sources;
}

void
resample_nearest(const struct resample *resample, struct resample_work *work, const void *from,
                 size_t value_bytes, void *to)
{
    size_t pixel_bytes = (size_t)resample->channels * value_bytes;
    const int64_t *xs = nearest_sources(work, ROOM_X, resample->from_width, resample->to_width);
    const int64_t *ys = nearest_sources(work, ROOM_Y, resample->from_height, resample->to_height);
    uint8_t *next = to;

    for (int64_t y = 0; y < resample->to_height; y++) {
        const uint8_t *row =
            (const uint8_t *)from + (size_t)(ys[y] * resample->row_values) * value_bytes;

        for (int64_t x = 0; x < resample->to_width; x++, next += pixel_bytes)
            memcpy(next, row + (size_t)xs[x] * pixel_bytes, pixel_bytes);
    }
}
