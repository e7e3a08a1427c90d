/* bins.c - bins by way of cells.
 *
 * The range of the boundaries is cut into equal cells. Which cell a number is in never falls as the
 * number rises, so all boundaries of earlier cells are below it and all of later ones above: only
 * those of its own are compared. No step depends on a branch.
 */
#include "content/bins.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "column/array_loops.h"
#include "column/flush.h"
#include "core/memory.h"

/* Fewer boundaries are compared at once; with more in a cell, searching is as fast. */
enum { CELLS = 4096, NAN_CELL = CELLS, BLOCK = 256, COMPARED_MAX = 24, MOST_MAX = 4 };

static bool
are_rising(const float *boundaries, int64_t count)
{
    bool rising = true;

    for (int64_t i = 0; i < count; i++)
        rising &= isfinite(boundaries[i]) && (i == 0 || boundaries[i - 1] <= boundaries[i]);
    return rising;
}

/* A boundary for each of `count` cells is where the next one begins. */
static int32_t
fill_cells(struct bins *bins)
{
    int32_t in_cell[CELLS] = { 0 }, most = 0, before = 0;

    for (int64_t i = 0; i < bins->count; i++) {
        int32_t cell;

        cells_loop(bins->boundaries + i, 1, bins->low, bins->scale, CELLS, &cell);
        in_cell[cell]++;
    }
    for (int32_t cell = 0; cell < CELLS; cell++) {
        bins->cells[cell] = (uint16_t)before;
        before += in_cell[cell];
        most = in_cell[cell] > most ? in_cell[cell] : most;
    }
    bins->cells[NAN_CELL] = (uint16_t)bins->count;
    return most;
}

void
bins_open(struct bins *bins, const float *boundaries, int64_t count)
{
    uint64_t mode;

    *bins = (struct bins){ .boundaries = boundaries, .count = count };
    if (count <= COMPARED_MAX || count > UINT16_MAX - MOST_MAX || !are_rising(boundaries, count))
        return;
    mode = flush_begin();
    bins->low = boundaries[0];
    bins->scale = (float)(CELLS - 2) / (boundaries[count - 1] - boundaries[0]);
    if (isfinite(bins->scale) && bins->scale > 0) {
        bins->cells = tnd_zalloc(CELLS + 1, sizeof *bins->cells);
        bins->most = fill_cells(bins);
    }
    flush_end(mode);
    if (bins->cells == NULL || bins->most > MOST_MAX) {
        bins_close(bins);
        return;
    }
    bins->padded = tnd_alloc((size_t)(count + MOST_MAX) * sizeof *bins->padded);
    memcpy(bins->padded, boundaries, (size_t)count * sizeof *bins->padded);
    for (int i = 0; i < MOST_MAX; i++)
        bins->padded[count + i] = INFINITY;
}

void
bins_close(struct bins *bins)
{
    free(bins->cells);
    free(bins->padded);
    bins->cells = NULL;
    bins->padded = NULL;
}

static void
find_block(const struct bins *bins, const float *x, size_t count, int32_t *ret_bins)
{
    const int32_t all = (int32_t)bins->count;
    int32_t cells[BLOCK];

    cells_loop(x, count, bins->low, bins->scale, CELLS, cells);
    for (size_t i = 0; i < count; i++) {
        int32_t at = bins->cells[cells[i]];

        for (int32_t k = 0; k < bins->most; k++)
            at += !(x[i] < bins->padded[at]);
        /* Infinity and NaN are not below what stands behind the boundaries either. */
        ret_bins[i] = at < all ? at : all;
    }
}

void
bins_find(const struct bins *bins, const float *x, size_t count, int32_t *ret_bins)
{
    if (bins->cells == NULL) {
        bins_loop(bins->boundaries, bins->count, x, count, ret_bins);
        return;
    }
    for (size_t i = 0; i < count; i += BLOCK)
        find_block(bins, x + i, count - i < BLOCK ? count - i : BLOCK, ret_bins + i);
}
