/* widen.h - a column as floats, made on the trainer's side: value * scale + offset (deliver.widen).
 *
 * In float32, or in float64 where that is made: the value is rounded to it, multiplied by the
 * factor, rounded, added to, rounded; 16-bit floats are then rounded once more. The same bits on
 * every machine.
 */
#ifndef TND_CORE_WIDEN_H
#define TND_CORE_WIDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

struct tnd_widening {
    tundish_dtype dtype;   /* to make: float16, bfloat16, float32 or float64 */
    uint32_t scale_count;  /* 1, or one for each index of the last dimension */
    uint32_t offset_count; /* the same */
    const double *scale;
    const double *offset;
    uint64_t channels; /* not 0: the length of the last dimension, each index of which gets ... */
    uint64_t plane;    /* ... this number of values side by side: pixels of an image. Not 0 then */
};

/* From any number or bool to any float. */
bool tnd_widen_allowed(tundish_dtype from, tundish_dtype to);

/* Write `count` values, which begin with the first index of their last dimension; with channels,
 * whole images. E_MEMORY: lists are long and there is none. */
tundish_status tnd_widen(const struct tnd_widening *widening, tundish_dtype dtype,
                         const void *values, uint64_t count, void *ret_values);

#endif
