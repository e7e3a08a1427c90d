/* test_elements.c - elements of every form: a pipeline, and what its columns hold. */
#include "../print_lists.h"
#include "../source/source_fixture.h"
#include "unit/test_file.h"

enum { COLUMNS = 8, AT_ONCE = 64 };

/* What came out: a text for each column, and the sentence about the last bad element. */
struct printed {
    FILE *files[COLUMNS];
    char *texts[COLUMNS];
    size_t sizes[COLUMNS];
    char sentence[1200];
};

static void
print_frame(struct printed *printed, const struct pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->frame.column_count; i++) {
        if (ftell(printed->files[i]) > 0 && pipeline->frame.count > 0)
            fputc(' ', printed->files[i]);
        print_lists(printed->files[i], &pipeline->frame.columns[i],
                    pipeline->node->schema.columns[i].dtype, 0, pipeline->frame.count);
    }
}

static void
print_elements(struct printed *printed, struct pipeline *pipeline, const uint64_t *words,
               size_t count)
{
    if (pipeline_content(pipeline, words, (int64_t)count) == TUNDISH_OK) {
        print_frame(printed, pipeline);
    } else if (count > 1) {
        for (size_t i = 0; i < count; i++)
            print_elements(printed, pipeline, words + i * pipeline->node->width, 1);
    } else {
        snprintf(printed->sentence, sizeof printed->sentence, "%s", tnd_error_text());
        for (uint32_t i = 0; i < pipeline->node->schema.count; i++)
            fputs(ftell(printed->files[i]) > 0 ? " !" : "!", printed->files[i]);
    }
}

static void
print_all(struct printed *printed, struct pipeline *pipeline, size_t at_once)
{
    uint64_t words[AT_ONCE * PLAN_WIDTH_MAX];
    const struct plan_node *node = pipeline->node;
    enum order_result result;
    size_t count;

    while ((result = order_next(pipeline->iterator, words, at_once, &count)) != ORDER_END) {
        if (result == ORDER_FAILED)
            fail_msg("%s", tnd_error_text());
        print_elements(printed, pipeline, words, count);
        run_words_release(words, count, node->width, node->run_words);
    }
}

/* "a: 1 2; b: [3] [4]" */
static char *
join(struct printed *printed, const struct schema *schema)
{
    char *all;
    size_t bytes;
    FILE *out = open_memstream(&all, &bytes);

    for (uint32_t i = 0; i < COLUMNS; i++) {
        fclose(printed->files[i]);
        if (i < schema->count)
            fprintf(out, "%s%s: %s", i > 0 ? "; " : "", schema->columns[i].name, printed->texts[i]);
        free(printed->texts[i]);
    }
    fclose(out);
    return all;
}

/* The columns of all elements made at once, and one by one; `skipped` rows are left out (-1: bad
 * elements are errors, "!", and `sentence` is the last one's). */
static void
assert_made(const char *stages, const char *expected, int64_t skipped, const char *sentence)
{
    for (size_t at_once = 1; at_once <= AT_ONCE; at_once += AT_ONCE - 1) {
        struct printed printed = { 0 };
        struct pipeline pipeline;
        struct folder folder;
        char *text;

        folder_open(&folder);
        text = tnd_sprintf("[%s]", stages);
        if (pipeline_open(&pipeline, &folder, 0, text) != TUNDISH_OK)
            fail_msg("%s", tnd_error_text());
        free(text);
        assert_true(pipeline.node->schema.count <= COLUMNS);
        pipeline.evaluation.skip_bad = skipped >= 0;
        for (uint32_t i = 0; i < COLUMNS; i++)
            printed.files[i] = open_memstream(&printed.texts[i], &printed.sizes[i]);
        print_all(&printed, &pipeline, at_once);
        text = join(&printed, &pipeline.node->schema);
        assert_string_equal(text, expected);
        free(text);
        if (skipped >= 0)
            assert_int_equal(pipeline.evaluation.skipped, skipped);
        if (sentence != NULL && strstr(printed.sentence, sentence) == NULL)
            fail_msg("'%s' is not in: %s", sentence, printed.sentence);
        pipeline_close(&pipeline);
        folder_close(&folder);
    }
}

