/* bins.h - which of many bins numbers are in: how many of the rising boundaries are not above them;
 * NaN counts all of them. */
#ifndef CONTENT_NUMBERS_BINS_H
#define CONTENT_NUMBERS_BINS_H

#include <stddef.h>
#include <stdint.h>

#include "column/bin_loops.h"
#include "core/dtype.h"

/* Between flush_begin and flush_end (flush.h) what is found is what bins_loop finds there. */
struct bins {
    const float *boundaries; /* the caller's */
    int64_t count;
    struct bin_cells cells; /* without any: bins_loop does it */
};

void bins_open(struct bins *bins, const float *boundaries, int64_t count);
void bins_close(struct bins *bins); /* accepts zeros */

void bins_find(const struct bins *bins, const float *x, size_t count, int32_t *ret_bins);

/* The same of values of any dtype as float32, to bins of any; a block at a time, so that what lies
 * between does not go through memory. */
void bins_find_as(const struct bins *bins, tundish_dtype from, const void *x, size_t count,
                  tundish_dtype to, void *ret_bins);

#endif
