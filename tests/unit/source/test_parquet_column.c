/* test_parquet_column.c - chunks of pages: values, nulls, lists, and pages that lie. */
#include "parquet_fixture.h"

#include "source/parquet/codec.h"
#include "source/parquet/column.h"
#include "unit/test_file.h"

struct made {
    struct parquet_leaf leaf;
    struct parquet_chunk chunk;
    struct bytes bytes;
    const void *fallback;
    uint64_t rows;
};

static tundish_status
decode(struct made *made, struct parquet_column *ret_column)
{
    struct parquet_decode what = { .leaf = &made->leaf,
                                   .chunk = &made->chunk,
                                   .fallback = made->fallback,
                                   .row_count = made->rows,
                                   .bytes_max = 1 << 20 };
    uint8_t *copy = tnd_zalloc(made->bytes.used + 64, 1);
    tundish_status status;

    memcpy(copy, made->bytes.data, made->bytes.used);
    status = parquet_column_decode(&what, (struct byte_view){ copy, made->bytes.used }, ret_column);
    free(copy);
    return status;
}

/* Optional int32s: 10, null, 20, 30. */
static struct made
with_a_null(void)
{
    struct made made = { .leaf = { .type = PARQUET_INT32, .dtype = TUNDISH_INT32, .defined = 1 },
                         .chunk = { .value_count = 4 },
                         .rows = 4 };
    static const uint8_t page[] = { 2, 0, 0, 0, 3, 0x0D, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0 };

    add_page(&made.bytes, page, sizeof page, 4, PARQUET_PLAIN);
    return made;
}

static void
nulls_are_told_or_replaced(void **state)
{
    struct made made = with_a_null();
    struct parquet_column column;
    const int32_t *values, seven = 7;

    (void)state;
    assert_int_equal(decode(&made, &column), TUNDISH_OK);
    values = column.values;
    assert_memory_equal(column.nulls, ((uint8_t[]){ 0, 1, 0, 0 }), 4);
    assert_true(values[0] == 10 && values[2] == 20 && values[3] == 30);
    parquet_column_close(&column);
    made.fallback = &seven;
    assert_int_equal(decode(&made, &column), TUNDISH_OK);
    values = column.values;
    assert_null(column.nulls);
    assert_true(values[0] == 10 && values[1] == 7 && values[2] == 20 && values[3] == 30);
    parquet_column_close(&column);
    free(made.bytes.data);
}

/* A list may go on in the next page: [1, 2, 3], [], [4]. */
static void
lists_go_on_from_page_to_page(void **state)
{
    struct made made = {
        .leaf = { .type = PARQUET_INT32,
                  .dtype = TUNDISH_INT32,
                  .is_list = true,
                  .defined = 1,
                  .element = 1 },
        .chunk = { .value_count = 5 },
        .rows = 3,
    };
    static const uint8_t one[] = { 2, 0, 0, 0, 3, 2, 2, 0, 0, 0, 4, 1, 1, 0, 0, 0, 2, 0, 0, 0 };
    static const uint8_t two[] = { 2, 0, 0, 0, 3, 1, 2, 0, 0, 0, 3, 5, 3, 0, 0, 0, 4, 0, 0, 0 };
    struct parquet_column column;

    (void)state;
    add_page(&made.bytes, one, sizeof one, 2, PARQUET_PLAIN);
    add_page(&made.bytes, two, sizeof two, 3, PARQUET_PLAIN);
    assert_int_equal(decode(&made, &column), TUNDISH_OK);
    assert_memory_equal(column.splits, ((uint64_t[]){ 0, 3, 3, 4 }), 4 * sizeof(uint64_t));
    assert_memory_equal(column.values, ((int32_t[]){ 1, 2, 3, 4 }), 4 * sizeof(int32_t));
    parquet_column_close(&column);
    made.rows = 4;
    assert_int_equal(decode(&made, &column), TUNDISH_E_CORRUPT);
    made.rows = 2;
    assert_int_equal(decode(&made, &column), TUNDISH_E_CORRUPT);
    free(made.bytes.data);
}

static void
a_chunk_that_is_cut_anywhere_is_damage(void **state)
{
    struct made made = with_a_null();
    struct parquet_column column;
    size_t all = made.bytes.used;

    (void)state;
    for (made.bytes.used = 0; made.bytes.used < all; made.bytes.used++)
        assert_int_equal(decode(&made, &column), TUNDISH_E_CORRUPT);
    free(made.bytes.data);
}

