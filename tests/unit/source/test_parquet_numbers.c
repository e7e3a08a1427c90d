/* test_parquet_numbers.c - packed bits, runs, differences, split bytes: against values known
 * beforehand, and cut short. */
#include "parquet_fixture.h"

#include "source/parquet/codec.h"
#include "source/parquet/delta.h"
#include "source/parquet/levels.h"
#include "source/parquet/runs.h"
#include "source/parquet/split.h"
#include "unit/test_file.h"

enum { MOST = 700 };

/* Pack some numbers, bit by bit. */
static void
pack(struct bytes *bytes, const uint64_t *numbers, size_t count, unsigned width)
{
    size_t size = (count * width + 7) / 8;
    uint8_t *packed = tnd_zalloc(size + 1, 1);

    for (size_t i = 0; i < count; i++)
        for (unsigned bit = 0; bit < width; bit++)
            if (numbers[i] >> bit & 1)
                packed[(i * width + bit) / 8] |= (uint8_t)(1U << (i * width + bit) % 8);
    bytes_add(bytes, packed, size);
    free(packed);
}

static void
add_slack(struct bytes *bytes)
{
    uint8_t ones[PARQUET_SLACK];

    memset(ones, 0xFF, sizeof ones);
    bytes_add(bytes, ones, sizeof ones);
    bytes->used -= sizeof ones;
}

static void
fill(uint64_t *numbers, size_t count, unsigned width)
{
    uint64_t seed = width + 1;

    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        numbers[i] = width == 0 ? 0 : (seed ^ seed >> 29) >> (64 - width);
    }
}

static void
numbers_of_every_width_are_unpacked(void **state)
{
    uint64_t numbers[MOST], wide[MOST + 8];
    uint32_t narrow[MOST + 8];

    (void)state;
    for (unsigned width = 0; width <= 64; width++)
        for (size_t count = 1; count < MOST; count += 77) {
            struct bytes bytes = { 0 };

            fill(numbers, count, width);
            pack(&bytes, numbers, count, width);
            add_slack(&bytes);
            bits_unpack_u64(bytes.data, width, count, wide);
            assert_memory_equal(wide, numbers, count * sizeof *wide);
            if (width <= 32) {
                bits_unpack_u32(bytes.data, width, count, narrow);
                for (size_t i = 0; i < count; i++)
                    assert_int_equal(narrow[i], numbers[i]);
            }
            free(bytes.data);
        }
}

/* 9 times 3, then 16 packed values, then 5 times 0. */
static void
add_runs(struct bytes *bytes, const uint64_t *packed, unsigned width)
{
    uint32_t three = 3, zero = 0;

    add_number(bytes, 9 << 1);
    bytes_add(bytes, &three, (width + 7) / 8);
    add_number(bytes, 2 << 1 | 1);
    pack(bytes, packed, 16, width);
    add_number(bytes, 5 << 1);
    bytes_add(bytes, &zero, (width + 7) / 8);
}

static void
runs_are_read_in_pieces_of_any_size(void **state)
{
    uint64_t packed[16];

    (void)state;
    for (unsigned width = 2; width <= 32; width += 3)
        for (size_t piece = 1; piece <= 30; piece++) {
            struct bytes bytes = { 0 };
            struct parquet_runs runs;
            uint32_t values[64];
            size_t done = 0;

            fill(packed, 16, width);
            add_runs(&bytes, packed, width);
            add_slack(&bytes);
            runs_open(&runs, (struct byte_view){ bytes.data, bytes.used }, width);
            for (; done + piece <= 30; done += piece)
                assert_true(runs_read_u32(&runs, values + done, piece));
            assert_true(runs_read_u32(&runs, values + done, 30 - done));
            for (size_t i = 0; i < 30; i++)
                assert_int_equal(values[i], i < 9 ? 3 : i < 25 ? packed[i - 9] : 0);
            assert_false(runs_read_u32(&runs, values, 1));
            free(bytes.data);
        }
}

