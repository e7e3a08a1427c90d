/* bins.h - which of many bins numbers are in: how many of the rising boundaries are not above them;
 * NaN counts all of them. */
#ifndef CONTENT_BINS_H
#define CONTENT_BINS_H

#include <stddef.h>
#include <stdint.h>

/* Between flush_begin and flush_end (flush.h) what is found is what bins_loop finds there. */
struct bins {
    const float *boundaries; /* the caller's */
    int64_t count;
    uint16_t *cells; /* NULL: bins_loop does it */
    float *padded;   /* the boundaries, and behind them what nothing is above */
    float low, scale;
    int32_t most; /* boundaries in one cell */
};

void bins_open(struct bins *bins, const float *boundaries, int64_t count);
void bins_close(struct bins *bins); /* accepts zeros */

void bins_find(const struct bins *bins, const float *x, size_t count, int32_t *ret_bins);

#endif
