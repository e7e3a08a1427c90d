/* resample_bilinear.c - interpolate between four neighbours: first along the row, then between two
 * rows. A stretched row serves all target rows next to it, so each is made once, when it comes;
 * rows may come from a file that is being decoded. The AVX2 form does the same operations on two
 * pixels of three channels at a time. */
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "content/images/resample_private.h"
#include "core/cpu.h"

/* The two source positions of a value, and its distance from the lower one. */
struct tap {
    int64_t low, high;
    float part;
};

enum { REACH = 16 }; /* bytes of one load */

/* Two neighbouring pixels of three channels, whose sources lie within REACH bytes. */
struct pair {
    float parts[8];
    uint8_t order[REACH]; /* which of the bytes are low values, which high */
    int32_t first;
};

/* For each pixel of a row: offsets of its sources, and its fraction four times. */
struct row_taps {
    int64_t width, channels;
    int32_t *low, *high;
    float *parts;
    int64_t pair_count; /* from the left */
    struct pair *pairs;
};

typedef void stretch_bytes_function(const struct row_taps *taps, const uint8_t *row, float *to);

static struct tap
tap_at(int64_t index, float scale, int64_t limit)
{
    float at = ((float)index + 0.5F) * scale - 0.5F;
    float low = floorf(at);

    return (struct tap){ .low = resample_bound((int64_t)low, limit),
                         .high = resample_bound((int64_t)ceilf(at), limit),
                         .part = at - low };
}

/* Combine pixels to pairs, as long as a load does not reach beyond the row. */
static void
pair_up(struct row_taps *taps, int64_t row_values)
{
    for (int64_t x = 0; x + 2 <= taps->width; x += 2) {
        const int32_t *low = taps->low + x, *high = taps->high + x;
        struct pair *pair = &taps->pairs[x / 2];

        if (low[0] + REACH > row_values || high[1] + 3 > low[0] + REACH)
            return;
        pair->first = low[0];
        memcpy(pair->parts, taps->parts + x * 4, sizeof pair->parts);
        memset(pair->order, 0x80, REACH); /* zeros */
        for (int32_t c = 0; c < 3; c++) {
            pair->order[c] = (uint8_t)c;
            pair->order[4 + c] = (uint8_t)(low[1] - low[0] + c);
            pair->order[8 + c] = (uint8_t)(high[0] - low[0] + c);
            pair->order[12 + c] = (uint8_t)(high[1] - low[0] + c);
        }
        taps->pair_count++;
    }
}

static struct row_taps
make_row_taps(const struct resample *resample, struct resample_work *work)
{
    size_t width = (size_t)resample->to_width;
    struct row_taps taps = { .width = resample->to_width, .channels = resample->channels };
    float scale = (float)resample->from_width / (float)resample->to_width;

    taps.parts = resample_room(work, ROOM_X,
                               (width + 2) * (4 * sizeof(float) + 8 + sizeof(struct pair) / 2));
    taps.low = (int32_t *)(taps.parts + (width + 2) * 4);
    taps.high = taps.low + width + 2;
    taps.pairs = (struct pair *)(taps.high + width + 2);
    for (size_t x = 0; x < width; x++) {
        struct tap tap = tap_at((int64_t)x, scale, resample->from_width);

        taps.low[x] = (int32_t)(tap.low * resample->channels);
        taps.high[x] = (int32_t)(tap.high * resample->channels);
        for (int k = 0; k < 4; k++)
            taps.parts[x * 4 + (size_t)k] = tap.part;
    }
    if (taps.channels == 3)
        pair_up(&taps, resample->from_width * 3);
    return taps;
}

static void
stretch_bytes(const struct row_taps *taps, const uint8_t *row, float *to)
{
    for (int64_t x = 0; x < taps->width; x++) {
        const uint8_t *low = row + taps->low[x], *high = row + taps->high[x];
        float part = taps->parts[x * 4];

        for (int64_t c = 0; c < taps->channels; c++) {
            float a = (float)low[c], b = (float)high[c];

            *to++ = a + (b - a) * part;
        }
    }
}

