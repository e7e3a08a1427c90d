/* test_order_cache.c - the first pass, again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_freezes_a_shuffle_above(void **state)
{
    (void)state;
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 5}, {shuffle: {buffer_size: 3, seed: "
                 "2}}, cache, {repeat: 3}]}}",
                 "1 3 2 0 4 1 3 2 0 4 1 3 2 0 4");
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 6}, {shuffle: {buffer_size: 6, seed: "
                 "2}}, cache]}}",
                 "4 5 2 0 1 3 | 4 5 2 0 1 3 | 4 5 2 0 1 3");
    assert_order("seed: 1\nstreams: {case: {dataset: [{range: 6}, cache, {shuffle: {buffer_size: "
                 "6, seed: 2}}]}}",
                 "4 5 2 0 1 3 | 1 0 2 3 4 5 | 4 1 3 0 5 2");
}

static void
its_input_is_made_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 6}, {batch: 2}, cache");
    for (int i = 0; i < 3; i++)
        assert_string_equal(fixture_epoch(&fixture, 100, 2), "[0 1] [2 3] [4 5]");
    assert_int_equal(fixture.pulled[0], 6);
    fixture_close(&fixture);
}

static void
whoever_resumes_makes_the_pass_again(void **state)
{
    struct fixture fixture, resumed;
    char *frozen;
    uint64_t counts[3][2];

    (void)state;
    fixture_open(&fixture, "{range: 9}, {shuffle: {buffer_size: 9, seed: 2}}, cache");
    frozen = strdup(fixture_epoch(&fixture, 100, 2));
    fixture_epoch(&fixture, 100, 2);
    for (int i = 0; i < 3; i++) {
        counts[i][0] = fixture.instance->iterator_counts[i];
        counts[i][1] = fixture.instance->element_counts[i];
    }
    fixture_close(&fixture);
    fixture_open(&resumed, "{range: 9}, {shuffle: {buffer_size: 9, seed: 2}}, cache");
    resumed.instance = order_instance_open(resumed.graph, NULL, &resumed.services);
    for (int i = 0; i < 3; i++) {
        resumed.instance->iterator_counts[i] = counts[i][0];
        resumed.instance->element_counts[i] = counts[i][1];
    }
    assert_string_equal(fixture_epoch(&resumed, 100, 2), frozen);
    assert_string_equal(fixture_epoch(&resumed, 100, 2), frozen);
    fixture_close(&resumed);
    free(frozen);
}

static void
a_pass_broken_off_is_not_kept(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 6}, {batch: 2}, cache");
    fixture_epoch(&fixture, 2, 2);
    assert_string_equal(fixture_epoch(&fixture, 100, 2), "[0 1] [2 3] [4 5]");
    assert_int_equal(fixture.pulled[0], 4 + 6);
    fixture_close(&fixture);
}

/* Where it is known which element is the last, nobody needs to ask for the end. */
static void
a_pass_is_whole_with_its_last_known_element(void **state)
{
#define SHUFFLED "{range: 8}, {shuffle: {buffer_size: 8, seed: 3}}"
    static const struct {
        const char *stages;
        bool frozen;
    } passes[] = {
        { SHUFFLED ", cache, {take: 8}", true },
        { SHUFFLED ", cache, {take: 7}", false },
        { SHUFFLED ", {take: 5}, cache, {take: 5}", true },
        { SHUFFLED ", {batch: 3}, cache, {take: 3}", true },
        { SHUFFLED ", {skip: 1}, {shard: {num_shards: 2, index: 0}}, cache, {take: 4}", true },
        { SHUFFLED ", {filter: \"value > -1\"}, cache, {take: 8}", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        struct fixture fixture;
        char *first;

        fixture_open(&fixture, passes[i].stages);
        first = strdup(fixture_epoch(&fixture, 100, 3));
        assert_int_equal(strcmp(first, fixture_epoch(&fixture, 100, 3)) == 0, passes[i].frozen);
        free(first);
        fixture_close(&fixture);
    }
}

static void
a_pass_without_end_is_not_kept(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 3}, {repeat: -1}, cache, {take: 7}");
    fixture.services.memory_limit = 1; /* nothing has room */
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "0 1 2 0 1 2 0");
    assert_string_equal(fixture_epoch(&fixture, 100, 3), "0 1 2 0 1 2 0");
    fixture_close(&fixture);
}

TEST_FILE(test_order_cache)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_freezes_a_shuffle_above),
        cmocka_unit_test(its_input_is_made_once),
        cmocka_unit_test(whoever_resumes_makes_the_pass_again),
        cmocka_unit_test(a_pass_broken_off_is_not_kept),
        cmocka_unit_test(a_pass_is_whole_with_its_last_known_element),
        cmocka_unit_test(a_pass_without_end_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
