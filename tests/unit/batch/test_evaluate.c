/* test_evaluate.c - content of elements, for delivery and for stages of the order that look at it.
 */
#include "../source/source_fixture.h"
#include "unit/test_file.h"

/* Stages that look at what a filter leaves see its columns, not what its predicate says. */
#define FILTERED                                                                                   \
    "{from_tensor_slices: {v: [[a, b], [c, d], [e, f]]}}, {map: {v: v}}, "                         \
    "{filter: \"v[0] != 'c'\"}"

static void
assert_stages(const char *stages, const char *expected)
{
    struct folder folder;

    folder_open(&folder);
    assert_texts(&folder, stages, expected);
    folder_close(&folder);
}

static void
unbatch_sees_the_columns_of_a_filter(void **state)
{
    (void)state;
    assert_stages("[" FILTERED ", unbatch]", "a|b|e|f|");
    assert_stages("[" FILTERED ", {filter: \"v[1] != 'b'\"}, unbatch]", "e|f|");
    assert_stages("[{sample_from_datasets: {stop_on_empty_dataset: true, datasets: [[" FILTERED
                  ", unbatch]]}}]",
                  "a|b|e|f|");
}

static void
rebatch_sees_the_columns_of_a_filter(void **state)
{
    (void)state;
    assert_stages("[" FILTERED ", {rebatch: 3}, unbatch]", "a|b|e|f|");
}

static void
a_cache_in_a_file_sees_the_columns_of_a_filter(void **state)
{
    (void)state;
    assert_stages("[" FILTERED ", {cache: {filename: c}}, unbatch]", "a|b|e|f|");
    assert_stages("[" FILTERED ", {batch: 2}, {filter: \"size(v) > 0\"}, {cache: {filename: c}}, "
                  "unbatch, unbatch]",
                  "a|b|e|f|");
}

static void
buckets_see_the_columns_of_a_filter(void **state)
{
    (void)state;
    assert_stages("[" FILTERED ", {bucket_by_sequence_length: {column: v, bucket_boundaries: [4], "
                  "bucket_batch_sizes: [2, 2]}}, unbatch, unbatch]",
                  "a|b|e|f|");
}

/* The first looks for all of them, but only at what those before leave. */
static void
filters_after_each_other_are_as_apart(void **state)
{
#define ROWS                                                                                       \
    "{from_tensor_slices: {s: ['0', '2', '3', '4', '5', '7'], n: [0, 2, 3, 4, 5, 7]}}, "           \
    "{map: {s: s, n: n}}, "
    (void)state;
    for (size_t apart = 0; apart < 2; apart++) {
        const char *between = apart > 0 ? "{take: 99}, " : "";
        char *stages = tnd_sprintf("[" ROWS "{filter: \"n != 0\"}, %s{filter: \"84 // n > 15\"}, "
                                   "%s{filter: \"n != 4\"}, %s{filter: \"n > 2\"}]",
                                   between, between, between);

        assert_stages(stages, "3|5|");
        free(stages);
        stages = tnd_sprintf("[" ROWS "{filter: \"n != 2\"}, %s{filter: \"n < 7\"}, "
                             "%s{filter: \"84 // n > 20\"}, %s{filter: \"n > 2\"}]",
                             between, between, between);
        assert_stages(stages, "!division by zero in \"84 // n > 20\", at character 4|3|4|");
        free(stages);
    }
#undef ROWS
}

/* Only a dimension of 1 can be squeezed. */
static void
padded_batches_without_values_keep_their_last_dimension(void **state)
{
    (void)state;
    assert_stages("[{from_tensor_slices: {s: [a, b, c, d], t: ['', '', '', '']}}, {string_split: "
                  "{columns: t}}, {expand_dims: {columns: t, axis: 1}}, {padded_batch: "
                  "{batch_size: 2, padded_shapes: {t: [null, null]}}}, {batch: 2}, {squeeze: "
                  "{columns: t, axis: -1}}, {select: s}, unbatch, unbatch]",
                  "a|b|c|d|");
}

static void
functions_see_the_columns_of_a_filter(void **state)
{
    (void)state;
    assert_stages("[" FILTERED ", {flat_map: {dataset: [{from_tensors: {v: $v}}, {filter: "
                  "\"v[0] != 'a'\"}, unbatch]}}]",
                  "e|f|");
}

/* A picture may be an animation, with a dimension more, so the plan does not know how many
 * dimensions there are. */
static void
a_batch_of_more_dimensions_than_there_is_room_for_is_an_error(void **state)
{
    static const uint8_t picture[58] = {
        'B', 'M', 58, [10] = 54, [14] = 40, [18] = 1, [22] = 1, [26] = 1, [28] = 24, [34] = 4
    };
    struct folder folder;
    struct pipeline pipeline;
    uint64_t word;
    size_t count;

    (void)state;
    folder_open(&folder);
    put_file(&folder, "a.bmp", picture, sizeof picture);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0,
                                   "[{list_files: a.bmp}, read_file, decode_image, {batch: 1}, "
                                   "{batch: 1}, {batch: 1}, {batch: 1}, {batch: 1}, {batch: 1}]"),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, &word, 1, &count), ORDER_OK);
    assert_int_equal(pipeline_content(&pipeline, &word, 1), TUNDISH_E_DATA);
    assert_string_equal(tnd_error_text(), "batch makes column 'value' more than 8-dimensional");
    run_words_release(&word, 1, 1, 1);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

TEST_FILE(test_evaluate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unbatch_sees_the_columns_of_a_filter),
        cmocka_unit_test(rebatch_sees_the_columns_of_a_filter),
        cmocka_unit_test(a_cache_in_a_file_sees_the_columns_of_a_filter),
        cmocka_unit_test(buckets_see_the_columns_of_a_filter),
        cmocka_unit_test(filters_after_each_other_are_as_apart),
        cmocka_unit_test(padded_batches_without_values_keep_their_last_dimension),
        cmocka_unit_test(functions_see_the_columns_of_a_filter),
        cmocka_unit_test(a_batch_of_more_dimensions_than_there_is_room_for_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
