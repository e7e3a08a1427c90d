/* test_codec.c - what goes in comes out, on every path; what no encoder wrote does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/codec.h"
#include "core/cpu.h"
#include "core/status.h"
#include "unit/test_file.h"

static struct tnd_codec_context *context;

static int
open_context(void **state)
{
    (void)state;
    return tnd_codec_context_open(1, &context) != TUNDISH_OK;
}

static int
close_context(void **state)
{
    (void)state;
    tnd_codec_context_close(context);
    return 0;
}

static uint64_t
random_bits(unsigned bits)
{
    uint64_t value = 0;

    for (int i = 0; i < 5; i++)
        value = value << 15 ^ (uint64_t)rand();
    return bits == 0 ? 0 : value >> (64 - bits);
}

/* `count` values of base .. base + 2^bits - 1, both ends among them. */
static uint8_t *
make_column(unsigned value_bytes, uint64_t count, int64_t base, unsigned bits)
{
    uint8_t *column = malloc(count * value_bytes + 1); /* exact, for the sanitizer */

    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = random_bits(bits);

        if (i % 5 == 0)
            value = bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
        value += (uint64_t)base;
        memcpy(column + i * value_bytes, &value, value_bytes);
    }
    return column;
}

static uint64_t
bound_of(const struct tnd_codec *codec, uint64_t bytes)
{
    uint64_t bound;

    assert_int_equal(tnd_codec_bound(codec, bytes, &bound), TUNDISH_OK);
    return bound;
}

/* Stored and restored in buffers of exactly the size, nothing may be touched beyond. */
static void
goes_and_comes_back(const struct tnd_codec *codec, const uint8_t *column, uint64_t bytes)
{
    const uint64_t bound = bound_of(codec, bytes);
    uint8_t *stored = malloc(bound + 16);
    uint8_t *back = malloc(bytes + 16);
    uint64_t stored_bytes;

    memset(stored + bound, 0xA5, 16);
    memset(back + bytes, 0xA5, 16);
    assert_int_equal(tnd_codec_encode(codec, column, bytes, stored, bound, context, &stored_bytes),
                     TUNDISH_OK);
    assert_true(stored_bytes <= bound);
    assert_int_equal(tnd_codec_decode(codec, stored, stored_bytes, back, bytes, context),
                     TUNDISH_OK);
    assert_memory_equal(back, column, bytes);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(stored[bound + (unsigned)i], 0xA5);
        assert_int_equal(back[bytes + (unsigned)i], 0xA5);
    }
    /* The same lengths, off by one, are refused. */
    if (stored_bytes > 0)
        assert_int_equal(tnd_codec_decode(codec, stored, stored_bytes - 1, back, bytes, context),
                         TUNDISH_E_CORRUPT);
    assert_int_equal(tnd_codec_decode(codec, stored, stored_bytes + 1, back, bytes, context),
                     TUNDISH_E_CORRUPT);
    free(stored);
    free(back);
}

static void
on_every_path(void (*check)(void))
{
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        if (tnd_cpu_use((enum tnd_cpu_level)level))
            check();
}

static void
check_bitpack(void)
{
    const uint64_t counts[] = { 0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 1003 };
    const int64_t bases[] = { 0, 1, -7, INT64_MIN, INT64_MAX, 1 << 20 };

    for (unsigned value_bytes = 4; value_bytes <= 8; value_bytes += 4)
        for (unsigned width = 0; width <= 32; width++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                const struct tnd_codec codec = { .number = TND_CODEC_BITPACK,
                                                 .value_bytes = (uint8_t)value_bytes,
                                                 .width = (uint8_t)width,
                                                 .base = bases[(width + i) % 6] };
                uint8_t *column = make_column(value_bytes, counts[i], codec.base, width);

                goes_and_comes_back(&codec, column, counts[i] * value_bytes);
                free(column);
            }
}

static void
bitpacked_columns_come_back(void **state)
{
    (void)state;
    on_every_path(check_bitpack);
}

static void
check_narrow(void)
{
    const struct tnd_codec codecs[] = {
        { TND_CODEC_NARROW, 8, 1, 0, 0, -128 },      { TND_CODEC_NARROW, 8, 2, 0, 0, 5 },
        { TND_CODEC_NARROW, 8, 4, 0, 0, INT64_MIN }, { TND_CODEC_NARROW, 4, 1, 0, 0, -1 },
        { TND_CODEC_NARROW, 4, 2, 0, 0, INT32_MAX },
    };

    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        for (uint64_t count = 0; count < 300; count += count < 40 ? 1 : 61) {
            uint8_t *column =
                make_column(codecs[i].value_bytes, count, codecs[i].base, codecs[i].width * 8U);

            goes_and_comes_back(&codecs[i], column, count * codecs[i].value_bytes);
            free(column);
        }
}

