/* jpeg_idct.c - turn 8 by 8 coefficients into N by N pixels, by two products with the N-point
 * cosines: down the columns, then along the rows. Numbers have 16 bits and their products sum up in
 * 32 bits, modulo 2^32. So the order of a sum does not matter, and coefficients that no real
 * picture has do no harm. */
#include "content/images/turbo2/jpeg_parts.h"

#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <jpegint.h>

#include "core/cpu.h"

enum {
    LANES = 16,       /* a little above the largest size */
    COSINE_BITS = 15, /* after the binary point */
    BETWEEN_BITS = 3, /* between the two products */
    DOWN_SHIFT = COSINE_BITS - BETWEEN_BITS,
    ACROSS_SHIFT = COSINE_BITS + BETWEEN_BITS,
    CENTER = CENTERJSAMPLE << ACROSS_SHIFT
};

/* The contribution of coefficient u to pixel x, and the same for pairs of coefficients. */
struct cosines {
    alignas(32) int16_t of_pixel[LANES][DCTSIZE];
    alignas(32) int16_t of_pair[DCTSIZE / 2][LANES][2];
};

static struct cosines cosines[LANES]; /* by size */
static pthread_once_t cosines_once = PTHREAD_ONCE_INIT;

static void
make_cosines(void)
{
    const double pi = 3.14159265358979323846, one = 1 << COSINE_BITS;

    for (int size = 1; size < LANES; size++)
        for (int x = 0; x < size; x++)
            for (int u = 0; u < DCTSIZE && u < size; u++) {
                double weight = u == 0 ? sqrt(0.125) : 0.5 * cos((2 * x + 1) * u * pi / (2 * size));
                int16_t value = (int16_t)lrint(weight * one);

                cosines[size].of_pixel[x][u] = value;
                cosines[size].of_pair[u / 2][x][u % 2] = value;
            }
}

static inline int32_t
scaled_down(uint32_t sum, int shift)
{
    return (int32_t)(sum + (UINT32_C(1) << (shift - 1))) >> shift;
}

static inline int16_t
saturated(int32_t value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static inline uint8_t
pixel_of(int32_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > MAXJSAMPLE ? MAXJSAMPLE : value);
}

static inline uint32_t
dot(const int16_t *a, const int16_t *b)
{
    uint32_t sum = 0;

    for (int i = 0; i < DCTSIZE; i++)
        sum += (uint32_t)(a[i] * b[i]);
    return sum;
}

