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

/* A schema of required int32s below these groups; "s.a" is a name with a dot. */
static struct parquet_schema
schema_of(const struct bytes *elements, uint32_t count)
{
    struct thrift thrift = { .at = elements->data, .end = elements->data + elements->used };
    struct parquet_schema schema = { 0 };

    assert_int_equal(parquet_schema_read(&thrift, count, &schema), TUNDISH_OK);
    return schema;
}

static void
assert_obstacle(const struct parquet_leaf *leaf, const char *name, const char *words)
{
    assert_string_equal(leaf->name, name);
    if (words == NULL)
        assert_null(leaf->obstacle);
    else if (leaf->obstacle == NULL || strstr(leaf->obstacle, words) == NULL)
        fail_msg("'%s' is not in: %s", words, leaf->obstacle);
}

static void
columns_of_one_name_are_not_chosen_from(void **state)
{
    struct bytes elements = { 0 };
    struct parquet_schema schema;

    (void)state;
    add_element(&elements, "schema", -1, 6);
    add_element(&elements, "x", PARQUET_INT32, 0);
    add_element(&elements, "y", PARQUET_INT32, 0);
    add_element(&elements, "s", -1, 2);
    add_element(&elements, "a", PARQUET_INT32, 0);
    add_element(&elements, "b", PARQUET_INT32, 0);
    add_element(&elements, "s.a", PARQUET_INT32, 0);
    add_element(&elements, "t.a", PARQUET_INT32, 0);
    add_element(&elements, "x", PARQUET_INT64, 0);
    schema = schema_of(&elements, 9);
    assert_obstacle(&schema.leaves[0], "x", "two columns of this name");
    assert_obstacle(&schema.leaves[1], "y", NULL);
    assert_obstacle(&schema.leaves[2], "s.a", "two columns of this name");
    assert_obstacle(&schema.leaves[3], "s.b", NULL);
    assert_obstacle(&schema.leaves[4], "s.a", "two columns of this name");
    assert_obstacle(&schema.leaves[5], "t.a", NULL);
    assert_obstacle(&schema.leaves[6], "x", "two columns of this name");
    parquet_schema_close(&schema);
    free(elements.data);
}

static void
a_nul_does_not_end_a_name(void **state)
{
    struct bytes elements = { 0 };
    struct parquet_schema schema;

    (void)state;
    add_element(&elements, "schema", -1, 2);
    add_integer(&elements, 1, PARQUET_INT32);
    add_integer(&elements, 3, 0);
    add_field(&elements, 4, THRIFT_BINARY);
    bytes_add(&elements, "\x03x\0y", 4);
    add_stop(&elements);
    add_element(&elements, "x", PARQUET_INT32, 0);
    schema = schema_of(&elements, 3);
    assert_obstacle(&schema.leaves[0], "x\\0y", "NUL");
    assert_obstacle(&schema.leaves[1], "x", NULL);
    parquet_schema_close(&schema);
    free(elements.data);
}

static void
decimals_say_why_they_cannot_be_read(void **state)
{
    static const struct {
        int64_t digits, bytes;
        const char *words;
    } cases[] = { { 10, 16, NULL },
                  { 10, 20, "values of 20 bytes" },
                  { 19, 9, "of 19 digits" },
                  { 0, 9, "does not say of how many digits" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes elements = { 0 };
        struct parquet_schema schema;

        add_element(&elements, "schema", -1, 1);
        add_integer(&elements, 1, PARQUET_FIXED);
        add_integer(&elements, 2, cases[i].bytes);
        add_integer(&elements, 3, 0);
        add_binary(&elements, 4, "d");
        add_integer(&elements, 6, 5); /* DECIMAL */
        if (cases[i].digits > 0)
            add_integer(&elements, 8, cases[i].digits);
        add_stop(&elements);
        schema = schema_of(&elements, 2);
        assert_obstacle(&schema.leaves[0], "d", cases[i].words);
        parquet_schema_close(&schema);
        free(elements.data);
    }
}

/* Old writers left the head of the dictionary's page out of a chunk's length. */
static void
lengths_of_old_writers_are_short(void **state)
{
    static const struct {
        const char *writer;
        uint64_t bytes, last;
    } cases[] = { { "parquet-mr version 1.2.8", 200, 96 },
                  { "parquet-mr version 1.2.8-SNAPSHOT (build 1)", 200, 96 },
                  { "parquet-mr version 1.2.9", 100, 50 },
                  { "parquet-mr version 1.10.0", 100, 50 },
                  { "parquet-mr", 100, 50 },
                  { "parquet-cpp version 1.0.0", 100, 50 } };
    const struct group_made groups[] = {
        { .offset = 4, .bytes = 100, .values = 10, .rows = 10 },
        { .offset = 904, .bytes = 50, .values = 5, .rows = 5 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes = footer_of(groups, 2, 15, PARQUET_INT64);
        struct parquet_footer footer;

        bytes.used--;
        add_binary(&bytes, 6, cases[i].writer);
        add_stop(&bytes);
        assert_int_equal(read_footer(&bytes, 1000, &footer), TUNDISH_OK);
        assert_int_equal(footer.chunks[0].bytes, cases[i].bytes);
        assert_int_equal(footer.chunks[1].bytes, cases[i].last);
        parquet_footer_close(&footer);
        free(bytes.data);
    }
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
        cmocka_unit_test(columns_of_one_name_are_not_chosen_from),
        cmocka_unit_test(a_nul_does_not_end_a_name),
        cmocka_unit_test(decimals_say_why_they_cannot_be_read),
        cmocka_unit_test(lengths_of_old_writers_are_short),
        cmocka_unit_test(tails_say_how_long_the_footer_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