static void
stretch_floats(const struct row_taps *taps, const float *row, float *to)
{
    for (int64_t x = 0; x < taps->width; x++) {
        const float *low = row + taps->low[x], *high = row + taps->high[x];
        float part = taps->parts[x * 4];

        for (int64_t c = 0; c < taps->channels; c++)
            *to++ = low[c] + (high[c] - low[c]) * part;
    }
}

static void
mix(const float *a, const float *b, float part, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = a[i] + (b[i] - a[i]) * part;
}

static void
mix_to_bytes(const float *a, const float *b, float part, int64_t count, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint8_t)(int32_t)(a[i] + (b[i] - a[i]) * part);
}

#if defined(__x86_64__)

static inline __attribute__((target("avx2"))) __m256
two_pixels(const uint8_t *row, int32_t first, int32_t second)
{
    int32_t a, b;

    memcpy(&a, row + first, sizeof a);
    memcpy(&b, row + second, sizeof b);
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(a), b, 1)));
}

/* For three channels. Reads one byte and writes two values beyond the row; both have room for
 * it. */
static __attribute__((target("avx2"))) void
stretch_bytes_avx2(const struct row_taps *taps, const uint8_t *row, float *to)
{
    const __m256i close_up = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    const int32_t *low = taps->low, *high = taps->high;
    int64_t x = 2 * taps->pair_count;
    const struct pair *end = taps->pairs + taps->pair_count;

    for (const struct pair *pair = taps->pairs; pair < end; pair++, to += 6) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(row + pair->first));
        __m128i order = _mm_loadu_si128((const __m128i *)(const void *)pair->order);
        __m128i lows = _mm_shuffle_epi8(bytes, order), highs = _mm_unpackhi_epi64(lows, lows);
        __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(lows));
        __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(highs));
        __m256 part = _mm256_loadu_ps(pair->parts);
        __m256 value = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), part));

        _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(value, close_up));
    }
    for (; x + 2 <= taps->width; x += 2, to += 6) {
        __m256 a = two_pixels(row, low[x], low[x + 1]);
        __m256 b = two_pixels(row, high[x], high[x + 1]);
        __m256 part = _mm256_loadu_ps(taps->parts + x * 4);
        __m256 value = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), part));

        _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(value, close_up));
    }
    for (; x < taps->width; x++)
        for (int c = 0; c < 3; c++) {
            float a = (float)row[low[x] + c], b = (float)row[high[x] + c];

            *to++ = a + (b - a) * taps->parts[x * 4];
        }
}

static inline __attribute__((target("avx2"))) __m256
mixed(const float *a, const float *b, __m256 part)
{
    __m256 low = _mm256_loadu_ps(a), high = _mm256_loadu_ps(b);

    return _mm256_add_ps(low, _mm256_mul_ps(_mm256_sub_ps(high, low), part));
}

static __attribute__((target("avx2"))) void
mix_avx2(const float *a, const float *b, float part, int64_t count, float *to)
{
    __m256 parts = _mm256_set1_ps(part);
    int64_t i = 0;

    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, mixed(a + i, b + i, parts));
    mix(a + i, b + i, part, count - i, to + i);
}

static __attribute__((target("avx2"))) void
mix_to_bytes_avx2(const float *a, const float *b, float part, int64_t count, uint8_t *to)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256 parts = _mm256_set1_ps(part);
    int64_t i = 0;

    for (; i + 32 <= count; i += 32) {
        __m256i v[4];

        for (int k = 0; k < 4; k++)
            v[k] = _mm256_cvttps_epi32(mixed(a + i + k * 8, b + i + k * 8, parts));
        v[0] =
            _mm256_packus_epi16(_mm256_packus_epi32(v[0], v[1]), _mm256_packus_epi32(v[2], v[3]));
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_permutevar8x32_epi32(v[0], order));
    }
    mix_to_bytes(a + i, b + i, part, count - i, to + i);
}

