/* test_order_bucket_by_sequence_length.c - batches of similar lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
full_buckets_come_first_then_what_is_left(void **state)
{
    (void)state;
    assert_order("{range: [7, 0, -1]}, {flat_map: [{range: [0, $value]}, {batch: 100}]}, "
                 "{bucket_by_sequence_length: {column: value, bucket_boundaries: [3, 5], "
                 "bucket_batch_sizes: [2, 2, 2]}}",
                 "[[0 1 2 3 4 5 6] [0 1 2 3 4 5]] [[0 1 2 3] [0 1 2]] [[0 1] [0]] [[0 1 2 3 4]]");
}

static void
what_is_left_may_be_dropped(void **state)
{
    (void)state;
    assert_order("{range: [1, 6]}, {flat_map: [{range: [0, $value]}, {batch: 100}]}, "
                 "{bucket_by_sequence_length: {column: value, bucket_boundaries: [3], "
                 "bucket_batch_sizes: [2, 2], drop_remainder: true}}",
                 "[[0] [0 1]] [[0 1 2] [0 1 2 3]]");
}

static void
the_last_bucket_cannot_be_padded_to_its_boundary(void **state)
{
    (void)state;
    assert_order("{range: [1, 8]}, {flat_map: [{range: [0, $value]}, {batch: 100}]}, "
                 "{bucket_by_sequence_length: {column: value, bucket_boundaries: [4, 6], "
                 "bucket_batch_sizes: [2, 2, 2], pad_to_bucket_boundary: true}}",
                 "[[0] [0 1]] [[0 1 2 3] [0 1 2 3 4]] ! [[0 1 2]]");
}

static void
the_length_may_be_a_number(void **state)
{
    (void)state;
    assert_order(
        "{range: 6}, {bucket_by_sequence_length: {column: value, bucket_boundaries: [2, 4], "
        "bucket_batch_sizes: [2, 3, 2]}}",
        "[0 1] [4 5] [2 3]");
}

static void
buckets_are_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: [1, 60]}, {batch: 3}, {bucket_by_sequence_length: {column: "
                           "value, bucket_boundaries: [2, 3], bucket_batch_sizes: [2, 2, 20]}}");
    fixture_epoch(&fixture, 0, 1);
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_bucket_by_sequence_length)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_buckets_come_first_then_what_is_left),
        cmocka_unit_test(what_is_left_may_be_dropped),
        cmocka_unit_test(the_last_bucket_cannot_be_padded_to_its_boundary),
        cmocka_unit_test(the_length_may_be_a_number),
        cmocka_unit_test(buckets_are_given_up_at_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
