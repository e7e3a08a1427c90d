/* test_library.c - the transform library as a program that links it sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include <tundish/tundish_transform.h>

#include "unit/test_file.h"

struct opened {
    char path[64];
    tundish_transform *transform;
    tundish_transformer *transformer;
};

static void
open_stream(struct opened *opened, const char *stages, const char *deliver)
{
    int descriptor;
    FILE *file;

    strcpy(opened->path, "/tmp/tundish-library-XXXXXX");
    descriptor = mkstemp(opened->path);
    assert_true(descriptor >= 0);
    file = fdopen(descriptor, "w");
    assert_non_null(file);
    fprintf(file, "streams: {rows: {dataset: [%s], deliver: {%s}}}\n", stages, deliver);
    assert_int_equal(fclose(file), 0);
    if (tundish_transform_open(opened->path, NULL, &opened->transform) != TUNDISH_OK)
        fail_msg("%s", tundish_transform_last_error());
    assert_int_equal(tundish_transformer_open(opened->transform, &opened->transformer), TUNDISH_OK);
}

static void
open_stages(struct opened *opened, const char *stages)
{
    open_stream(opened, stages, "");
}

static void
close_stages(struct opened *opened)
{
    tundish_transformer_close(opened->transformer);
    tundish_transform_close(opened->transform);
    assert_int_equal(unlink(opened->path), 0);
}

static void
columns_go_in_and_tensors_come_out(void **state)
{
    const int32_t a[] = { 3, 5 }, b[] = { 4, 1 };
    const tundish_transform_column columns[] = { { a, NULL }, { b, NULL } };
    const tundish_tensor *tensor;
    struct opened opened;

    (void)state;
    open_stages(&opened, "{from_tensor_slices: {a: [1], b: [2]}}, {map: {sum: 'a + b'}}");
    assert_int_equal(tundish_transform_inputs(opened.transform)->column_count, 2);
    assert_int_equal(tundish_transform_outputs(opened.transform)->column_count, 3);
    assert_int_equal(tundish_transform_tensor(opened.transformer, 0, &tensor), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_transform_rows(opened.transformer, columns, 2, 2), TUNDISH_OK);
    assert_int_equal(tundish_transform_tensor(opened.transformer, 2, &tensor), TUNDISH_OK);
    assert_string_equal(tensor->name, "sum");
    assert_int_equal(tensor->rank, 1);
    assert_int_equal(tensor->shape[0], 2);
    assert_int_equal(((const int32_t *)tensor->data)[0], 7);
    assert_int_equal(((const int32_t *)tensor->data)[1], 6);
    assert_int_equal(tundish_transform_tensor(opened.transformer, 3, &tensor), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_transform_last_error(), "there is no column 3: there are 3"));
    assert_int_equal(tundish_transform_rows(opened.transformer, columns, 1, 2), TUNDISH_E_ARGUMENT);
    close_stages(&opened);
}

static void
records_become_texts_and_lists(void **state)
{
    const tundish_bytes records[] = { { "a bc", 4 }, { "d", 1 } };
    const int64_t offsets[] = { 0, 1, 3, 4 }, splits[] = { 0, 2, 3 };
    const tundish_tensor *tensor;
    struct opened opened;

    (void)state;
    open_stages(&opened, "{text_line: rows}, {string_split: {columns: value}}, {ragged_batch: 2}");
    assert_int_equal(tundish_transform_records(opened.transformer, records, 2), TUNDISH_OK);
    assert_int_equal(tundish_transform_tensor(opened.transformer, 0, &tensor), TUNDISH_OK);
    assert_int_equal(tensor->kind, TUNDISH_RAGGED);
    assert_int_equal(tensor->ragged_rank, 1);
    assert_int_equal(tensor->row_split_counts[0], 3);
    assert_memory_equal(tensor->row_splits[0], splits, sizeof splits);
    assert_int_equal(tensor->data_bytes, 4);
    assert_memory_equal(tensor->data, "abcd", 4);
    assert_memory_equal(tensor->string_offsets, offsets, sizeof offsets);
    close_stages(&opened);
}

static void
what_is_wrong_is_said(void **state)
{
    const tundish_bytes records[] = { { "5", 1 }, { "five", 4 }, { "six", 3 } };
    const tundish_bytes more[] = { { "6", 1 }, { "7", 1 }, { "vii", 3 } };
    const tundish_transform_column column = { more, NULL };
    tundish_transform *transform;
    struct opened opened;

    (void)state;
    assert_int_not_equal(tundish_transform_open("/nonexistent.yaml", NULL, &transform), TUNDISH_OK);
    assert_non_null(strstr(tundish_transform_last_error(), "/nonexistent.yaml"));
    open_stages(&opened, "{text_line: rows}, {string_to_number: {columns: value}}");
    assert_int_equal(tundish_transform_records(opened.transformer, records, 3), TUNDISH_E_DATA);
    assert_non_null(strstr(tundish_transform_last_error(), "row 1: "));
    assert_non_null(strstr(tundish_transform_last_error(), "\"five\" is not a valid float32"));
    assert_int_equal(tundish_transform_rows(opened.transformer, &column, 1, 3), TUNDISH_E_DATA);
    assert_non_null(strstr(tundish_transform_last_error(), "row 2: "));
    assert_int_equal(tundish_transform_records(opened.transformer, more, 2), TUNDISH_OK);
    close_stages(&opened);
}

static void
a_record_that_unpacks_to_too_much_is_refused(void **state)
{
    enum { ZEROS = 32 << 20 };
    unsigned long size = ZEROS / 100;
    uint8_t *zeros = calloc(ZEROS, 1), *packed = malloc(size);
    struct opened opened;

    (void)state;
    assert_true(zeros != NULL && packed != NULL);
    assert_int_equal(compress(packed, &size, zeros, ZEROS), Z_OK);
    open_stream(&opened,
                "{tfrecord: rows}, {decode_compressed: {columns: value, compression_type: ZLIB}}",
                "memory_limit: 16MiB");
    assert_int_equal(
        tundish_transform_records(opened.transformer, &(tundish_bytes){ packed, size }, 1),
        TUNDISH_E_DATA);
    assert_non_null(strstr(tundish_transform_last_error(), "row 0: "));
    assert_non_null(strstr(tundish_transform_last_error(), "memory_limit"));
    close_stages(&opened);
    free(packed);
    free(zeros);
}

TEST_FILE(test_library)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_go_in_and_tensors_come_out),
        cmocka_unit_test(records_become_texts_and_lists),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_record_that_unpacks_to_too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
