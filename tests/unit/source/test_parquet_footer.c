/* test_parquet_footer.c - schemas and footers that are right, and those that lie. */
#include "parquet_fixture.h"

#include "unit/test_file.h"

static tundish_status
choose_first(void *context, const struct parquet_schema *schema, const uint32_t **ret_leaves,
             uint32_t *ret_count)
{
    static const uint32_t first = 0;

    (void)context;
    *ret_leaves = &first;
    *ret_count = schema->count > 0;
    return TUNDISH_OK;
}

static const struct parquet_choice first = { .choose = choose_first };

static tundish_status
read_footer(const struct bytes *footer, uint64_t file_bytes, struct parquet_footer *ret_footer)
{
    return parquet_footer_read(footer->data, footer->used, file_bytes, &first, ret_footer);
}

static void
row_groups_and_chunks_are_read(void **state)
{
    const struct group_made groups[] = {
        { .offset = 4, .bytes = 100, .values = 10, .rows = 10, .codec = PARQUET_ZSTD },
        { .offset = 104, .bytes = 50, .values = 5, .rows = 5 },
    };
    struct bytes bytes = footer_of(groups, 2, 15, PARQUET_INT64);
    struct parquet_footer footer;

    (void)state;
    assert_int_equal(read_footer(&bytes, 1000, &footer), TUNDISH_OK);
    assert_int_equal(footer.row_count, 15);
    assert_int_equal(footer.group_count, 2);
    assert_int_equal(footer.groups[1].first_row, 10);
    assert_int_equal(footer.chunks[0].codec, PARQUET_ZSTD);
    assert_int_equal(footer.chunks[1].offset, 104);
    assert_int_equal(footer.chunks[1].bytes, 50);
    assert_string_equal(footer.schema.leaves[0].name, "x");
    assert_int_equal(footer.schema.leaves[0].dtype, TUNDISH_INT64);
    parquet_footer_close(&footer);
    free(bytes.data);
}

static void
a_footer_that_is_cut_anywhere_is_refused(void **state)
{
    const struct group_made group = { .offset = 4, .bytes = 100, .values = 10, .rows = 10 };
    struct bytes bytes = footer_of(&group, 1, 10, PARQUET_INT64);
    struct parquet_footer footer;

    (void)state;
    for (size_t cut = 0; cut < bytes.used; cut++) {
        struct bytes part = { bytes.data, cut, cut };

        assert_int_not_equal(read_footer(&part, 1000, &footer), TUNDISH_OK);
    }
    free(bytes.data);
}

static void
assert_refused_footer(struct group_made group, int64_t rows, int64_t type, const char *words)
{
    struct bytes bytes = footer_of(&group, 1, rows, type);
    struct parquet_footer footer;

    assert_int_not_equal(read_footer(&bytes, 1000, &footer), TUNDISH_OK);
    if (strstr(tnd_error_text(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tnd_error_text());
    free(bytes.data);
}

static void
footers_that_lie_are_refused(void **state)
{
    const struct group_made good = { .offset = 4, .bytes = 100, .values = 10, .rows = 10 };
    struct group_made bad = good;

    (void)state;
    assert_refused_footer(good, 11, PARQUET_INT64, "other rows");
    assert_refused_footer(good, 10, 8, "a type that there is not");
    bad.bytes = 997;
    assert_refused_footer(bad, 10, PARQUET_INT64, "outside of the file");
    bad.bytes = -1;
    assert_refused_footer(bad, 10, PARQUET_INT64, "outside of the file");
    bad = good;
    bad.offset = INT64_MAX;
    assert_refused_footer(bad, 10, PARQUET_INT64, "outside of the file");
    bad = good;
    bad.rows = -1;
    assert_refused_footer(bad, -1, PARQUET_INT64, "cannot be read");
}

static void
tails_say_how_long_the_footer_is(void **state)
{
    uint32_t bytes = 0;

    (void)state;
    assert_int_equal(parquet_tail_read((const uint8_t *)"\x05\0\0\0PAR1", 17, &bytes), TUNDISH_OK);
    assert_int_equal(bytes, 5);
    assert_int_not_equal(parquet_tail_read((const uint8_t *)"\x05\0\0\0PAR1", 16, &bytes),
                         TUNDISH_OK);
    assert_int_not_equal(parquet_tail_read((const uint8_t *)"\x05\0\0\0PARE", 17, &bytes),
                         TUNDISH_OK);
    assert_non_null(strstr(tnd_error_text(), "encrypted"));
    assert_int_not_equal(parquet_tail_read((const uint8_t *)"\x05\0\0\0PAR2", 17, &bytes),
                         TUNDISH_OK);
    assert_int_not_equal(parquet_tail_read((const uint8_t *)"\0\0\0\x10PAR1", UINT64_MAX, &bytes),
                         TUNDISH_OK);
}

TEST_FILE(test_parquet_footer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_groups_and_chunks_are_read),
        cmocka_unit_test(a_footer_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(footers_that_lie_are_refused),
        cmocka_unit_test(tails_say_how_long_the_footer_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
