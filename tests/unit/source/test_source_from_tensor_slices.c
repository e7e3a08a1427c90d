/* test_source_from_tensor_slices.c - tensors written in the pipeline file, and .npy files. */
#include "source_fixture.h"

#include "core/half.h"
#include "source/rows/npy.h"
#include "unit/test_file.h"

static const struct folder nowhere = { .path = ".", .cache = "." };

static void
open_or_fail(struct pipeline *pipeline, const struct folder *folder, const char *stages)
{
    if (pipeline_open(pipeline, folder, 0, stages) != TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
}

static void
dtypes_are_those_of_tf_constant(void **state)
{
    const tundish_dtype dtypes[] = { TUNDISH_INT32, TUNDISH_INT64,  TUNDISH_FLOAT32,
                                     TUNDISH_BOOL,  TUNDISH_STRING, TUNDISH_FLOAT32 };
    struct pipeline pipeline;

    (void)state;
    open_or_fail(&pipeline, &nowhere,
                 "[from_tensor_slices: {a: [1, 2], b: [1, 3000000000], c: [1, 2.5], d: [true, "
                 "false], e: [x, '1'], f: [[], []]}]");
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(pipeline.node->schema.columns[i].dtype, dtypes[i]);
    assert_int_equal(pipeline.node->schema.columns[5].rank, 1);
    assert_int_equal(pipeline.node->schema.columns[5].shape[0], 0);
    assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
    assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
    assert_int_equal(*(const int32_t *)pipeline.frame.columns[0].values, 2);
    assert_int_equal(*(const int64_t *)pipeline.frame.columns[1].values, 3000000000);
    assert_true(*(const float *)pipeline.frame.columns[2].values == 2.5F);
    assert_int_equal(*(const uint8_t *)pipeline.frame.columns[3].values, 0);
    assert_memory_equal(text_at(&pipeline, 4, 0).data, "1", 1);
    assert_int_equal(pipeline.frame.columns[5].value_count, 0);
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
}

static void
given_dtypes_are_checked_value_by_value(void **state)
{
    (void)state;
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [1, 300], dtype: uint8}}]", "300");
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [-1], dtype: uint64}}]", "-1");
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [1.5], dtype: int32}}]", "1.5");
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [1e300], dtype: float32}}]",
                   "1e300");
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [1], dtype: string}}]", "string");
    assert_refused(&nowhere, "[from_tensor_slices: {a: {values: [1], dtype: int31}}]", "int31");
    assert_refused(&nowhere, "[from_tensor_slices: {a: [1, x]}]", "all numbers");
    assert_refused(&nowhere, "[from_tensor_slices: {a: [[1, 2], [3]]}]", "a list of 2");
    assert_refused(&nowhere, "[from_tensor_slices: {a: [[1, 2], 3]}]", "a list of 2");
    assert_refused(&nowhere, "[from_tensor_slices: {a: 3}]", "cannot be sliced");
    assert_refused(&nowhere, "[from_tensor_slices: {a: [1, 2], b: [1]}]", "1 slices");
    assert_refused(&nowhere, "[from_tensor_slices: {a: [[[[[[[[[1]]]]]]]]]}]", "deeply");
}

static void
variables_are_filled_in_row_by_row(void **state)
{
    struct pipeline pipeline;
    const int32_t expected[][2] = { { 5, 7 }, { 8, 5 }, { 6, 7 }, { 8, 6 } };

    (void)state;
    open_or_fail(&pipeline, &nowhere,
                 "[from_tensor_slices: {n: [5, 6]}, flat_map: {dataset: [from_tensor_slices: {x: "
                 "[[$n, 7], [8, $n]]}]}]");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        assert_memory_equal(pipeline.frame.columns[0].values, expected[i], 8);
    }
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
}

static void
a_variable_can_be_a_whole_tensor_or_be_sliced(void **state)
{
    struct pipeline pipeline;
    const int32_t rows[] = { 1, 2, 3, 4 };

    (void)state;
    open_or_fail(&pipeline, &nowhere,
                 "[from_tensor_slices: {v: [[1, 2], [3, 4]]}, flat_map: {dataset: "
                 "[from_tensor_slices: {x: $v}]}]");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        assert_int_equal(pipeline.frame.columns[0].level_count, 0);
        assert_int_equal(*(const int32_t *)pipeline.frame.columns[0].values, rows[i]);
    }
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
    open_or_fail(&pipeline, &nowhere,
                 "[from_tensor_slices: {v: [[1, 2], [3, 4]]}, flat_map: {dataset: [from_tensors: "
                 "{x: $v}]}]");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        assert_memory_equal(pipeline.frame.columns[0].values, &rows[2 * i], 8);
    }
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
    assert_refused(&nowhere, "[from_tensors: {x: $v}]", "$v");
}

static size_t
make_npy(uint8_t *to, int version, const char *dict, const void *data, size_t bytes)
{
    size_t prefix = version == 1 ? 10 : 12;
    size_t length = strlen(dict);

    memcpy(to, "\x93NUMPY", 6);
    to[6] = (uint8_t)version;
    to[7] = 0;
    memset(to + 8, 0, 4);
    to[8] = (uint8_t)length;
    to[9] = (uint8_t)(length >> 8);
    memcpy(to + prefix, dict, length);
    if (bytes > 0)
        memcpy(to + prefix + length, data, bytes);
    return prefix + length + bytes;
}

