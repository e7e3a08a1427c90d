/* test_row_codec.c - rows to bytes and back. */
#include "source_fixture.h"

#include "source/rows/row_codec.h"
#include "unit/test_file.h"

static void
make_schema(struct schema *schema)
{
    struct column_spec *column;

    *schema = (struct schema){ 0 };
    schema_add(schema, "n", TUNDISH_INT32);
    column = schema_add(schema, "grid", TUNDISH_FLOAT32);
    column->rank = 3;
    column->shape[0] = -1;
    column->shape[1] = 2;
    column->shape[2] = -1;
    schema_add(schema, "text", TUNDISH_STRING);
    column = schema_add(schema, "words", TUNDISH_STRING);
    column->kind = TUNDISH_RAGGED;
    column->rank = 2;
    column->ragged_rank = 1;
    column->shape[0] = column->shape[1] = -1;
    schema_add(schema, "yes", TUNDISH_BOOL);
}

static void
add_u64(struct row_bytes *row, uint64_t number)
{
    row_bytes_add(row, &number, sizeof number);
}

static void
add_text64(struct row_bytes *row, const char *text)
{
    add_u64(row, strlen(text));
    row_bytes_add(row, text, strlen(text));
}

/* n 7, grid [1,2,2], text "ab", words [["x"], [], ["yy", ""]], yes */
static void
first_row(struct row_bytes *row)
{
    const int32_t n = 7;
    const float grid[] = { 1, 2, 3, 4 };

    row_bytes_add(row, &n, sizeof n);
    add_u64(row, 1);
    add_u64(row, 2);
    row_bytes_add(row, grid, sizeof grid);
    add_text64(row, "ab");
    add_u64(row, 3);
    add_u64(row, 1);
    add_u64(row, 0);
    add_u64(row, 2);
    add_text64(row, "x");
    add_text64(row, "yy");
    add_text64(row, "");
    row_bytes_add(row, "\1", 1);
}

/* n 8, grid [0,2,0], text "", words [], not */
static void
second_row(struct row_bytes *row)
{
    const int32_t n = 8;

    row_bytes_add(row, &n, sizeof n);
    add_u64(row, 0);
    add_u64(row, 0);
    add_text64(row, "");
    add_u64(row, 0);
    row_bytes_add(row, "\0", 1);
}

static void
say_where(const void *context, int64_t row, char *text, size_t bytes)
{
    (void)context;
    snprintf(text, bytes, "row %lld", (long long)row);
}

struct decoded {
    struct frame frame;
    struct frame_errors errors;
    struct column columns[8];
};

static void
decode(const struct schema *schema, const struct byte_view *rows, int64_t count,
       struct scratch *scratch, struct decoded *ret_decoded)
{
    *ret_decoded = (struct decoded){ 0 };
    ret_decoded->frame = (struct frame){ .count = count,
                                         .column_count = schema->count,
                                         .columns = ret_decoded->columns,
                                         .schema = schema,
                                         .scratch = scratch,
                                         .errors = &ret_decoded->errors };
    assert_int_equal(row_codec_decode(rows, count, &ret_decoded->frame, say_where, NULL),
                     TUNDISH_OK);
}

static void
rows_come_back_as_they_were(void **state)
{
    struct row_bytes rows[2] = { 0 };
    struct byte_view views[2];
    struct schema schema;
    struct decoded decoded;
    struct scratch *scratch = scratch_open();

    (void)state;
    make_schema(&schema);
    first_row(&rows[0]);
    second_row(&rows[1]);
    for (int i = 0; i < 2; i++)
        views[i] = (struct byte_view){ rows[i].data, rows[i].used };
    decode(&schema, views, 2, scratch, &decoded);
    assert_int_equal(decoded.errors.bad_count, 0);
    assert_int_equal(((const int32_t *)decoded.columns[0].values)[1], 8);
    assert_int_equal(decoded.columns[1].value_count, 4);
    assert_int_equal(decoded.columns[3].value_count, 3);
    for (int i = 0; i < 2; i++) {
        struct row_bytes again = { 0 };

        row_codec_encode(&decoded.frame, i, &again);
        assert_int_equal(again.used, rows[i].used);
        assert_memory_equal(again.data, rows[i].data, again.used);
        free(again.data);
        free(rows[i].data);
    }
    schema_close(&schema);
    scratch_close(scratch);
}

static void
every_cut_is_partial_and_asks_for_more(void **state)
{
    struct row_bytes row = { 0 };
    struct schema schema;
    size_t needed = 0;

    (void)state;
    make_schema(&schema);
    first_row(&row);
    for (size_t bytes = 0; bytes < row.used; bytes++) {
        assert_int_equal(row_codec_measure(&schema, row.data, bytes, &needed), ROW_PARTIAL);
        assert_true(needed > bytes && needed <= row.used);
    }
    assert_int_equal(row_codec_measure(&schema, row.data, row.used, &needed), ROW_WHOLE);
    assert_int_equal(needed, row.used);
    free(row.data);
    schema_close(&schema);
}

static void
sizes_that_cannot_be_are_refused(void **state)
{
    static const uint64_t sizes[] = { UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 40, 1U << 31 };
    struct schema schema;

    (void)state;
    make_schema(&schema);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct row_bytes row = { 0 };
        size_t needed;

        row_bytes_add(&row, "abcd", 4);
        add_u64(&row, sizes[i]);
        add_u64(&row, sizes[i]);
        assert_int_equal(row_codec_measure(&schema, row.data, row.used, &needed), ROW_BAD);
        assert_non_null(strstr(tnd_error_text(), "column 'grid'"));
        free(row.data);
    }
    schema_close(&schema);
}

static void
a_bad_row_is_rejected_and_its_neighbours_are_not(void **state)
{
    struct row_bytes rows[3] = { 0 };
    struct byte_view views[3];
    struct schema schema;
    struct decoded decoded;
    struct scratch *scratch = scratch_open();

    (void)state;
    make_schema(&schema);
    for (int i = 0; i < 3; i++) {
        first_row(&rows[i]);
        views[i] = (struct byte_view){ rows[i].data, rows[i].used };
    }
    rows[1].data[rows[1].used - 1] = 2; /* a bool of 2 */
    decode(&schema, views, 3, scratch, &decoded);
    assert_int_equal(decoded.errors.bad_count, 1);
    assert_int_equal(decoded.errors.first_bad, 1);
    assert_non_null(strstr(decoded.errors.text, "row 1: column 'yes'"));
    assert_int_equal(((const int32_t *)decoded.columns[0].values)[2], 7);
    assert_int_equal(decoded.columns[1].value_count, 8);
    views[1].size--;
    decode(&schema, views, 3, scratch, &decoded);
    assert_int_equal(decoded.errors.bad_count, 1);
    for (int i = 0; i < 3; i++)
        free(rows[i].data);
    schema_close(&schema);
    scratch_close(scratch);
}

TEST_FILE(test_row_codec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_as_they_were),
        cmocka_unit_test(every_cut_is_partial_and_asks_for_more),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(a_bad_row_is_rejected_and_its_neighbours_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