static void
assert_columns(const char *stages, const char *expected)
{
    assert_made(stages, expected, -1, NULL);
}

static void
assert_bad(const char *stages, const char *expected, const char *sentence)
{
    assert_made(stages, expected, -1, sentence);
}

static void
assert_skipped(const char *stages, const char *expected, int64_t skipped)
{
    assert_made(stages, expected, skipped, NULL);
}

#define TABLE "{from_tensor_slices: {a: [1, 2, 3], t: [x, yy, '']}}"
#define LISTS "{from_tensor_slices: {t: ['a', 'b c', '', 'd e f']}}, {string_split: {columns: t}}"
#define LONGER                                                                                     \
    "{from_tensor_slices: {t: ['1', '2 3', 'x 4']}}, {string_split: {columns: t}}, "               \
    "{string_to_number: {columns: t, out_type: int32}}"

static void
rows_are_as_their_source_has_them(void **state)
{
    (void)state;
    assert_columns("{range: 4}", "value: 0 1 2 3");
    assert_columns(TABLE, "a: 1 2 3; t: \"x\" \"yy\" \"\"");
    assert_columns(LISTS, "t: [\"a\"] [\"b\" \"c\"] [] [\"d\" \"e\" \"f\"]");
    assert_columns("{range: 0}", "value: ");
}

static void
content_stages_follow_each_other(void **state)
{
    (void)state;
    assert_columns("{range: 3}, {map: {b: 'value * 2', value: value}}, {map: {c: 'b + value'}}",
                   "value: 0 1 2; b: 0 2 4; c: 0 3 6");
    assert_columns("{range: 3}, {map: {b: 'value * 2'}}, {drop: value}", "b: 0 2 4");
    assert_columns(TABLE ", {rename: {a: z}}, {select: z}", "z: 1 2 3");
}

static void
a_batch_has_a_dimension_more(void **state)
{
    (void)state;
    assert_columns("{range: 5}, {batch: 2}", "value: [0 1] [2 3] [4]");
    assert_columns("{range: 5}, {batch: 2}, {batch: 2}", "value: [[0 1] [2 3]] [[4]]");
    assert_columns("{range: 5}, {batch: 2}, {map: {value: 'value + 1'}}", "value: [1 2] [3 4] [5]");
    assert_columns(TABLE ", {batch: 2}", "a: [1 2] [3]; t: [\"x\" \"yy\"] [\"\"]");
    assert_columns("{range: 4}, {batch: 2}, unbatch", "value: 0 1 2 3");
}

static void
rows_of_one_batch_are_equally_large(void **state)
{
    (void)state;
    assert_bad(LISTS ", {batch: 2}", "t: ! !",
               "in column 't' the first is [0] and another [3]; pad them (padded_batch)");
    assert_columns(LISTS ", {skip: 2}, {batch: 1}", "t: [[]] [[\"d\" \"e\" \"f\"]]");
    assert_columns(LISTS ", {ragged_batch: 3}",
                   "t: [[\"a\"] [\"b\" \"c\"] []] [[\"d\" \"e\" \"f\"]]");
}

static void
padding_fills_up_to_the_longest_or_to_a_shape(void **state)
{
    (void)state;
    assert_columns(LISTS ", {padded_batch: {batch_size: 2}}",
                   "t: [[\"a\" \"\"] [\"b\" \"c\"]] [[\"\" \"\" \"\"] [\"d\" \"e\" \"f\"]]");
    assert_columns(LISTS ", {take: 2}, {padded_batch: {batch_size: 2, padded_shapes: {t: [3]}, "
                         "padding_values: {t: p}}}",
                   "t: [[\"a\" \"p\" \"p\"] [\"b\" \"c\" \"p\"]]");
    assert_bad(LISTS ", {padded_batch: {batch_size: 2, padded_shapes: {t: [2]}}}",
               "t: [[\"a\" \"\"] [\"b\" \"c\"]] !", "padded_batch");
}

