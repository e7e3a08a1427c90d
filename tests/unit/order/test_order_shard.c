/* test_order_shard.c - every n-th element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_takes_every_nth(void **state)
{
    (void)state;
    assert_order("{range: 11}, {shard: {num_shards: 3, index: 1}}", "1 4 7 10");
    assert_order("{range: 11}, {shard: {num_shards: 1, index: 0}}", "0 1 2 3 4 5 6 7 8 9 10");
    assert_order("{range: 2}, {shard: {num_shards: 5, index: 3}}", "");
    assert_order("{range: 11}, {batch: 2}, {shard: {num_shards: 2, index: 1}}", "[2 3] [6 7] [10]");
}

static void
it_pulls_no_further_than_its_element(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100}, {shard: {num_shards: 10, index: 3}}");
    fixture_epoch(&fixture, 2, 2);
    assert_int_equal(fixture.pulled[0], 14);
    fixture_close(&fixture);
}

static void
more_shards_than_a_chunk(void **state)
{
    (void)state;
    assert_order("{range: 7000}, {shard: {num_shards: 3000, index: 500}}", "500 3500 6500");
}

static void
variables_may_number_it(void **state)
{
    (void)state;
    assert_order(
        "{range: [1, 4]}, {flat_map: [{range: 5}, {shard: {num_shards: $value, index: 0}}]}",
        "0 1 2 3 4 0 2 4 0 3");
    assert_order("{range: 3}, {flat_map: [{range: 5}, {shard: {num_shards: 2, index: $value}}]}",
                 "0 2 4 1 3 !");
}

static void
a_hint_that_nobody_rewrote_is_refused(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 5}, {shard: {num_shards: SHARD_HINT}}");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "!!");
    assert_non_null(strstr(tnd_error_text(), "SHARD_HINT"));
    fixture_close(&fixture);
}

static void
distribution_numbers_it(void **state)
{
    struct fixture fixture;
    const struct shard_arguments planned = { .shards = 3, .index = 2 };

    (void)state;
    fixture_open(&fixture, "{range: 8}");
    fixture_append(&fixture, &order_shard, &planned);
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "2 5");
    fixture_close(&fixture);
}

static void
a_first_round_that_must_be_whole_fails_every_worker(void **state)
{
    struct fixture fixture;

    (void)state;
    for (int64_t worker = 0; worker < 5; worker++) {
        const struct shard_arguments planned = { .shards = 5,
                                                 .index = worker,
                                                 .whole_round = true };

        fixture_open(&fixture, "{range: 4}, {batch: 1}");
        fixture_append(&fixture, &order_shard, &planned);
        fixture_epoch(&fixture, 0, 1);
        assert_int_equal(fixture_epoch(&fixture, 100, 3)[0], '!');
        assert_non_null(strstr(tnd_error_text(), "4 file(s)"));
        assert_non_null(strstr(tnd_error_text(), "5 workers"));
        fixture_close(&fixture);
    }
}

static void
a_whole_first_round_goes_out_as_usual(void **state)
{
    struct fixture fixture;
    static const char *const expected[] = { "[0] [3] [6]", "[1] [4]", "[2] [5]" };

    (void)state;
    for (int64_t worker = 0; worker < 3; worker++)
        for (size_t chunk = 1; chunk < 4; chunk++) {
            const struct shard_arguments planned = { .shards = 3,
                                                     .index = worker,
                                                     .whole_round = true };

            fixture_open(&fixture, "{range: 7}, {batch: 1}");
            fixture_append(&fixture, &order_shard, &planned);
            assert_string_equal(fixture_epoch(&fixture, 100, chunk), expected[worker]);
            fixture_close(&fixture);
        }
}

static void
no_elements_at_all_are_no_error(void **state)
{
    struct fixture fixture;
    const struct shard_arguments planned = { .shards = 3, .index = 1, .whole_round = true };

    (void)state;
    fixture_open(&fixture, "{range: 0}");
    fixture_append(&fixture, &order_shard, &planned);
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "");
    fixture_close(&fixture);
}

static void
an_early_close_gives_up_the_first_round(void **state)
{
    struct fixture fixture;
    const struct shard_arguments planned = { .shards = 3, .index = 1, .whole_round = true };

    (void)state;
    fixture_open(&fixture, "{range: 70}, {batch: 1}");
    fixture_append(&fixture, &order_shard, &planned);
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_shard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_every_nth),
        cmocka_unit_test(it_pulls_no_further_than_its_element),
        cmocka_unit_test(more_shards_than_a_chunk),
        cmocka_unit_test(variables_may_number_it),
        cmocka_unit_test(a_hint_that_nobody_rewrote_is_refused),
        cmocka_unit_test(distribution_numbers_it),
        cmocka_unit_test(a_first_round_that_must_be_whole_fails_every_worker),
        cmocka_unit_test(a_whole_first_round_goes_out_as_usual),
        cmocka_unit_test(no_elements_at_all_are_no_error),
        cmocka_unit_test(an_early_close_gives_up_the_first_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