static inline void
transform(int size, const int16_t *factors, const JCOEF *block, JSAMPARRAY rows, JDIMENSION column)
{
    const struct cosines *table = &cosines[size];
    int16_t columns[DCTSIZE][DCTSIZE], between[DCTSIZE];

    for (int u = 0; u < DCTSIZE; u++)
        for (int v = 0; v < DCTSIZE; v++)
            columns[u][v] = (int16_t)(block[v * DCTSIZE + u] * factors[v * DCTSIZE + u]);
    for (int y = 0; y < size; y++) {
        for (int u = 0; u < DCTSIZE; u++)
            between[u] = saturated(scaled_down(dot(columns[u], table->of_pixel[y]), DOWN_SHIFT));
        for (int x = 0; x < size; x++)
            rows[y][column + (JDIMENSION)x] =
                pixel_of(scaled_down(CENTER + dot(between, table->of_pixel[x]), ACROSS_SHIFT));
    }
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

static inline AVX2 __m128i
load_row(const int16_t *from, int row)
{
    return _mm_loadu_si128((const __m128i *)(const void *)(from + row * DCTSIZE));
}

/* Rows 2p and 2p + 1 of coefficients, interleaved by column, as madd needs them. */
static inline AVX2 __m256i
row_pair(const JCOEF *block, const int16_t *factors, int pair)
{
    __m128i even = _mm_mullo_epi16(load_row(block, 2 * pair), load_row(factors, 2 * pair));
    __m128i odd = _mm_mullo_epi16(load_row(block, 2 * pair + 1), load_row(factors, 2 * pair + 1));

    return _mm256_set_m128i(_mm_unpackhi_epi16(even, odd), _mm_unpacklo_epi16(even, odd));
}

/* The contribution of two rows of coefficients to row y. */
static inline AVX2 __m256i
down(__m256i row_pair, const int16_t *of_pixel, int pair)
{
    int32_t both;

    memcpy(&both, of_pixel + 2 * pair, sizeof both);
    return _mm256_madd_epi16(row_pair, _mm256_set1_epi32(both));
}

static inline AVX2 __m256i
down_all(const __m256i *row_pairs, int pairs, const int16_t *of_pixel)
{
    __m256i sum = _mm256_set1_epi32(1 << (DOWN_SHIFT - 1));

    sum = _mm256_add_epi32(sum, down(row_pairs[0], of_pixel, 0));
    sum = _mm256_add_epi32(sum, down(row_pairs[1], of_pixel, 1));
    if (pairs > 2)
        sum = _mm256_add_epi32(sum, down(row_pairs[2], of_pixel, 2));
    if (pairs > 3)
        sum = _mm256_add_epi32(sum, down(row_pairs[3], of_pixel, 3));
    return _mm256_srai_epi32(sum, DOWN_SHIFT);
}

/* The contribution of a pair of columns to four pixels of each half's row. */
static inline AVX2 __m256i
across(__m256i pair, const int16_t (*of_pair)[2])
{
    __m128i four = _mm_load_si128((const __m128i *)(const void *)of_pair);

    return _mm256_madd_epi16(pair, _mm256_broadcastsi128_si256(four));
}

/* Four pixels from `first` on, of the low half's row and the high half's. */
static inline AVX2 __m256i
across_all(const struct cosines *table, int first, int pairs, __m256i rows)
{
    __m256i sum = _mm256_set1_epi32(CENTER + (1 << (ACROSS_SHIFT - 1)));

    sum =
        _mm256_add_epi32(sum, across(_mm256_shuffle_epi32(rows, 0x00), &table->of_pair[0][first]));
    sum =
        _mm256_add_epi32(sum, across(_mm256_shuffle_epi32(rows, 0x55), &table->of_pair[1][first]));
    if (pairs > 2)
        sum = _mm256_add_epi32(sum,
                               across(_mm256_shuffle_epi32(rows, 0xAA), &table->of_pair[2][first]));
    if (pairs > 3)
        sum = _mm256_add_epi32(sum,
                               across(_mm256_shuffle_epi32(rows, 0xFF), &table->of_pair[3][first]));
    return _mm256_srai_epi32(sum, ACROSS_SHIFT);
}

/* Two rows of pixels, one in each half. */
static inline AVX2 __m256i
two_rows(const struct cosines *table, int size, int pairs, __m256i rows)
{
    __m256i low = across_all(table, 0, pairs, rows), high = low;

    if (size > 4)
        high = across_all(table, 4, pairs, rows);
    low = _mm256_packs_epi32(low, high);
    if (size <= 8)
        return _mm256_packus_epi16(low, low);
    high = across_all(table, 8, pairs, rows);
    high = _mm256_packs_epi32(high, size > 12 ? across_all(table, 12, pairs, rows) : high);
    return _mm256_packus_epi16(low, high);
}

static inline AVX2 void
transform_pairs(int size, int pairs, const int16_t *factors, const JCOEF *block, JSAMPARRAY rows,
                JDIMENSION column)
{
    const struct cosines *table = &cosines[size];
    __m256i row_pairs[DCTSIZE / 2];

    for (int p = 0; p < pairs; p++)
        row_pairs[p] = row_pair(block, factors, p);
    for (int y = 0; y < size; y += 2) {
        __m256i both = _mm256_packs_epi32(down_all(row_pairs, pairs, table->of_pixel[y]),
                                          down_all(row_pairs, pairs, table->of_pixel[y + 1]));
        alignas(32) uint8_t pixels[2][16];

        both = two_rows(table, size, pairs, _mm256_permute4x64_epi64(both, 0xD8));
        _mm256_store_si256((__m256i *)(void *)pixels, both);
        memcpy(rows[y] + column, pixels[0], (size_t)size);
        if (y + 1 < size)
            memcpy(rows[y + 1] + column, pixels[1], (size_t)size);
    }
}

/* Whether all coefficients are among the first four of the first four rows, as in most blocks. */
static inline AVX2 bool
is_low(const JCOEF *block)
{
    __m128i high = _mm_setzero_si128(), all = high;

    for (int v = 0; v < DCTSIZE; v++) {
        __m128i row = load_row(block, v);

        all = _mm_or_si128(all, row);
        if (v >= DCTSIZE / 2)
            high = _mm_or_si128(high, row);
    }
    high = _mm_or_si128(high, _mm_srli_si128(all, 8));
    return _mm_testz_si128(high, high);
}

static inline AVX2 void
transform_avx2(int size, const int16_t *factors, const JCOEF *block, JSAMPARRAY rows,
               JDIMENSION column)
{
    int pairs = size < DCTSIZE ? (size + 1) / 2 : DCTSIZE / 2;

    if (size > DCTSIZE && is_low(block))
        transform_pairs(size, 2, factors, block, rows, column);
    else
        transform_pairs(size, pairs, factors, block, rows, column);
}

#else
#define AVX2
#define transform_avx2 transform
#endif

#define ROUTINES(SIZE)                                                                             \
    static void plain_##SIZE(j_decompress_ptr info, jpeg_component_info *component,                \
                             JCOEFPTR block, JSAMPARRAY rows, JDIMENSION column)                   \
    {                                                                                              \
        (void)info;                                                                                \
        transform(SIZE, component->dct_table, block, rows, column);                                \
    }                                                                                              \
    static AVX2 void avx2_##SIZE(j_decompress_ptr info, jpeg_component_info *component,            \
                                 JCOEFPTR block, JSAMPARRAY rows, JDIMENSION column)               \
    {                                                                                              \
        (void)info;                                                                                \
        transform_avx2(SIZE, component->dct_table, block, rows, column);                           \
    }