static void
narrowed_columns_come_back(void **state)
{
    (void)state;
    on_every_path(check_narrow);
}

static void
zstd_columns_come_back(void **state)
{
    const uint64_t sizes[] = { 0, 1, 1000, 65535, 65536, 65537, 300000 };

    (void)state;
    for (uint8_t width = 16; width <= 20; width++)
        for (int level = -5; level <= 5; level += 5)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                const struct tnd_codec codec = { .number = TND_CODEC_ZSTD,
                                                 .width = width,
                                                 .level = (int8_t)level };
                uint8_t *column = make_column(1, sizes[i], 0, level < 0 ? 8 : 3);

                goes_and_comes_back(&codec, column, sizes[i]);
                free(column);
            }
}

static void
raw_columns_come_back(void **state)
{
    const struct tnd_codec codec = { .number = TND_CODEC_RAW };

    (void)state;
    goes_and_comes_back(&codec, (const uint8_t *)"abc", 3);
    goes_and_comes_back(&codec, NULL, 0);
}

/* The layout is a promise to decoders elsewhere, GPUs among them. */
static void
stored_bytes_are_as_documented(void **state)
{
    const int64_t values[] = { 11, 12, 13, 17, 10 };
    const struct tnd_codec packed = {
        .number = TND_CODEC_BITPACK, .value_bytes = 8, .width = 3, .base = 10
    };
    const struct tnd_codec narrow = {
        .number = TND_CODEC_NARROW, .value_bytes = 8, .width = 2, .base = 10
    };
    uint8_t stored[16];
    uint64_t bytes;

    (void)state;
    assert_int_equal(sizeof(struct tnd_codec), 16);
    assert_int_equal(tnd_codec_encode(&packed, values, 40, stored, 16, NULL, &bytes), TUNDISH_OK);
    assert_int_equal(bytes, 2);
    assert_int_equal(stored[0], 0xD1); /* 1 | 2 << 3 | 3 << 6 */
    assert_int_equal(stored[1], 0x0E); /* 7 << 1 | 0 << 4 */
    assert_int_equal(tnd_codec_encode(&narrow, values, 40, stored, 16, NULL, &bytes), TUNDISH_OK);
    assert_int_equal(bytes, 10);
    assert_memory_equal(stored, "\1\0\2\0\3\0\7\0\0\0", 10);
}

static void
check_values_outside(void)
{
    for (uint64_t at = 0; at < 70; at += 3)
        for (unsigned value_bytes = 4; value_bytes <= 8; value_bytes += 4)
            for (int sign = -1; sign <= 1; sign += 2)
                for (int kind = 0; kind < 2; kind++) {
                    const struct tnd_codec codec = {
                        .number = kind == 0 ? TND_CODEC_BITPACK : TND_CODEC_NARROW,
                        .value_bytes = (uint8_t)value_bytes,
                        .width = kind == 0 ? 16 : 2,
                        .base = 100,
                    };
                    uint8_t *column = make_column(value_bytes, 70, 100, 16);
                    uint8_t stored[256];
                    uint64_t bytes = 77;
                    int64_t outside = sign < 0 ? 99 : 100 + 65536;

                    memcpy(column + at * value_bytes, &outside, value_bytes);
                    assert_int_equal(tnd_codec_encode(&codec, column, 70 * value_bytes, stored,
                                                      sizeof stored, NULL, &bytes),
                                     TUNDISH_E_DATA);
                    assert_int_equal(bytes, 77);
                    free(column);
                }
}

static void
a_value_outside_of_the_range_is_never_stored_wrong(void **state)
{
    (void)state;
    on_every_path(check_values_outside);
}

