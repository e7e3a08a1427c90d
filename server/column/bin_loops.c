/* bin_loops.c - bins of whole columns: by comparing with all boundaries if there are few, by binary
 * search, or by a table of cells. */
#include "column/bin_loops.h"

#include "core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { TOGETHER = 16, COMPARED_MAX = 40, COMPARED_TOGETHER = 32 };

/* std::upper_bound, as TensorFlow's Bucketize uses it. NaN is below nothing, so it goes to the last
 * bin. */
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

/* Search for several values at once. All take the same number of steps without a branch, so the
 * loop becomes vector code. At least one boundary; they must be sorted. */
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

/* Eight values; the compiler splits them where registers are narrower. */
typedef float floats8 __attribute__((vector_size(32), aligned(4)));
typedef int32_t integers8 __attribute__((vector_size(32), aligned(4)));

/* The bin is the number of boundaries that are not above the value: count them for several values
 * at once, without a search. */
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

        /* A comparison gives -1 where the value is below, and 0 otherwise, for NaN too. */
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
    /* The last values go through a padded copy: no vector reads past the column. */
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
    if (tnd_cpu_has(TND_CPU_AVX2)) {
        compare_avx2(boundaries, boundary_count, x, count, bins);
        return;
    }
#endif
    compare_column(boundaries, boundary_count, x, count, bins);
}

/* Are the boundaries sorted and free of NaN? Otherwise the bin is whatever the plain search finds,
 * as in TensorFlow. */
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

/* The upper bits of the key choose a cell; the sum carries into the bin if the lower bits reach the
 * cell's boundary. */
static inline int32_t
bin_in_cells(const struct bin_cells *cells, float x)
{
    const uint32_t key = bin_key(&cells->keys, x);
    const uint32_t lower = key & ((UINT32_C(1) << cells->shift) - 1);

    return (int32_t)((cells->cells[key >> cells->shift] + lower) >> cells->shift);
}

#ifdef __x86_64__
/* bin_key of eight values. _mm256_min_ps returns its second operand for NaN, hence the order of
 * operands. */
__attribute__((target("avx2"))) static inline __m256i
eight_keys(const struct bin_keys *keys, __m256 x)
{
    const __m256i ignored = _mm256_set1_epi32(keys->ignored);
    const __m256i below = _mm256_set1_epi32(keys->below);
    const __m256 plain = _mm256_add_ps(x, _mm256_setzero_ps());
    const __m256i bits = _mm256_castps_si256(_mm256_min_ps(plain, _mm256_set1_ps(keys->high)));
    const __m256i all = _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MAX));
    const __m256i magnitude = _mm256_sub_epi32(_mm256_max_epi32(all, ignored), ignored);
    const __m256i key = _mm256_xor_si256(magnitude, _mm256_srai_epi32(bits, 31));

    return _mm256_sub_epi32(_mm256_max_epi32(key, below), below);
}

/* bin_in_cells of eight values at once; returns how many values were done. */
__attribute__((target("avx2"))) static size_t
find_avx2(const struct bin_cells *cells, const float *x, size_t count, int32_t *bins,
          bool *ret_crowded)
{
    const struct bin_keys keys = cells->keys;
    const int *table = (const int *)cells->cells;
    const __m128i shift = _mm_cvtsi32_si128((int)cells->shift);
    const __m256i lower_bits = _mm256_set1_epi32((int32_t)((UINT32_C(1) << cells->shift) - 1));
    const __m256i crowded = _mm256_set1_epi32(cells->crowded);
    __m256i any = _mm256_setzero_si256();
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        const __m256i key = eight_keys(&keys, _mm256_loadu_ps(x + i));
        const __m256i cell = _mm256_i32gather_epi32(table, _mm256_srl_epi32(key, shift), 4);
        const __m256i sum = _mm256_add_epi32(cell, _mm256_and_si256(key, lower_bits));
        const __m256i bin = _mm256_srl_epi32(sum, shift);

        _mm256_storeu_si256((__m256i *)(void *)(bins + i), bin);
        any = _mm256_or_si256(any, _mm256_cmpeq_epi32(bin, crowded));
    }
    *ret_crowded = !_mm256_testz_si256(any, any);
    return i;
}
#endif

bool
bin_cells_loop(const struct bin_cells *cells, const float *x, size_t count, int32_t *ret_bins)
{
    bool is_crowded = false;
    size_t i = 0;

#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX2))
        i = find_avx2(cells, x, count, ret_bins, &is_crowded);
#endif
    for (; i < count; i++) {
        ret_bins[i] = bin_in_cells(cells, x[i]);
        is_crowded |= ret_bins[i] == cells->crowded;
    }
    return is_crowded;
}