static void
levels_of_one_bit_come_as_bytes(void **state)
{
    uint64_t packed[24];

    (void)state;
    fill(packed, 24, 1);
    for (size_t piece = 1; piece <= 24; piece++) {
        struct bytes bytes = { 0 };
        struct parquet_runs runs;
        uint8_t levels[64];

        add_number(&bytes, 3 << 1 | 1);
        pack(&bytes, packed, 24, 1);
        add_slack(&bytes);
        runs_open(&runs, (struct byte_view){ bytes.data, bytes.used }, 1);
        for (size_t done = 0; done < 24; done += piece)
            assert_true(runs_read_u8(&runs, levels + done, 24 - done < piece ? 24 - done : piece));
        for (size_t i = 0; i < 24; i++)
            assert_int_equal(levels[i], packed[i]);
        free(bytes.data);
    }
}

static void
runs_that_are_cut_or_too_wide_are_refused(void **state)
{
    uint64_t packed[16];
    struct bytes bytes = { 0 };
    struct parquet_runs runs;
    uint32_t values[64];

    (void)state;
    fill(packed, 16, 7);
    add_runs(&bytes, packed, 7);
    add_slack(&bytes);
    for (size_t cut = 0; cut < bytes.used; cut++) {
        runs_open(&runs, (struct byte_view){ bytes.data, cut }, 7);
        assert_false(runs_read_u32(&runs, values, 30));
    }
    runs_open(&runs, (struct byte_view){ (const uint8_t *)"\x02\x04        ", 2 }, 2);
    assert_false(runs_read_u32(&runs, values, 1)); /* 4 has three bits */
    free(bytes.data);
}

static void
one_run_of_a_value_is_passed_over(void **state)
{
    struct parquet_runs runs;
    struct byte_view bytes = { (const uint8_t *)"\x14\x01        ", 2 };

    (void)state;
    runs_open(&runs, bytes, 1);
    assert_true(runs_pass_over(&runs, 1, 10));
    runs_open(&runs, bytes, 1);
    assert_false(runs_pass_over(&runs, 1, 11));
    runs_open(&runs, bytes, 1);
    assert_false(runs_pass_over(&runs, 0, 10));
}

/* Differences in blocks of 128, four miniblocks each, of the given width. */
static void
add_delta(struct bytes *bytes, const int64_t *values, size_t count, unsigned width, int64_t least)
{
    uint64_t differences[128];

    add_number(bytes, 128);
    add_number(bytes, 4);
    add_number(bytes, count);
    add_signed(bytes, count > 0 ? values[0] : 0);
    for (size_t at = 1; at < count; at += 128) {
        add_signed(bytes, least);
        for (int i = 0; i < 4; i++)
            bytes_add(bytes, &(uint8_t){ (uint8_t)width }, 1);
        for (size_t i = 0; i < 128; i++)
            differences[i] = at + i < count ? (uint64_t)values[at + i] -
                                                  (uint64_t)values[at + i - 1] - (uint64_t)least
                                            : 0;
        /* Miniblocks without values are left out. */
        for (size_t i = 0; i < 4 && at + 32 * i < count; i++)
            pack(bytes, differences + 32 * i, 32, width);
    }
}

static void
differences_give_the_values_and_end_where_they_end(void **state)
{
    static const size_t counts[] = { 0, 1, 2, 33, 129, 600 };

    (void)state;
    for (unsigned width = 1; width <= 64; width++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct bytes bytes = { 0 };
            uint64_t steps[MOST];
            int64_t values[MOST], read[MOST] = { 0 };
            int32_t narrow[MOST];
            struct byte_view view;

            fill(steps, counts[c], width);
            for (size_t i = 0; i < counts[c]; i++)
                values[i] = (int64_t)((i > 0 ? (uint64_t)values[i - 1] : 0) + steps[i] - 5);
            add_delta(&bytes, values, counts[c], width, -5);
            bytes_add(&bytes, "rest", 4);
            add_slack(&bytes);
            view = (struct byte_view){ bytes.data, bytes.used };
            assert_true(delta_read_i64(&view, counts[c], read));
            assert_memory_equal(read, values, counts[c] * sizeof *values);
            assert_true(view.size == 4 && memcmp(view.data, "rest", 4) == 0);
            view = (struct byte_view){ bytes.data, bytes.used };
            assert_true(delta_read_i32(&view, counts[c], narrow));
            for (size_t i = 0; i < counts[c]; i++)
                assert_int_equal(narrow[i], (int32_t)values[i]);
            view = (struct byte_view){ bytes.data, bytes.used };
            assert_false(delta_read_i64(&view, counts[c] + 1, read));
            free(bytes.data);
        }
}