static void
malformed_codecs_are_refused(void **state)
{
    const struct tnd_codec malformed[] = {
        { TND_CODEC_RAW, 8, 0, 0, 0, 0 },      { TND_CODEC_NARROW, 8, 3, 0, 0, 0 },
        { TND_CODEC_NARROW, 4, 4, 0, 0, 0 },   { TND_CODEC_NARROW, 0, 1, 0, 0, 0 },
        { TND_CODEC_BITPACK, 8, 33, 0, 0, 0 }, { TND_CODEC_BITPACK, 3, 3, 0, 0, 0 },
        { TND_CODEC_ZSTD, 0, 15, 0, 0, 0 },    { TND_CODEC_ZSTD, 0, 21, 0, 0, 0 },
        { TND_CODEC_NARROW, 8, 1, 0, 1, 0 },
    };
    const struct tnd_codec unknown = { .number = TND_CODEC_USER };
    const struct tnd_codec narrow = { TND_CODEC_NARROW, 8, 1, 0, 0, 0 };
    uint8_t in[64] = { 0 }, out[64];
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(tnd_codec_bound(&malformed[i], 8, &bytes), TUNDISH_E_ARGUMENT);
        assert_int_equal(tnd_codec_decode(&malformed[i], in, 8, out, 8, context),
                         TUNDISH_E_CORRUPT);
    }
    assert_int_equal(tnd_codec_decode(&unknown, in, 8, out, 8, context), TUNDISH_E_LAYOUT);
    assert_string_equal(tnd_codec_name(&unknown), "?");
    assert_int_equal(tnd_codec_bound(&narrow, 9, &bytes), TUNDISH_E_ARGUMENT);
    assert_int_equal(tnd_codec_bound(&narrow, UINT64_MAX - 7, &bytes), TUNDISH_E_ARGUMENT);
    assert_int_equal(tnd_codec_encode(&narrow, in, 64, out, 7, NULL, &bytes), TUNDISH_E_ARGUMENT);
}

static void
rubbish_for_zstd_is_refused_or_restores_something(void **state)
{
    const struct tnd_codec codec = { .number = TND_CODEC_ZSTD, .width = 16, .level = 1 };
    const uint64_t bytes = 150000;
    uint8_t *column = make_column(1, bytes, 0, 2);
    uint8_t *stored = malloc(bound_of(&codec, bytes));
    uint8_t *back = malloc(bytes);
    uint64_t stored_bytes;

    (void)state;
    srand(3);
    assert_int_equal(tnd_codec_encode(&codec, column, bytes, stored, bound_of(&codec, bytes),
                                      context, &stored_bytes),
                     TUNDISH_OK);
    for (int round = 0; round < 2000; round++) {
        uint64_t at = round % 2 == 0 ? (unsigned)rand() % 12 : (unsigned)rand() % stored_bytes;
        uint8_t before = stored[at];

        stored[at] = (uint8_t)rand();
        (void)tnd_codec_decode(&codec, stored, stored_bytes, back, bytes, context);
        stored[at] = before;
    }
    assert_int_equal(tnd_codec_decode(&codec, stored, stored_bytes, back, bytes, context),
                     TUNDISH_OK);
    free(column);
    free(stored);
    free(back);
}

static void
a_range_chooses_its_codec(void **state)
{
    struct tnd_codec codec = tnd_codec_for_range(8, 0, 100000);

    (void)state;
    assert_int_equal(codec.number, TND_CODEC_BITPACK);
    assert_int_equal(codec.width, 17);
    codec = tnd_codec_for_range(8, -1, 254);
    assert_int_equal(codec.number, TND_CODEC_NARROW);
    assert_int_equal(codec.width, 1);
    assert_int_equal(codec.base, -1);
    codec = tnd_codec_for_range(4, INT32_MIN, INT32_MAX);
    assert_int_equal(codec.number, TND_CODEC_RAW);
    codec = tnd_codec_for_range(8, INT32_MIN, INT32_MAX);
    assert_int_equal(codec.number, TND_CODEC_NARROW);
    assert_int_equal(codec.width, 4);
    codec = tnd_codec_for_range(8, INT64_MIN, INT64_MAX);
    assert_int_equal(codec.number, TND_CODEC_RAW);
    codec = tnd_codec_for_range(8, 9, 9);
    assert_int_equal(codec.number, TND_CODEC_BITPACK);
    assert_int_equal(codec.width, 0);
    codec = tnd_codec_for_range(8, 1, 0);
    assert_int_equal(codec.number, TND_CODEC_RAW);
    codec = tnd_codec_for_range(4, 0, 30000000);
    assert_int_equal(codec.number, TND_CODEC_BITPACK);
    assert_int_equal(codec.width, 25);
}

TEST_FILE(test_codec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitpacked_columns_come_back),
        cmocka_unit_test(narrowed_columns_come_back),
        cmocka_unit_test(zstd_columns_come_back),
        cmocka_unit_test(raw_columns_come_back),
        cmocka_unit_test(stored_bytes_are_as_documented),
        cmocka_unit_test(a_value_outside_of_the_range_is_never_stored_wrong),
        cmocka_unit_test(malformed_codecs_are_refused),
        cmocka_unit_test(rubbish_for_zstd_is_refused_or_restores_something),
        cmocka_unit_test(a_range_chooses_its_codec),
    };

    return cmocka_run_group_tests(tests, open_context, close_context);
}