static void
columns_of_several_datasets_stand_side_by_side(void **state)
{
    (void)state;
    assert_columns("{zip: [[{range: {stop: 3, name: a}}], [{range: {start: 10, stop: 13, name: "
                   "b}}, {batch: 1}]]}",
                   "a: 0 1 2; b: [10] [11] [12]");
    assert_columns("{range: 3}, {enumerate: {start: 5}}", "index: 5 6 7; value: 0 1 2");
}

static void
elements_of_several_branches_keep_their_order(void **state)
{
    (void)state;
    assert_columns("{concatenate: [[{range: 2}], [{range: [7, 9]}]]}", "value: 0 1 7 8");
    assert_columns("{concatenate: [[{range: 3}, {batch: 2}], [{range: [7, 9]}, {batch: 2}]]}",
                   "value: [0 1] [2] [7 8]");
    assert_columns("{choose_from_datasets: {datasets: [[{range: 2}], [{range: [7, 9]}]], "
                   "choice_dataset: [{from_tensor_slices: {i: [1, 0, 0, 1]}}, {cast: int64}]}}",
                   "value: 7 0 1 8");
}

static void
functions_see_the_outer_element(void **state)
{
    (void)state;
    assert_columns("{range: 3}, {flat_map: [{range: $value}, {map: {b: '$value * 10 + value', "
                   "value: value}}]}",
                   "value: 0 0 1; b: 10 20 21");
    assert_columns("{range: [1, 3]}, {interleave: {cycle_length: 2, dataset: [{range: 2}, {map: "
                   "{value: '$value * 10 + value'}}]}}",
                   "value: 10 20 11 21");
}

static void
batches_are_cut_anew(void **state)
{
    (void)state;
    assert_columns("{range: 7}, {batch: 3}, {rebatch: 2}", "value: [0 1] [2 3] [4 5] [6]");
    assert_columns("{range: 7}, {batch: 2}, {rebatch: 5}", "value: [0 1 2 3 4] [5 6]");
    assert_columns("{range: 6}, {window: {size: 3, shift: 2}}", "value: [0 1 2] [2 3 4] [4 5]");
    assert_columns(LISTS ", {bucket_by_sequence_length: {column: t, bucket_boundaries: [2], "
                         "bucket_batch_sizes: [2, 2]}}",
                   "t: [[\"a\"] [\"\"]] [[\"b\" \"c\" \"\"] [\"d\" \"e\" \"f\"]]");
}

#define NUMBERS(bad)                                                                               \
    "{from_tensor_slices: {t: ['1', '2', " bad ", '4', '5', '6', '7']}}, "                         \
    "{string_to_number: {columns: t, out_type: int32}}, "

