/* bins.c - find the bin of a number through a table of cells. Numbers become integer keys that rise
 * with them (bin_loops.h). The range of keys is cut into equal cells, so small that nearly all
 * contain one boundary at most. The cell of a key then gives the bin with one comparison. A key is
 * nearly a logarithm of its number, so this works for evenly spaced boundaries as well as for the
 * quantiles of a long tail. Boundaries too close for that share a crowded cell; the few numbers in
 * it are searched for. */
#include "content/numbers/bins.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/flush.h"
#include "core/memory.h"

/* Up to COMPARED_MAX boundaries, comparing with each is faster than a table. COUNT_MAX bins leave
 * 15 bits of a cell for the key's own. CELLS_MAX cells take 512 KiB, which a second-level cache
 * holds. BLOCK numbers stay in the first-level cache between the two passes over them. */
enum { COMPARED_MAX = 24, COUNT_MAX = UINT16_MAX, CELLS_MAX = 1 << 17, BLOCK = 512 };

/* The keys from a number to its double: one step of a float's exponent. Keys that are ignored end
 * that far below the smallest boundary, so that a boundary at 0 has a cell of its own. */
enum { OCTAVE = 1 << 23 };

/* At most one boundary in CROWDED_MOST may lie in a crowded cell; otherwise the search would
 * dominate. */
enum { CROWDED_MOST = 16 };

/* Whether the boundaries rise. The first compares with itself to find NaN, which no comparison
 * later would show if it is alone. */
static bool
are_rising(const float *boundaries, int64_t count)
{
    bool rising = boundaries[0] == boundaries[0];

    for (int64_t i = 1; i < count; i++)
        rising &= boundaries[i - 1] <= boundaries[i];
    return rising;
}

/* Choose keys from below the first boundary to above the last. Adding 0 turns -0.0 into 0.0, whose
 * bits differ although the numbers are equal. */
static struct bin_keys
keys_between(const float *boundaries, int64_t count)
{
    struct bin_keys keys = { .high = boundaries[count - 1] + 0.0F };
    int32_t nearest = INT32_MAX;

    for (int64_t i = 0; i < count; i++) {
        float magnitude = fabsf(boundaries[i] + 0.0F);
        int32_t bits;

        memcpy(&bits, &magnitude, sizeof bits);
        if (bits != 0 && bits < nearest)
            nearest = bits;
    }
    keys.ignored = nearest > OCTAVE ? nearest - OCTAVE : 0;
    keys.below = bin_key_from_zero(&keys, boundaries[0]) - 1;
    return keys;
}

/* Count the boundaries that share a cell with the one before. */
static int64_t
count_crowded(const uint32_t *keys, int64_t count, uint32_t shift)
{
    int64_t crowded = 0;

    for (int64_t i = 1; i < count; i++)
        crowded += keys[i - 1] >> shift == keys[i] >> shift;
    return crowded;
}

/* Choose the fewest cells in which no two boundaries share one, or else the most that are allowed.
 * A bin is stored above the shift, so both must fit into 32 bits. */
static uint32_t
shift_of(const uint32_t *keys, int64_t count)
{
    uint32_t shift = 31;

    while (shift > 0 && ((uint64_t)(count + 2) << shift) >> 32 != 0)
        shift--;
    while (shift > 0 && keys[count - 1] >> (shift - 1) < CELLS_MAX &&
           count_crowded(keys, count, shift) > 0)
        shift--;
    return shift;
}

/* Write each cell so that adding the low bits of a key carries into the bin above them exactly if
 * the key has reached the cell's boundary. */
static void
fill_cells(struct bin_cells *cells, const uint32_t *keys, int64_t count)
{
    const uint32_t cell_count = (keys[count - 1] >> cells->shift) + 1;
    const uint32_t carry = UINT32_C(1) << cells->shift;
    int64_t before = 0;

    cells->cells = tnd_alloc(cell_count * sizeof *cells->cells);
    for (uint32_t cell = 0; cell < cell_count; cell++) {
        uint32_t sum = (uint32_t)before << cells->shift;
        int64_t next = before;

        while (next < count && keys[next] >> cells->shift == cell)
            next++;
        if (next == before + 1)
            sum += carry - (keys[before] & (carry - 1));
        else if (next > before)
            sum = (uint32_t)cells->crowded << cells->shift;
        cells->cells[cell] = sum;
        before = next;
    }
}

void
bins_open(struct bins *bins, const float *boundaries, int64_t count)
{
    struct bin_cells cells = { .crowded = (int32_t)count + 1 };
    uint32_t *keys;
    uint64_t mode;

    *bins = (struct bins){ .boundaries = boundaries, .count = count };
    if (count <= COMPARED_MAX || count > COUNT_MAX || !are_rising(boundaries, count))
        return;
    /* Find keys in the mode in which numbers are found later: denormals flush to zero. */
    mode = flush_begin();
    keys = tnd_alloc((size_t)count * sizeof *keys);
    cells.keys = keys_between(boundaries, count);
    for (int64_t i = 0; i < count; i++)
        keys[i] = bin_key(&cells.keys, boundaries[i]);
    flush_end(mode);
    cells.shift = shift_of(keys, count);
    if (keys[count - 1] >> cells.shift < CELLS_MAX &&
        count_crowded(keys, count, cells.shift) <= count / CROWDED_MOST) {
        fill_cells(&cells, keys, count);
        bins->cells = cells;
    }
    free(keys);
}

void
bins_close(struct bins *bins)
{
    free(bins->cells.cells);
    bins->cells.cells = NULL;
}

void
bins_find(const struct bins *bins, const float *x, size_t count, int32_t *ret_bins)
{
    if (bins->cells.cells == NULL) {
        bins_loop(bins->boundaries, bins->count, x, count, ret_bins);
        return;
    }
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t end = count - i < BLOCK ? count : i + BLOCK;

        /* The loop returns whether a number fell into a crowded cell, which is rare. */
        if (!bin_cells_loop(&bins->cells, x + i, end - i, ret_bins + i))
            continue;
        for (size_t k = i; k < end; k++)
            if (ret_bins[k] == bins->cells.crowded)
                bins_loop(bins->boundaries, bins->count, x + k, 1, ret_bins + k);
    }
}

void
bins_find_as(const struct bins *bins, tundish_dtype from, const void *x, size_t count,
             tundish_dtype to, void *ret_bins)
{
    const size_t step = tnd_dtype_bytes(from), bin_bytes = tnd_dtype_bytes(to);
    /* On the stack, and small enough to convert and search while in the cache. */
    float numbers[BLOCK];
    int32_t found[BLOCK];

    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t some = count - i < BLOCK ? count - i : BLOCK;
        const uint8_t *values = (const uint8_t *)x + i * step;
        uint8_t *out = (uint8_t *)ret_bins + i * bin_bytes;
        int32_t *to_bins = to == TUNDISH_INT32 ? (int32_t *)(void *)out : found;

        if (from != TUNDISH_FLOAT32)
            convert_values(TUNDISH_FLOAT32, numbers, from, values, some);
        bins_find(bins, from == TUNDISH_FLOAT32 ? (const float *)(const void *)values : numbers,
                  some, to_bins);
        if (to_bins == found)
            convert_values(to, out, TUNDISH_INT32, found, some);
    }
}
