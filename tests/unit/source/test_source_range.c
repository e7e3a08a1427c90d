/* test_source_range.c - numbers from start to stop. */
#include "source_fixture.h"

#include "core/half.h"
#include "unit/test_file.h"

/* Folders do not matter here. */
static const struct folder nowhere = { .path = ".", .cache = "." };

static void
assert_numbers(const char *stages, const int64_t *numbers, size_t count)
{
    struct pipeline pipeline;

    if (pipeline_open(&pipeline, &nowhere, 0, stages) != TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        assert_int_equal(*(const int64_t *)pipeline.frame.columns[0].values, numbers[i]);
    }
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
}

static void
bounds_are_given_in_all_forms(void **state)
{
    (void)state;
    assert_numbers("[range: 3]", (const int64_t[]){ 0, 1, 2 }, 3);
    assert_numbers("[range: [2, 4]]", (const int64_t[]){ 2, 3 }, 2);
    assert_numbers("[range: [10, 0, -4]]", (const int64_t[]){ 10, 6, 2 }, 3);
    assert_numbers("[range: {start: 1, stop: 6, step: 3}]", (const int64_t[]){ 1, 4 }, 2);
    assert_numbers("[range: [5, 5]]", NULL, 0);
    assert_numbers("[range: [5, 9, -1]]", NULL, 0);
}

static void
numbers_at_the_ends_of_int64_do_not_wrap(void **state)
{
    (void)state;
    assert_numbers("[range: [9223372036854775805, 9223372036854775807, 5]]",
                   (const int64_t[]){ INT64_MAX - 2 }, 1);
    assert_numbers("[range: [-9223372036854775808, 9223372036854775807, 9223372036854775807]]",
                   (const int64_t[]){ INT64_MIN, -1, INT64_MAX - 1 }, 3);
    assert_numbers("[range: [9223372036854775807, -9223372036854775808, "
                   "-9223372036854775808]]",
                   (const int64_t[]){ INT64_MAX, -1 }, 2);
}

static void
a_step_of_zero_is_refused(void **state)
{
    (void)state;
    assert_refused(&nowhere, "[range: [0, 5, 0]]", "step");
}

static void
the_output_type_converts(void **state)
{
    struct pipeline pipeline;

    (void)state;
    assert_int_equal(pipeline_open(&pipeline, &nowhere, 0,
                                   "[range: {start: 2049, stop: 2050, output_type: float16}]"),
                     TUNDISH_OK);
    assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
    assert_int_equal(*(const uint16_t *)pipeline.frame.columns[0].values,
                     tnd_half_from_float(2048));
    pipeline_close(&pipeline);
    assert_refused(&nowhere, "[range: {stop: 1, output_type: string}]", "string");
}

static void
numbers_can_be_had_by_place_and_passed_over(void **state)
{
    struct pipeline pipeline;
    uint64_t words[2 * SOURCE_WIDTH];
    uint64_t count, passed;
    size_t got;

    (void)state;
    assert_int_equal(pipeline_open(&pipeline, &nowhere, 0, "[range: [10, 0, -3]]"), TUNDISH_OK);
    assert_int_equal(pipeline.node->order->count(pipeline.iterator, &count), TUNDISH_OK);
    assert_int_equal(count, 4);
    assert_int_equal(
        pipeline.node->order->at(pipeline.iterator, (const uint64_t[]){ 3, 1 }, 2, words),
        TUNDISH_OK);
    assert_int_equal(words[0], 1);
    assert_int_equal(words[2], 7);
    assert_int_equal(order_pass_over(pipeline.iterator, 3, &passed), ORDER_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 2, &got), ORDER_OK);
    assert_int_equal(got, 1);
    assert_int_equal(words[0], 1);
    pipeline_close(&pipeline);
}

TEST_FILE(test_source_range)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_given_in_all_forms),
        cmocka_unit_test(numbers_at_the_ends_of_int64_do_not_wrap),
        cmocka_unit_test(a_step_of_zero_is_refused),
        cmocka_unit_test(the_output_type_converts),
        cmocka_unit_test(numbers_can_be_had_by_place_and_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
