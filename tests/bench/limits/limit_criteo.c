/* limit_criteo.c - the click log from TSV: limit_criteo DIR [THREADS] */
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include "clicks.h"
#include "core/memory.h"

enum { BATCH_ROWS = 8192, BUFFER_BYTES = 1 << 20 };

/* Where tabs and newlines are, 64 bytes at a time. Returns how many there are. */
LIMIT_FAST static size_t
find_delimiters(const uint8_t *text, size_t bytes, uint32_t *positions)
{
    const __m256i tab = _mm256_set1_epi8('\t'), newline = _mm256_set1_epi8('\n');
    size_t count = 0;

    for (size_t at = 0; at < bytes; at += 64) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(text + at));
        __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(text + at + 32));
        uint32_t low_bits = (uint32_t)_mm256_movemask_epi8(
            _mm256_or_si256(_mm256_cmpeq_epi8(low, tab), _mm256_cmpeq_epi8(low, newline)));
        uint32_t high_bits = (uint32_t)_mm256_movemask_epi8(
            _mm256_or_si256(_mm256_cmpeq_epi8(high, tab), _mm256_cmpeq_epi8(high, newline)));
        uint64_t bits = (uint64_t)high_bits << 32 | low_bits;

        if (bytes - at < 64)
            bits &= (UINT64_C(1) << (bytes - at)) - 1;
        for (; bits != 0; bits &= bits - 1)
            positions[count++] = (uint32_t)at + (uint32_t)__builtin_ctzll(bits);
    }
    return count;
}

/* An empty field is 0. */
static int64_t
parse_integer(const uint8_t *text, const uint8_t *end)
{
    int64_t value = 0;

    if (text < end && *text == '-')
        return -1;
    for (; text < end; text++)
        value = value * 10 + (*text - '0');
    return value;
}

static void
take_row(struct clicks *clicks, const uint8_t *text, uint32_t start, const uint32_t *ends)
{
    struct clicks_batch *batch = clicks_batch(clicks);
    uint32_t row = clicks_row(clicks);

    batch->label[row] = (float)(text[start] - '0');
    for (uint32_t i = 0; i < CLICKS_INTEGERS; i++)
        batch->dense[row][i] = clicks_log(parse_integer(text + ends[i] + 1, text + ends[i + 1]));
    for (uint32_t i = 0; i < CLICKS_TERMS; i++) {
        const uint8_t *term = text + ends[CLICKS_INTEGERS + i] + 1;
        uint64_t key = 0;

        if (text + ends[CLICKS_INTEGERS + i + 1] > term)
            memcpy(&key, term, sizeof(key));
        clicks_put_key(clicks, i, key);
    }
    clicks_end_row(clicks);
}

static void
pass(struct share *share)
{
    struct clicks *clicks = tnd_zalloc(1, sizeof(*clicks));
    uint32_t *positions = tnd_zalloc(BUFFER_BYTES, sizeof(*positions));
    struct input *input = &share->input;

    clicks->share = share;
    clicks->batch_rows = BATCH_ROWS;
    while (input_fill(input)) {
        const uint8_t *text = input->buffer;
        size_t count = find_delimiters(text, input->used, positions);
        uint32_t start = 0;

        for (size_t row = 0; row < count / CLICKS_COLUMNS; row++) {
            const uint32_t *ends = positions + row * CLICKS_COLUMNS;

            take_row(clicks, text, start, ends);
            start = ends[CLICKS_COLUMNS - 1] + 1;
        }
        input->begin = start;
    }
    clicks_end(clicks);
    free(positions);
    free(clicks);
}

int
main(int argc, char **argv)
{
    const char *folder = limit_folder(argc, argv), *path = limit_path("%s/train.tsv", folder);
    const struct limit limit = { sizeof(struct clicks_batch), BUFFER_BYTES, true, pass };

    clicks_load(folder);
    return limit_measure(&limit, &path, 1, limit_threads(argc, argv));
}