ROUTINES(3)
ROUTINES(5)
ROUTINES(6)
ROUTINES(7)
ROUTINES(10)
ROUTINES(12)
ROUTINES(14)

static const struct {
    int size;
    inverse_DCT_method_ptr plain, avx2;
} routines[] = {
    { 3, plain_3, avx2_3 },    { 5, plain_5, avx2_5 },    { 6, plain_6, avx2_6 },
    { 7, plain_7, avx2_7 },    { 10, plain_10, avx2_10 }, { 12, plain_12, avx2_12 },
    { 14, plain_14, avx2_14 },
};

static inverse_DCT_method_ptr
routine_of(int size)
{
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (routines[i].size == size)
            return tnd_cpu_has(TND_CPU_AVX2) ? routines[i].avx2 : routines[i].plain;
    return NULL;
}

/* The quantization table, cut to 16 bits as libjpeg does. */
static int16_t *
make_factors(struct jpeg_decompress_struct *info, const JQUANT_TBL *from)
{
    int16_t *factors =
        info->mem->alloc_small((j_common_ptr)info, JPOOL_IMAGE, DCTSIZE2 * sizeof *factors);

    for (int i = 0; i < DCTSIZE2; i++)
        factors[i] = (int16_t)from->quantval[i];
    return factors;
}

void
jpeg_idct_install(struct jpeg_decompress_struct *info)
{
    pthread_once(&cosines_once, make_cosines);
    for (int i = 0; i < info->num_components; i++) {
        jpeg_component_info *component = &info->comp_info[i];
        inverse_DCT_method_ptr routine = routine_of(component->DCT_scaled_size);

        if (routine == NULL || component->quant_table == NULL)
            continue;
        component->dct_table = make_factors(info, component->quant_table);
        info->idct->inverse_DCT[i] = routine;
    }
}