/* At once each of their rows is made once. */
static void
windows_have_rows_in_common(void **state)
{
    (void)state;
    assert_columns("{range: 7}, {window: {size: 4, shift: 1}}",
                   "value: [0 1 2 3] [1 2 3 4] [2 3 4 5] [3 4 5 6] [4 5 6] [5 6] [6]");
    assert_columns("{range: 8}, {window: {size: 5, shift: 2, drop_remainder: true}}, {batch: 2}",
                   "value: [[0 1 2 3 4] [2 3 4 5 6]]");
    assert_columns("{range: 9}, {window: {size: 3, shift: 2, stride: 2}}",
                   "value: [0 2 4] [2 4 6] [4 6 8] [6 8] [8]");
    assert_columns("{range: 9}, {window: {size: 3, shift: 1, stride: 3}}, {skip: 1}, {take: 2}",
                   "value: [1 4 7] [2 5 8]");
    assert_columns("{range: 1}, {repeat: 5}, {window: {size: 3, shift: 1}}",
                   "value: [0 0 0] [0 0 0] [0 0 0] [0 0] [0]");
    assert_columns("{concatenate: [[{range: 5}], [{range: 3}]]}, "
                   "{window: {size: 3, shift: 1, drop_remainder: true}}",
                   "value: [0 1 2] [1 2 3] [2 3 4] [3 4 0] [4 0 1] [0 1 2]");
    assert_columns("{from_tensor_slices: {t: [a, bb, '', d, e], v: [[1, 2], [3, 4], [5, 6], "
                   "[7, 8], [9, 0]]}}, {window: {size: 3, shift: 1, drop_remainder: true}}",
                   "t: [\"a\" \"bb\" \"\"] [\"bb\" \"\" \"d\"] [\"\" \"d\" \"e\"]; "
                   "v: [[1 2] [3 4] [5 6]] [[3 4] [5 6] [7 8]] [[5 6] [7 8] [9 0]]");
    assert_columns("{range: 80}, {window: {size: 4, shift: 3, drop_remainder: true}}, "
                   "{shard: {num_shards: 5, index: 1}}, {skip: 2}",
                   "value: [33 34 35 36] [48 49 50 51] [63 64 65 66]");
    assert_columns("{range: 80}, {window: {size: 4, shift: 1, drop_remainder: true}}, {skip: 59}, "
                   "{take: 4}",
                   "value: [59 60 61 62] [60 61 62 63] [61 62 63 64] [62 63 64 65]");
    assert_columns("{range: 80}, {window: {size: 4, shift: 1, drop_remainder: true}}, {skip: 59}, "
                   "{shard: {num_shards: 2, index: 0}}, {take: 4}",
                   "value: [59 60 61 62] [61 62 63 64] [63 64 65 66] [65 66 67 68]");
    assert_columns("{range: 10}, {window: {size: 4, shift: 1, drop_remainder: true}}, "
                   "{rebatch: 3}, {take: 4}",
                   "value: [0 1 2] [3 1 2] [3 4 2] [3 4 5]");
    assert_columns(NUMBERS("'3'") "{window: {size: 6, shift: 1, drop_remainder: true}}",
                   "t: [1 2 3 4 5 6] [2 3 4 5 6 7]");
    assert_bad(LISTS ", {window: {size: 3, shift: 1, drop_remainder: true}}", "t: ! !",
               "in column 't'");
}

static void
each_row_of_windows_is_made_once(void **state)
{
    struct tnd_stats_stage values[COLUMNS] = { 0 };
    struct evaluation_stage stages[COLUMNS] = { 0 };
    struct evaluation_counters counters = { .stages = stages, .is_untimed = true };
    struct pipeline pipeline;
    struct folder folder;
    uint64_t words[AT_ONCE];
    size_t count;

    (void)state;
    folder_open(&folder);
    assert_int_equal(
        pipeline_open(&pipeline, &folder, 0, "[{range: 100}, {window: {size: 10, shift: 2}}]"),
        TUNDISH_OK);
    assert_in_range(pipeline.plan->node_count, 2, COLUMNS);
    for (uint32_t i = 0; i < pipeline.plan->node_count; i++)
        stages[i].values = &values[i];
    pipeline.evaluation.counters = &counters;
    assert_int_equal(order_next(pipeline.iterator, words, 20, &count), ORDER_OK);
    assert_int_equal(count, 20);
    assert_int_equal(pipeline_content(&pipeline, words, 20), TUNDISH_OK);
    assert_int_equal(tnd_stats_get(&values[order_node(pipeline.node)->inputs[0]->index].rows),
                     10 + 19 * 2);
    run_words_release(words, count, 1, 1);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* As often as it is in one. */
static void
a_bad_row_of_windows_counts_for_each(void **state)
{
    (void)state;
    assert_bad(NUMBERS("x") "{window: {size: 4, shift: 1, drop_remainder: true}}",
               "t: ! ! ! [4 5 6 7]", "x");
    assert_skipped(NUMBERS("x") "{window: {size: 4, shift: 1, drop_remainder: true}}",
                   "t: [1 2 4] [2 4 5] [4 5 6] [4 5 6 7]", 3);
}

/* Windows with bad rows are made in vain together first, then one after the other. */
static void
each_stage_counts_the_rows_that_it_leaves_out(void **state)
{
    struct tnd_stats_stage values[COLUMNS] = { 0 };
    struct evaluation_stage stages[COLUMNS] = { 0 };
    struct evaluation_counters counters = { .stages = stages, .is_untimed = true };
    struct pipeline pipeline;
    struct folder folder;
    uint64_t words[AT_ONCE];
    size_t count;

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0,
                                   "[" NUMBERS("x") "{window: {size: 4, shift: 1, "
                                                    "drop_remainder: true}}]"),
                     TUNDISH_OK);
    assert_in_range(pipeline.plan->node_count, 3, COLUMNS);
    for (uint32_t i = 0; i < pipeline.plan->node_count; i++)
        stages[i].values = &values[i];
    pipeline.evaluation.counters = &counters;
    pipeline.evaluation.skip_bad = true;
    assert_int_equal(order_next(pipeline.iterator, words, AT_ONCE, &count), ORDER_OK);
    assert_int_equal(pipeline_content(&pipeline, words, (int64_t)count), TUNDISH_OK);
    assert_int_equal(pipeline.evaluation.skipped, 3);
    for (uint32_t i = 0; i < pipeline.plan->node_count; i++)
        if (i == order_node(pipeline.node)->inputs[0]->index)
            assert_in_range(tnd_stats_get(&values[i].skipped), 3, 4);
        else
            assert_int_equal(tnd_stats_get(&values[i].skipped), 0);
    run_words_release(words, count, 1, 1);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
