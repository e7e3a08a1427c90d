/* bench_codec.c - how fast columns are stored and restored: codec
 *
 * Prints one JSON object a line: GB/s of the decoded column for encoding and decoding, beside a
 * memcpy of it, and how much smaller it gets. Columns are 256 KiB, as a slot's are, and the best of
 * many passes counts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../data/draw.h"
#include "core/clock.h"
#include "core/codec.h"
#include "core/cpu.h"
#include "core/crc32c.h"
#include "core/memory.h"
#include "core/status.h"

#define COLUMN_BYTES (256 << 10)
#define PASSES 400
#define SEED 20240607

static const char *const level_names[TND_CPU_LEVELS] = { "portable", "sse42", "avx2", "avx512",
                                                         "vbmi2" };

static void
must_be_ok(tundish_status status)
{
    if (status == TUNDISH_OK)
        return;
    fprintf(stderr, "codec: %s\n", tnd_error_text());
    exit(1);
}

/* Ids below 2^bits, frequent ones small, as from a vocabulary sorted by frequency. */
static void
make_ids(uint8_t *column, unsigned value_bytes, unsigned bits)
{
    for (uint64_t i = 0; i < COLUMN_BYTES / value_bytes; i++) {
        uint64_t id = bits == 0 ? 0 : draw_zipf(draw_uniform(SEED, i, 0), 1U << bits);

        memcpy(column + i * value_bytes, &id, value_bytes);
    }
}

static double
gb_per_second(int64_t ns)
{
    return (double)COLUMN_BYTES / (double)ns;
}

struct counters {
    int64_t encode_ns, decode_ns, copy_ns;
    uint64_t stored_bytes;
};

static void
keep_least(int64_t *least_ns, int64_t start_ns)
{
    int64_t ns = tnd_clock_ns() - start_ns;

    if (ns < *least_ns)
        *least_ns = ns;
}

static struct counters
measure(const struct tnd_codec *codec, const uint8_t *column, int passes)
{
    struct counters counters = { INT64_MAX, INT64_MAX, INT64_MAX, 0 };
    struct tnd_codec_context *context;
    uint64_t bound;
    uint8_t *stored, *back = tnd_alloc(COLUMN_BYTES);

    must_be_ok(tnd_codec_context_open(1, &context));
    must_be_ok(tnd_codec_bound(codec, COLUMN_BYTES, &bound));
    stored = tnd_alloc(bound + 1);
    for (int pass = 0; pass < passes; pass++) {
        int64_t start_ns = tnd_clock_ns();

        must_be_ok(tnd_codec_encode(codec, column, COLUMN_BYTES, stored, bound, context,
                                    &counters.stored_bytes));
        keep_least(&counters.encode_ns, start_ns);
        start_ns = tnd_clock_ns();
        must_be_ok(
            tnd_codec_decode(codec, stored, counters.stored_bytes, back, COLUMN_BYTES, context));
        keep_least(&counters.decode_ns, start_ns);
        start_ns = tnd_clock_ns();
        memcpy(back, column, COLUMN_BYTES);
        __asm__ volatile("" : : "r"(back) : "memory");
        keep_least(&counters.copy_ns, start_ns);
    }
    tnd_codec_context_close(context);
    free(stored);
    free(back);
    return counters;
}

static void
run(const struct tnd_codec *codec, const uint8_t *column, const char *what, const char *path)
{
    const struct counters counters =
        measure(codec, column, codec->number == TND_CODEC_ZSTD ? 20 : PASSES);

    printf("{\"bench\": \"codec\", \"codec\": \"%s\", \"column\": \"%s\", \"width\": %u, "
           "\"level\": %d, \"path\": \"%s\", \"ratio\": %.2f, \"encode_gb_per_s\": %.2f, "
           "\"decode_gb_per_s\": %.2f, \"memcpy_gb_per_s\": %.2f}\n",
           tnd_codec_name(codec), what, codec->width, codec->level, path,
           (double)COLUMN_BYTES / (double)counters.stored_bytes, gb_per_second(counters.encode_ns),
           gb_per_second(counters.decode_ns), gb_per_second(counters.copy_ns));
}

static void
run_integers(uint8_t *column, unsigned value_bytes, enum tnd_cpu_level level)
{
    const char *what = value_bytes == 8 ? "int64" : "int32";
    static const struct tnd_codec codecs[] = {
        { .number = TND_CODEC_NARROW, .width = 1 },   { .number = TND_CODEC_NARROW, .width = 2 },
        { .number = TND_CODEC_NARROW, .width = 4 },   { .number = TND_CODEC_BITPACK, .width = 5 },
        { .number = TND_CODEC_BITPACK, .width = 12 }, { .number = TND_CODEC_BITPACK, .width = 17 },
        { .number = TND_CODEC_BITPACK, .width = 24 }, { .number = TND_CODEC_BITPACK, .width = 30 },
    };

    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        struct tnd_codec codec = codecs[i];
        unsigned bits = codec.number == TND_CODEC_NARROW ? codec.width * 8U : codec.width;

        codec.value_bytes = (uint8_t)value_bytes;
        if (codec.number == TND_CODEC_NARROW && codec.width >= value_bytes)
            continue;
        make_ids(column, value_bytes, bits < 24 ? bits : 24);
        run(&codec, column, what, level_names[level]);
    }
}

static void
run_crc(const uint8_t *column, enum tnd_cpu_level level)
{
    const size_t sizes[] = { 16, 64, 256, 740, 4096, COLUMN_BYTES };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t count = COLUMN_BYTES / sizes[i];
        int64_t least_ns = INT64_MAX;
        uint32_t crc = 0;

        for (int pass = 0; pass < PASSES / 4; pass++) {
            const int64_t start_ns = tnd_clock_ns();

            for (size_t j = 0; j < count; j++)
                crc += tnd_crc32c(0, column + j * sizes[i], sizes[i]);
            keep_least(&least_ns, start_ns);
        }
        printf("{\"bench\": \"crc32c\", \"bytes\": %zu, \"path\": \"%s\", \"gb_per_s\": %.2f, "
               "\"digest\": %" PRIu32 "}\n",
               sizes[i], level_names[level], (double)(count * sizes[i]) / (double)least_ns, crc);
    }
}

int
main(void)
{
    uint8_t *column = tnd_alloc(COLUMN_BYTES);

    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        if (tnd_cpu_use((enum tnd_cpu_level)level)) {
            run_integers(column, 8, (enum tnd_cpu_level)level);
            run_integers(column, 4, (enum tnd_cpu_level)level);
            run_crc(column, (enum tnd_cpu_level)level);
        }
    make_ids(column, 8, 17);
    for (int level = -5; level <= 3; level += 2)
        run(&(struct tnd_codec){ .number = TND_CODEC_ZSTD, .width = 18, .level = (int8_t)level },
            column, "int64", "-");
    free(column);
    return 0;
}
