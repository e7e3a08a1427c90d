/* bin_loops.h - which of many bins the values of a column are in: how many of the rising boundaries
 * are not above them; NaN counts all of them. Arrays do not overlap. */
#ifndef COLUMN_BIN_LOOPS_H
#define COLUMN_BIN_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* By comparing, whatever the boundaries are. */
void bins_loop(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
               int32_t *ret_bins);

/* Numbers as integers that rise with them: 0 for all that are below the boundaries, up to that of
 * `high`, which NaN has too. The bits of a float rise with its magnitude; of what is nearer to 0
 * than any boundary only the sign matters, so magnitudes without boundaries cost nothing. Adding 0
 * makes one 0 of all that are equal to it, where subnormal numbers are. */
struct bin_keys {
    float high;      /* the last boundary */
    int32_t ignored; /* the bits of a magnitude below those of all boundaries but 0 */
    int32_t below;   /* what becomes 0 */
};

static inline int32_t
bin_key_from_zero(const struct bin_keys *keys, float x)
{
    float near = x + 0.0F;
    int32_t bits, magnitude;

    near = near < keys->high ? near : keys->high;
    memcpy(&bits, &near, sizeof bits);
    magnitude = bits & INT32_MAX;
    magnitude = (magnitude > keys->ignored ? magnitude : keys->ignored) - keys->ignored;
    return magnitude ^ bits >> 31;
}

static inline uint32_t
bin_key(const struct bin_keys *keys, float x)
{
    int32_t key = bin_key_from_zero(keys, x);

    return (uint32_t)(key > keys->below ? key : keys->below) - (uint32_t)keys->below;
}

/* The bins of keys. A key's upper bits select a cell. The cell is added to the key's lower bits,
 * and the upper bits of the sum are the bin: the sum carries if the key reaches the boundary inside
 * the cell. A cell with several boundaries, which is rare, gives `crowded`. */
struct bin_cells {
    struct bin_keys keys;
    uint32_t shift;
    int32_t crowded;
    uint32_t *cells;
};

/* Between flush_begin and flush_end. Returns whether any value is in a crowded cell. */
bool bin_cells_loop(const struct bin_cells *cells, const float *x, size_t count, int32_t *ret_bins);

#endif
