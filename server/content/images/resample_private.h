/* resample_private.h - the declarations that only the files of resample.h share. */
#ifndef CONTENT_IMAGES_RESAMPLE_PRIVATE_H
#define CONTENT_IMAGES_RESAMPLE_PRIVATE_H

#include "content/images/resample.h"

enum resample_rooms { ROOM_X, ROOM_Y, ROOM_ROWS, ROOM_FLOATS, ROOM_WEIGHTS, ROOM_MIDDLE };

static inline int64_t
resample_bound(int64_t value, int64_t limit)
{
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
}

/* Bilinear without antialias; exactly one of bytes and floats is not NULL. */
void resample_bilinear(const struct resample *resample, struct resample_work *work,
                       const uint8_t *bytes, const float *floats, float *to);
void resample_bicubic(const struct resample *resample, struct resample_work *work,
                      const float *from, float *to);
void resample_area(const struct resample *resample, struct resample_work *work, const float *from,
                   float *to);

/* TensorFlow's scale_and_translate: every other method, and those with antialias. */
void resample_by_kernel(const struct resample *resample, struct resample_work *work,
                        const float *from, float *to);

#endif