static void
values_without_a_dictionary_or_a_decoder_are_refused(void **state)
{
    struct made made = { .leaf = { .type = PARQUET_INT32, .dtype = TUNDISH_INT32 },
                         .chunk = { .value_count = 1 },
                         .rows = 1 };
    struct parquet_column column;

    (void)state;
    add_page(&made.bytes, "\x01\x02\x00", 3, 1, PARQUET_RLE_DICTIONARY);
    assert_int_equal(decode(&made, &column), TUNDISH_E_CORRUPT);
    assert_non_null(strstr(tnd_error_text(), "dictionary is missing"));
    made.bytes.used = 0;
    add_page(&made.bytes, "\x01\x02\x00", 3, 1, 77);
    assert_int_equal(decode(&made, &column), TUNDISH_E_DATA);
    made.bytes.used = 0;
    add_page(&made.bytes, "\x01\x02\x00", 3, 1, PARQUET_DELTA_BYTE_ARRAY);
    assert_int_equal(decode(&made, &column), TUNDISH_E_DATA);
    made.chunk.codec = PARQUET_LZO;
    assert_int_equal(decode(&made, &column), TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "lzo"));
    free(made.bytes.data);
}

static void
more_than_there_is_room_for_is_refused_before_it_is_taken(void **state)
{
    struct made made = with_a_null();
    struct parquet_column column;

    (void)state;
    made.rows = made.chunk.value_count = UINT64_C(1) << 40;
    assert_int_equal(decode(&made, &column), TUNDISH_E_MEMORY);
    free(made.bytes.data);
}

/* "aaaaaaaaaaaaaaaa" as LZ4's block: one literal, 10 bytes from before, 5 literals. */
#define BLOCK                                                                                      \
    "\x16"                                                                                         \
    "a"                                                                                            \
    "\x01\0"                                                                                       \
    "\x50"                                                                                         \
    "aaaaa"

static void
lz4_is_read_in_both_old_forms(void **state)
{
    static const struct {
        const char *packed;
        size_t bytes;
        bool is_good;
    } cases[] = {
        { BLOCK, 10, true },
        { "\0\0\0\x10"
          "\0\0\0\x0a" BLOCK,
          18, true },
        { "\0\0\0\x0a"
          "\0\0\0\x0b"
          "\xa0"
          "aaaaaaaaaa"
          "\0\0\0\x06"
          "\0\0\0\x07"
          "\x60"
          "aaaaaa",
          34, true },
        { "\0\0\0\x10"
          "\0\0\0\x0b"
          "\xa0"
          "aaaaaaaaaa"
          "\0\0\0\x07"
          "\x60"
          "aaaaaa",
          30, true }, /* two pieces in one block */
        { "\0\0\0\x10"
          "\0\0\0\x0b" BLOCK,
          18, false },
        { "\0\0\0\x11"
          "\0\0\0\x0a" BLOCK,
          18, false },
        { "\0\0\0\x10"
          "\0\0",
          6, false },
        { "", 0, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t to[16] = { 0 };
        uint8_t *packed = tnd_zalloc(cases[i].bytes + 64, 1);

        memcpy(packed, cases[i].packed, cases[i].bytes);
        assert_int_equal(parquet_unpack(PARQUET_LZ4, (struct byte_view){ packed, cases[i].bytes },
                                        to, sizeof to),
                         cases[i].is_good);
        if (cases[i].is_good)
            assert_memory_equal(to, "aaaaaaaaaaaaaaaa", 16);
        free(packed);
    }
    assert_null(parquet_codec_obstacle(PARQUET_LZ4));
}

TEST_FILE(test_parquet_column)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nulls_are_told_or_replaced),
        cmocka_unit_test(lists_go_on_from_page_to_page),
        cmocka_unit_test(a_chunk_that_is_cut_anywhere_is_damage),
        cmocka_unit_test(values_without_a_dictionary_or_a_decoder_are_refused),
        cmocka_unit_test(more_than_there_is_room_for_is_refused_before_it_is_taken),
        cmocka_unit_test(lz4_is_read_in_both_old_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
