/* test_origin.c - which elements of sources the rows of a batch are made of. */
#include "../source/source_fixture.h"

#include "batch/origin.h"
#include "source/files/whereabouts.h"
#include "unit/test_file.h"

enum { TEXT_BYTES = 512 };

static void
say_source(const struct pipeline *pipeline, const struct origin_source *source, char *text)
{
    struct whereabouts where;
    size_t used = strlen(text);

    whereabouts_of(source->node, pipeline->files, source->words, &where);
    if (where.has_record)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "@%llu",
                                 (unsigned long long)where.record);
    else
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%lld", (long long)where.number);
    if (source->row >= 0)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "[%lld]", (long long)source->row);
    if (source->is_outer)
        snprintf(text + used, TEXT_BYTES - used, "^");
}

/* Rows are apart by bars; after a colon come the numbers that stages gave. */
static void
say_origins(const struct pipeline *pipeline, const struct origins *origins, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < origins->row_count; i++) {
        const struct origin_row *row = &origins->rows[i];

        if (i > 0)
            strcat(text, " | ");
        for (size_t k = 0; k < row->source_count; k++) {
            if (k > 0)
                strcat(text, " ");
            say_source(pipeline, &row->sources[k], text);
        }
        for (size_t k = 0; k < row->mark_count; k++)
            snprintf(text + strlen(text), TEXT_BYTES - strlen(text), "%s%llu", k > 0 ? "," : ":",
                     (unsigned long long)row->marks[k].number);
    }
    for (size_t i = 0; i < origins->blender_count; i++)
        strcat(text, " ~");
}

/* Element `index` of the stages: @ is the number of a line (a 1, b 2, ... f 6), a bare number that
 * of an element in no file. */
static void
assert_origins(const char *stages, size_t index, bool skips, const char *expected)
{
    struct pipeline pipeline;
    struct folder folder;
    struct origins origins;
    char text[TEXT_BYTES];
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    folder_open(&folder);
    put_text(&folder, "lines", "1\n2\n3\n4\n5\n6\n");
    put_text(&folder, "bad", "1\nx\n3\n4\nx\n6\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 1, stages), TUNDISH_OK);
    pipeline.evaluation.skip_bad = skips;
    for (size_t i = 0; i <= index; i++) {
        assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_OK);
        if (i < index)
            run_words_release(words, 1, pipeline.node->width, pipeline.node->run_words);
    }
    origins_open(&pipeline.evaluation, pipeline.node, words, &origins);
    say_origins(&pipeline, &origins, text);
    assert_string_equal(text, expected);
    origins_close(&origins);
    run_words_release(words, 1, pipeline.node->width, pipeline.node->run_words);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

#define LINES "[{text_line: lines}"

static void
rows_of_a_batch_are_its_records(void **state)
{
    (void)state;
    assert_origins(LINES "]", 2, false, "@2");
    assert_origins(LINES ", {batch: 3}]", 1, false, "@3 | @4 | @5");
    assert_origins(LINES ", {padded_batch: 4}, {skip: 1}]", 0, false, "@4 | @5");
    assert_origins(LINES ", {batch: 3}, {rename: {value: x}}]", 0, false, "@0 | @1 | @2");
}

static void
rows_made_of_several_name_all(void **state)
{
    (void)state;
    assert_origins(LINES ", {batch: 2}, {batch: 2}]", 0, false, "@0 @1 | @2 @3");
    assert_origins(LINES ", {window: {size: 3, shift: 1}}, {batch: 2}]", 1, false,
                   "@2 @3 @4 | @3 @4 @5");
    assert_origins("[{zip: {datasets: [" LINES "], [{range: {stop: 9, name: r}}]]}}, {batch: 2}]",
                   1, false, "@2 2 | @3 3");
}

static void
batches_that_are_taken_apart_and_joined_keep_their_rows(void **state)
{
    (void)state;
    assert_origins(LINES ", {batch: 4}, unbatch, {batch: 3}]", 1, false, "@3 | @4 | @5");
    assert_origins(LINES ", {batch: 2}, {batch: 2}, unbatch]", 1, false, "@2 | @3");
    assert_origins(LINES ", {batch: 2}, {rebatch: 3}]", 0, false, "@0 | @1 | @2");
    assert_origins(LINES ", {batch: 4}, {padded_batch: 1}, unbatch, {rebatch: 3}]", 1, false,
                   "@3 | @4 | @5");
}

static void
numbers_and_choices_are_told(void **state)
{
    (void)state;
    assert_origins(LINES ", {enumerate: 7}, {skip: 1}, {batch: 2}]", 0, false, "@1:8 | @2:9");
    assert_origins(LINES ", {batch: 2}, enumerate, {skip: 2}]", 0, false, "@4:2 | @5:2");
    assert_origins("[{concatenate: {datasets: [[{range: {stop: 1, name: value}}], "
                   "[{range: {start: 5, stop: 6, name: value}}]]}}, {batch: 2}]",
                   0, false, "0:0 | 5:1");
}

static void
a_function_names_its_outer_element_where_content_uses_it(void **state)
{
    (void)state;
    assert_origins("[{range: {start: 3, stop: 5, name: o}}, {flat_map: {dataset: [{range: {stop: "
                   "2, name: i}}, {map: {i: \"i + $o\"}}]}}, {batch: 3}]",
                   0, false, "0 3^ | 1 3^ | 0 4^");
}

/* Rows of a stage that sees all rows are named in the order in which it was given them; if it gives
 * another number of rows, each is one of what it makes of all. */
static void
stages_that_look_across_rows_are_told(void **state)
{
    (void)state;
    assert_origins(LINES ", {string_to_number: {}}, {batch: 2}, {map: {value: \"value - "
                         "mean(value)\"}}]",
                   1, false, "@2 | @3 ~");
    assert_origins(LINES ", {string_to_number: {}}, {batch: 4}, {map: {value: "
                         "\"value[::2]\"}}]",
                   0, false, "@0[0] @1[0] @2[0] @3[0] | @0[1] @1[1] @2[1] @3[1] ~");
}

static void
rows_left_out_are_not_named(void **state)
{
    (void)state;
    assert_origins("[{text_line: bad}, {string_to_number: {}}, {batch: 6}]", 0, true,
                   "@0 | @2 | @3 | @5");
    assert_origins("[{text_line: bad}, {batch: 6}, {string_to_number: {}}]", 0, true,
                   "@0 | @2 | @3 | @5");
    assert_origins("[{text_line: bad}, {skip: 1}, {string_to_number: {}}]", 0, true, "");
    /* Without `skip` the step fails, and its rows are named all the same. */
    assert_origins("[{text_line: bad}, {string_to_number: {}}, {batch: 3}]", 0, false,
                   "@0 | @1 | @2");
}

TEST_FILE(test_origin)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_batch_are_its_records),
        cmocka_unit_test(rows_made_of_several_name_all),
        cmocka_unit_test(batches_that_are_taken_apart_and_joined_keep_their_rows),
        cmocka_unit_test(numbers_and_choices_are_told),
        cmocka_unit_test(a_function_names_its_outer_element_where_content_uses_it),
        cmocka_unit_test(stages_that_look_across_rows_are_told),
        cmocka_unit_test(rows_left_out_are_not_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