static void
differences_that_lie_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
    } lies[] = {
        { "\x80\x01\x00\x02\x00", 5 },             /* no miniblocks */
        { "\x04\x04\x02\x00", 4 },                 /* miniblocks of one value */
        { "\x80\x01\x04\x02\x00\x00\x41\x41", 7 }, /* 65 bits */
        { "\x80\x01\x04\x02\x00\x00\x08", 7 },     /* widths are cut off */
        { "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t bytes[128] = { 0 };
        struct byte_view view = { bytes, lies[i].count };
        int64_t values[16];

        memcpy(bytes, lies[i].bytes, lies[i].count);
        assert_false(delta_read_i64(&view, 2, values));
    }
}

static void
split_bytes_are_joined_for_every_width(void **state)
{
    uint8_t values[16 * 9], split[16 * 9], joined[16 * 9];

    (void)state;
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 37);
    for (size_t width = 1; width <= 16; width++)
        for (size_t count = 0; count <= 9; count++) {
            for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < width; k++)
                    split[k * count + i] = values[i * width + k];
            split_join(split, count, width, joined);
            assert_memory_equal(joined, values, count * width);
        }
}

/* Levels 0 to 2, where 2 is a value, of every width and around the length of a block. */
static void
values_are_moved_to_where_levels_say_that_they_are(void **state)
{
    static const size_t counts[] = { 1, 2, 254, 255, 256, 600 };
    const uint64_t other = 0x7777777777777777;

    (void)state;
    for (size_t width = 1; width <= 8; width *= 2)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint8_t levels[MOST], nulls[MOST], slots[8 * MOST];
            size_t count = counts[c], there = 0;

            for (size_t i = 0; i < count; i++) {
                levels[i] = (uint8_t)(i * i % 7 % 3);
                there += levels[i] == 2;
            }
            for (size_t i = 0; i < there * width; i++)
                slots[i] = (uint8_t)(i / width);
            assert_int_equal(levels_count(levels, count, 2), there);
            levels_spread(levels, count, 2, width, &other, slots);
            levels_nulls(levels, count, 2, nulls);
            for (size_t i = 0, value = 0; i < count; i++) {
                uint8_t expected = levels[i] == 2 ? (uint8_t)value++ : 0x77;

                for (size_t k = 0; k < width; k++)
                    assert_int_equal(slots[i * width + k], expected);
                assert_int_equal(nulls[i], levels[i] != 2);
            }
        }
}

static void
low_levels_are_left_out(void **state)
{
    uint8_t levels[] = { 2, 0, 1, 3, 0, 1 };

    (void)state;
    assert_int_equal(levels_highest(levels, sizeof levels), 3);
    assert_int_equal(levels_keep(levels, sizeof levels, 1), 4);
    assert_memory_equal(levels, "\2\1\3\1", 4);
}

static void
noise_is_not_unpacked_by_any_codec(void **state)
{
    uint8_t noise[256], to[512 + PARQUET_SLACK];

    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * i * 31 + 7);
    for (uint8_t codec = PARQUET_SNAPPY; codec <= PARQUET_CODECS; codec++)
        for (size_t bytes = 0; bytes <= sizeof noise; bytes += 16)
            assert_false(parquet_unpack(codec, (struct byte_view){ noise, bytes }, to, 512));
    assert_null(parquet_codec_obstacle(PARQUET_ZSTD));
    assert_non_null(parquet_codec_obstacle(PARQUET_LZO));
}

TEST_FILE(test_parquet_numbers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_width_are_unpacked),
        cmocka_unit_test(runs_are_read_in_pieces_of_any_size),
        cmocka_unit_test(levels_of_one_bit_come_as_bytes),
        cmocka_unit_test(runs_that_are_cut_or_too_wide_are_refused),
        cmocka_unit_test(one_run_of_a_value_is_passed_over),
        cmocka_unit_test(differences_give_the_values_and_end_where_they_end),
        cmocka_unit_test(differences_that_lie_are_refused),
        cmocka_unit_test(split_bytes_are_joined_for_every_width),
        cmocka_unit_test(values_are_moved_to_where_levels_say_that_they_are),
        cmocka_unit_test(low_levels_are_left_out),
        cmocka_unit_test(noise_is_not_unpacked_by_any_codec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