static void
npy_files_in_either_order_give_the_same_rows(void **state)
{
    const int16_t rows[] = { 1, 2, 3, 4, 5, 6 };
    const int16_t columns[] = { 1, 3, 5, 2, 4, 6 };
    struct folder folder;
    uint8_t file[512];

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < 2; i++) {
        struct pipeline pipeline;
        size_t bytes =
            i == 0 ? make_npy(file, 1,
                              "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }   \n",
                              rows, sizeof rows)
                   : make_npy(file, 3, "{\"shape\":(3,2),'fortran_order': True, 'descr':'<i2'}",
                              columns, sizeof columns);

        put_file(&folder, "a.npy", file, bytes);
        open_or_fail(&pipeline, &folder, "[from_tensor_slices: {x: {npy: a.npy}}]");
        for (int k = 0; k < 3; k++) {
            assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
            assert_memory_equal(pipeline.frame.columns[0].values, &rows[2 * k], 4);
        }
        assert_int_equal(pipeline_next(&pipeline), ORDER_END);
        pipeline_close(&pipeline);
    }
    folder_close(&folder);
}

static void
what_is_no_file_is_not_waited_for(void **state)
{
    struct folder folder;
    char path[128];

    (void)state;
    folder_open(&folder);
    snprintf(path, sizeof path, "%s/a.npy", folder.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]", "it is not a file");
    folder_close(&folder);
}

static void
npy_texts_lose_their_padding(void **state)
{
    struct folder folder;
    uint8_t file[512];
    size_t bytes;

    (void)state;
    folder_open(&folder);
    bytes = make_npy(file, 1, "{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }",
                     "abc\0\0\0d\0\0", 9);
    put_file(&folder, "a.npy", file, bytes);
    assert_texts(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]", "abc||d|");
    bytes = make_npy(file, 1, "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                     "\xFC\0\0\0\x0A\xF6\x01\0x\0\0\0\0\0\0\0", 16);
    put_file(&folder, "a.npy", file, bytes);
    assert_texts(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]", "\xC3\xBC\xF0\x9F\x98\x8A|x|");
    folder_close(&folder);
}

static void
npy_texts_of_what_is_no_character_are_refused(void **state)
{
    static const char *const numbers[] = { "\x00\xD8\x00\x00", "\xFF\xDF\x00\x00",
                                           "\x00\x00\x11\x00", "\xFF\xFF\xFF\xFF" };
    struct folder folder;
    uint8_t file[512];

    (void)state;
    folder_open(&folder);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        put_file(&folder, "a.npy", file,
                 make_npy(file, 1, "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }",
                          numbers[i], 4));
        assert_refused(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]",
                       "item 0 is not valid Unicode");
    }
    folder_close(&folder);
}

static void
bad_npy_files_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *dict, *words;
    } cases[] = {
        { "{'descr': '>f16', 'fortran_order': False, 'shape': (1,), }",
          "a column cannot have its dtype" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "dtype" },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structured" },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "fortran_order" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "shorter" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
          "more values" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
          "dimension" },
        { "{'descr': '<f4', 'fortran_order': False}", "missing" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "dimensions" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "dimension" },
        { "{'descr': '<f4", "structured" },
        { "", "dict" },
    };
    struct folder folder;
    uint8_t file[512];

    (void)state;
    folder_open(&folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(&folder, "a.npy", file, make_npy(file, 1, cases[i].dict, "\0\0\0\0", 4));
        assert_refused(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]", cases[i].words);
    }
    put_text(&folder, "a.npy", "\x93NUMPY\1");
    assert_refused(&folder, "[from_tensor_slices: {x: {npy: a.npy}}]", "not an .npy file");
    assert_refused(&folder, "[from_tensor_slices: {x: {npy: none.npy}}]", "none.npy");
    folder_close(&folder);
}

static void
sixteen_bit_floats_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(tnd_half_from_float(65519.99F), 0x7BFF);
    assert_int_equal(tnd_half_from_float(65520), 0x7C00);
    assert_int_equal(tnd_half_from_float(-2049), 0xE800);
    assert_int_equal(tnd_half_from_float(2051), 0x6802);
    assert_int_equal(tnd_half_from_float(0x1p-24F), 1);
    assert_int_equal(tnd_half_from_float(0x1p-25F), 0);
    assert_int_equal(tnd_half_from_float(0x1.8p-25F), 1);
    assert_int_equal(tnd_bfloat_from_float(0x1.01p0F), 0x3F80);
    assert_int_equal(tnd_bfloat_from_float(0x1.03p0F), 0x3F82);
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t bits = (uint16_t)i;

        if ((bits & 0x7FFF) <= 0x7C00)
            assert_int_equal(tnd_half_from_float(tnd_half_to_float(bits)), bits);
        if ((bits & 0x7FFF) <= 0x7F80)
            assert_int_equal(tnd_bfloat_from_float(tnd_bfloat_to_float(bits)), bits);
    }
}

TEST_FILE(test_source_from_tensor_slices)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_those_of_tf_constant),
        cmocka_unit_test(given_dtypes_are_checked_value_by_value),
        cmocka_unit_test(variables_are_filled_in_row_by_row),
        cmocka_unit_test(a_variable_can_be_a_whole_tensor_or_be_sliced),
        cmocka_unit_test(npy_files_in_either_order_give_the_same_rows),
        cmocka_unit_test(what_is_no_file_is_not_waited_for),
        cmocka_unit_test(npy_texts_lose_their_padding),
        cmocka_unit_test(npy_texts_of_what_is_no_character_are_refused),
        cmocka_unit_test(bad_npy_files_are_refused_with_a_reason),
        cmocka_unit_test(sixteen_bit_floats_round_to_nearest_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
