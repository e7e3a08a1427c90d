/* test_scope.c - what $name means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
the_nearest_function_wins(void **state)
{
    (void)state;
    assert_order("{range: [1, 3]}, {flat_map: [{range: [5, 7]}, {flat_map: [{range: [0, $value]}, "
                 "{take: 1}, {enumerate: $value}]}]}",
                 "5:0 6:0 5:0 6:0");
}

static void
the_job_is_known_to_streams_made_by_a_function(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "streams: {case: {dataset: [{range: 20}, "
                 "{shard: {num_shards: $num_input_pipelines, index: $input_pipeline_id}}, "
                 "{batch: $per_replica_batch_size(16)}], "
                 "distribute: {replicas: 2, from_function: true}}}");
    fixture.services.worker = 1;
    fixture.services.worker_count = 2;
    fixture.services.replicas_in_sync = 4;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1 3 5 7] [9 11 13 15] [17 19]");
    fixture.services.replicas_in_sync = 3;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "!!");
    assert_non_null(strstr(tnd_error_text(), "The `global_batch_size` 16 is not divisible by "
                                             "`num_replicas_in_sync` 3"));
    fixture_close(&fixture);
}

static void
a_variable_that_is_no_scalar_fails_naming_the_line(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 4}, {batch: 2}, {flat_map: [{range: 9}, {take: $value}]}");
    fixture.graph->nodes[1]->schema.columns[0].rank = 1;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "! !");
    assert_non_null(strstr(tnd_error_text(), "test.yaml:1:"));
    assert_non_null(strstr(tnd_error_text(), "$value"));
    fixture_close(&fixture);
}

TEST_FILE(test_scope)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_function_wins),
        cmocka_unit_test(the_job_is_known_to_streams_made_by_a_function),
        cmocka_unit_test(a_variable_that_is_no_scalar_fails_naming_the_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
