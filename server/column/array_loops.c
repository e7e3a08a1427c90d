/* array_loops.c - loops over whole columns. */
#include "column/array_loops.h"

#include <stdbool.h>
#include <string.h>

enum { TOGETHER = 16, COMPARED_MAX = 40, COMPARED_TOGETHER = 32 };

static int32_t
search(const float *boundaries, int64_t count, float x)
{
    int64_t low = 0;

    while (count > 0) {
        int64_t half = count / 2;
        bool goes_right = !(x < boundaries[low + half]);

        low = goes_right ? low + half + 1 : low;
        count = goes_right ? count - half - 1 : half;
    }
    return (int32_t)low;
}

/* Several values at once, with as many steps for each and no branches. There are boundaries. */
static void
search_together(const float *boundaries, int64_t boundary_count, const float *restrict x,
                int32_t *restrict bins)
{
    int32_t at[TOGETHER] = { 0 };

    for (int32_t count = (int32_t)boundary_count, half; count > 0; count -= half) {
        half = (count + 1) / 2;
        for (int k = 0; k < TOGETHER; k++)
            at[k] += half & -(int32_t) !(x[k] < boundaries[at[k] + half - 1]);
    }
    for (int k = 0; k < TOGETHER; k++)
        bins[k] = at[k];
}

/* Eight values, in whatever registers there are. */
typedef float floats8 __attribute__((vector_size(32), aligned(4)));
typedef int32_t integers8 __attribute__((vector_size(32), aligned(4)));

/* A few boundaries: all are compared, with several values at once. */
static inline __attribute__((always_inline)) void
compare_all(const float *boundaries, int64_t boundary_count, const float *x, int32_t *bins)
{
    floats8 a, b, c, d;
    integers8 in_a = { 0 }, in_b = { 0 }, in_c = { 0 }, in_d = { 0 };

    memcpy(&a, x, sizeof a);
    memcpy(&b, x + 8, sizeof b);
    memcpy(&c, x + 16, sizeof c);
    memcpy(&d, x + 24, sizeof d);
    for (int64_t i = 0; i < boundary_count; i++) {
        const float y = boundaries[i];
        const floats8 limit = { y, y, y, y, y, y, y, y };

        /* Below is -1, everything else, NaN too, 0. */
        in_a += (integers8)(a < limit);
        in_b += (integers8)(b < limit);
        in_c += (integers8)(c < limit);
        in_d += (integers8)(d < limit);
    }
    in_a += (int32_t)boundary_count;
    in_b += (int32_t)boundary_count;
    in_c += (int32_t)boundary_count;
    in_d += (int32_t)boundary_count;
    memcpy(bins, &in_a, sizeof in_a);
    memcpy(bins + 8, &in_b, sizeof in_b);
    memcpy(bins + 16, &in_c, sizeof in_c);
    memcpy(bins + 24, &in_d, sizeof in_d);
}

static inline __attribute__((always_inline)) void
compare_column(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
               int32_t *bins)
{
    float last[COMPARED_TOGETHER] = { 0 };
    int32_t last_bins[COMPARED_TOGETHER];
    size_t i = 0;

    for (; i + COMPARED_TOGETHER <= count; i += COMPARED_TOGETHER)
        compare_all(boundaries, boundary_count, x + i, bins + i);
    if (i == count)
        return;
    memcpy(last, x + i, (count - i) * sizeof *x);
    compare_all(boundaries, boundary_count, last, last_bins);
    memcpy(bins + i, last_bins, (count - i) * sizeof *bins);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
compare_avx2(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
             int32_t *bins)
{
    compare_column(boundaries, boundary_count, x, count, bins);
}
#endif

static void
compare(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
        int32_t *bins)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        compare_avx2(boundaries, boundary_count, x, count, bins);
        return;
    }
#endif
    compare_column(boundaries, boundary_count, x, count, bins);
}

/* Of others no more can be said than what a search finds. */
static bool
are_rising(const float *boundaries, int64_t count)
{
    bool rising = count == 0 || boundaries[0] == boundaries[0];

    for (int64_t i = 1; i < count; i++)
        rising &= boundaries[i - 1] <= boundaries[i];
    return rising;
}

void
bins_loop(const float *boundaries, int64_t boundary_count, const float *x, size_t count,
          int32_t *ret_bins)
{
    bool rising = boundary_count <= INT32_MAX / 2 && are_rising(boundaries, boundary_count);
    size_t i = 0;

    if (rising && boundary_count <= COMPARED_MAX) {
        compare(boundaries, boundary_count, x, count, ret_bins);
        return;
    }
    for (; rising && i + TOGETHER <= count; i += TOGETHER)
        search_together(boundaries, boundary_count, x + i, ret_bins + i);
    for (; i < count; i++)
        ret_bins[i] = search(boundaries, boundary_count, x[i]);
}

static inline __attribute__((always_inline)) void
find_cells(const float *restrict x, size_t count, float low, float scale, int32_t cell_count,
           int32_t *restrict cells)
{
    const float last = (float)(cell_count - 1);

    for (size_t i = 0; i < count; i++) {
        float cell = (x[i] - low) * scale + 1;

        cell = cell > 0 ? cell : 0;
        cell = cell < last ? cell : last;
        cells[i] = x[i] == x[i] ? (int32_t)cell : cell_count;
    }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void
find_cells_avx2(const float *x, size_t count, float low, float scale, int32_t cell_count,
                int32_t *cells)
{
    find_cells(x, count, low, scale, cell_count, cells);
}
#endif

void
cells_loop(const float *x, size_t count, float low, float scale, int32_t cell_count,
           int32_t *ret_cells)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        find_cells_avx2(x, count, low, scale, cell_count, ret_cells);
        return;
    }
#endif
    find_cells(x, count, low, scale, cell_count, ret_cells);
}

void
normalize_loop(const float *restrict x, size_t count, float mean, float deviation,
               float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - mean) / deviation;
}

void
denormalize_loop(const float *restrict x, size_t count, float mean, float deviation,
                 float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = mean + x[i] * deviation;
}

void
rescale_loop(const float *restrict x, size_t count, float least, float most, float low, float high,
             float *restrict ret_y)
{
    for (size_t i = 0; i < count; i++)
        ret_y[i] = (x[i] - least) / (most - least) * (high - low) + low;
}
