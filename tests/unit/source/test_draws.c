/* test_draws.c - what stages draw inside functions: for no two elements the same, again the same in
 * another job. */
#include "source_fixture.h"
#include "unit/test_file.h"

enum { ELEMENTS_MAX = 64 };

/* Brightness added to black pixels, by a stage that draws. */
#define BRIGHTEN                                                                                   \
    "{map: {value: \"cast(value * 0 + 1, float32)\"}}, {reshape: [1, 1, 1]}, "                     \
    "{random_brightness: {factor: [0.0, 1.0], value_range: [0, 100000], seed: 5}}"

static size_t
draw(const char *stages, float *ret_drawn)
{
    struct folder folder;
    struct pipeline pipeline;
    size_t count = 0;

    folder_open(&folder);
    if (pipeline_open(&pipeline, &folder, 0, stages) != TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
    while (pipeline_next(&pipeline) == ORDER_OK) {
        assert_true(count < ELEMENTS_MAX);
        ret_drawn[count++] = *(const float *)pipeline.frame.columns[0].values;
    }
    pipeline_close(&pipeline);
    folder_close(&folder);
    return count;
}

static void
assert_all_differ(const char *stages, size_t expected_count)
{
    float drawn[ELEMENTS_MAX], again[ELEMENTS_MAX];

    assert_int_equal(draw(stages, drawn), expected_count);
    for (size_t i = 0; i < expected_count; i++)
        for (size_t k = 0; k < i; k++)
            if (memcmp(&drawn[i], &drawn[k], sizeof drawn[i]) == 0)
                fail_msg("%s: elements %zu and %zu draw %f", stages, k, i, (double)drawn[i]);
    assert_int_equal(draw(stages, again), expected_count);
    assert_memory_equal(again, drawn, expected_count * sizeof *drawn);
}

static void
elements_of_different_outer_elements_draw_apart(void **state)
{
    (void)state;
    assert_all_differ(
        "[{range: 3}, {interleave: {cycle_length: 2, dataset: [{range: 4}, " BRIGHTEN "]}}]", 12);
    assert_all_differ("[{range: 3}, {flat_map: {dataset: [{range: 4}, " BRIGHTEN "]}}]", 12);
}

static void
so_do_those_of_functions_in_functions(void **state)
{
    (void)state;
    assert_all_differ("[{range: 2}, {flat_map: {dataset: [{range: 3}, {flat_map: {dataset: "
                      "[{range: 2}, " BRIGHTEN "]}}]}}]",
                      12);
}

static void
and_those_of_another_epoch(void **state)
{
    (void)state;
    assert_all_differ(
        "[{range: 3}, {flat_map: {dataset: [{range: 2}, " BRIGHTEN "]}}, {repeat: 3}]", 18);
    assert_all_differ(
        "[{range: 2}, {flat_map: {dataset: [{range: 2}, " BRIGHTEN ", {repeat: 3}]}}]", 12);
}

TEST_FILE(test_draws)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_different_outer_elements_draw_apart),
        cmocka_unit_test(so_do_those_of_functions_in_functions),
        cmocka_unit_test(and_those_of_another_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