#endif

struct kernels {
    stretch_bytes_function *stretch_bytes;
    void (*mix)(const float *a, const float *b, float part, int64_t count, float *to);
    void (*mix_to_bytes)(const float *a, const float *b, float part, int64_t count, uint8_t *to);
};

static struct kernels
choose_kernels(int64_t channels)
{
    struct kernels kernels = { stretch_bytes, mix, mix_to_bytes };

#if defined(__x86_64__)
    if (tnd_cpu_has(TND_CPU_AVX2)) {
        kernels.mix = mix_avx2;
        kernels.mix_to_bytes = mix_to_bytes_avx2;
        if (channels == 3)
            kernels.stretch_bytes = stretch_bytes_avx2;
    }
#else
    (void)channels;
#endif
    return kernels;
}

/* The state of resizing row by row. Target row `y` is next. Its two source rows are equal or
 * neighbours, so stretched rows alternate between two buffers. */
struct resample_rows {
    struct kernels kernels;
    struct row_taps taps;
    float scale;
    int64_t from_height, to_height, row_values;
    float *stretched[2];
    int64_t next; /* row of the source */
    int64_t y;
    struct tap tap;
    float *to;
    uint8_t *to_bytes;
};

struct resample_rows *
resample_rows_open(const struct resample *resample, struct resample_work *work, float *to,
                   uint8_t *to_bytes)
{
    struct resample_rows *rows = resample_room(work, ROOM_MIDDLE, sizeof *rows);
    int64_t row_values = resample->to_width * resample->channels;
    size_t room = (size_t)row_values + 8;
    float *stretched = resample_room(work, ROOM_ROWS, room * 2 * sizeof *stretched);

    *rows = (struct resample_rows){
        .kernels = choose_kernels(resample->channels),
        .taps = make_row_taps(resample, work),
        .scale = (float)resample->from_height / (float)resample->to_height,
        .from_height = resample->from_height,
        .to_height = resample->to_height,
        .row_values = row_values,
        .stretched = { stretched, stretched + room },
        .to = to,
        .to_bytes = to_bytes,
    };
    rows->tap = tap_at(0, rows->scale, rows->from_height);
    return rows;
}

static void
mix_row(struct resample_rows *rows)
{
    const float *low = rows->stretched[rows->tap.low & 1];
    const float *high = rows->stretched[rows->tap.high & 1];
    int64_t at = rows->y * rows->row_values;

    if (rows->to != NULL)
        rows->kernels.mix(low, high, rows->tap.part, rows->row_values, rows->to + at);
    else
        rows->kernels.mix_to_bytes(low, high, rows->tap.part, rows->row_values,
                                   rows->to_bytes + at);
    rows->tap = tap_at(++rows->y, rows->scale, rows->from_height);
}

static void
next_row(struct resample_rows *rows, const uint8_t *bytes, const float *floats)
{
    int64_t row = rows->next++;
    float *to = rows->stretched[row & 1];

    if (rows->y == rows->to_height || row < rows->tap.low)
        return;
    if (bytes != NULL)
        rows->kernels.stretch_bytes(&rows->taps, bytes, to);
    else
        stretch_floats(&rows->taps, floats, to);
    while (rows->y < rows->to_height && rows->tap.high <= row)
        mix_row(rows);
}

void
resample_rows_next(struct resample_rows *rows, const uint8_t *row)
{
    next_row(rows, row, NULL);
}

void
resample_bilinear(const struct resample *resample, struct resample_work *work, const uint8_t *bytes,
                  const float *floats, float *to)
{
    struct resample_rows *rows = resample_rows_open(resample, work, to, NULL);

    for (int64_t y = 0; y < resample->from_height; y++)
        next_row(rows, bytes != NULL ? bytes + y * resample->row_values : NULL,
                 floats != NULL ? floats + y * resample->row_values : NULL);
}