a_bad_element_is_told_with_its_stage(void **state)
{
    (void)state;
    assert_bad(LONGER, "t: [1] [2 3] !", "string_to_number, line 3 of case.yaml");
    assert_bad(LONGER ", {ragged_batch: 2}", "t: [[1] [2 3]] !", "string_to_number");
}

static void
bad_rows_are_left_out(void **state)
{
    (void)state;
    assert_skipped(LONGER, "t: [1] [2 3]", 1);
    assert_skipped(LONGER ", {ragged_batch: 3}", "t: [[1] [2 3]]", 1);
    assert_skipped("{from_tensor_slices: {t: [x, y]}}, {string_to_number: {columns: t}}", "t: ", 2);
}

/* A stage after `batch` loses no more than the rows that it finds bad. */
static void
bad_rows_of_a_batch_are_left_out_alone(void **state)
{
    (void)state;
    assert_skipped("{from_tensor_slices: {t: ['1', x, '3', y, '5', '6']}}, {batch: 4}, "
                   "{string_to_number: {columns: t, out_type: int32}}",
                   "t: [1 3] [5 6]", 2);
    assert_skipped("{from_tensor_slices: {t: ['1', x, '3', y], u: [a, b, c, d]}}, {batch: 3}, "
                   "{string_to_number: {columns: t, out_type: int32}}",
                   "t: [1 3] []; u: [\"a\" \"c\"] []", 2);
}

TEST_FILE(test_elements)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_as_their_source_has_them),
        cmocka_unit_test(content_stages_follow_each_other),
        cmocka_unit_test(a_batch_has_a_dimension_more),
        cmocka_unit_test(rows_of_one_batch_are_equally_large),
        cmocka_unit_test(padding_fills_up_to_the_longest_or_to_a_shape),
        cmocka_unit_test(columns_of_several_datasets_stand_side_by_side),
        cmocka_unit_test(elements_of_several_branches_keep_their_order),
        cmocka_unit_test(functions_see_the_outer_element),
        cmocka_unit_test(batches_are_cut_anew),
        cmocka_unit_test(windows_have_rows_in_common),
        cmocka_unit_test(each_row_of_windows_is_made_once),
        cmocka_unit_test(a_bad_row_of_windows_counts_for_each),
        cmocka_unit_test(each_stage_counts_the_rows_that_it_leaves_out),
        cmocka_unit_test(a_bad_element_is_told_with_its_stage),
        cmocka_unit_test(bad_rows_are_left_out),
        cmocka_unit_test(bad_rows_of_a_batch_are_left_out_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
