/* test_memory_cost.c - what a batch takes by its shapes and by the rows that come, and what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "core/status.h"
#include "plan/batch_rows.h"
#include "plan/memory_cost.h"
#include "unit/test_file.h"

enum { VALUE = sizeof(int64_t), LINE = 64 }; /* a column begins at a line of its own */

static struct plan *
open_plan(const char *stages, const char *rest, uint32_t workers, struct spec_file **ret_file)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s]%s}}", stages, rest);
    struct plan_options options = { .worker_count = workers, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct plan *plan = NULL;

    if (spec_open_text(text, strlen(text), "case.yaml", "/", &errors, ret_file) != TUNDISH_OK ||
        plan_open(*ret_file, &(*ret_file)->streams[0], &options, &errors, &plan) != TUNDISH_OK)
        fail_msg("%s: %s", text, spec_errors_text(&errors));
    spec_errors_close(&errors);
    free(text);
    return plan;
}

/* One slice has room for so many int64 values. */
static void
assert_values(const char *stages, const char *distribute, uint32_t workers, int64_t values)
{
    char *rest = tnd_sprintf(", distribute: {%s}", distribute);
    struct spec_file *file = NULL;
    struct plan *plan = open_plan(stages, rest, workers, &file);
    struct plan_memory memory;
    int64_t bytes = values < 0 ? -1 : (values * VALUE + LINE - 1) / LINE * LINE;

    plan_memory(plan, &memory);
    if (memory.slice_bytes != bytes)
        fail_msg("%s, %s: %lld bytes, not %lld", stages, distribute, (long long)memory.slice_bytes,
                 (long long)bytes);
    plan_close(plan);
    spec_close(file);
    free(rest);
}

#define ALL "1000000000"

static void
a_batch_has_no_more_rows_than_come(void **state)
{
    (void)state;
    assert_values("{range: 100}, {batch: " ALL "}", "", 1, 100);
    assert_values("{range: 100}, {batch: 60}", "", 1, 60);
    assert_values("{range: 100}, {shuffle: 9}, {repeat: 3}, {batch: " ALL "}", "", 1, 300);
    assert_values("{range: 100}, {batch: " ALL "}, {repeat: 3}", "", 1, 100);
    assert_values("{range: 100}, {repeat: -1}, {batch: 5000}", "", 1, 5000);
    assert_values("{range: 100}, {padded_batch: " ALL "}", "", 1, 100);
    assert_values("{range: 100}, {filter: \"value > 3\"}, {batch: " ALL "}", "", 1, 100);
    assert_values("{range: 100}, {shard: {num_shards: 3, index: 0}}, {batch: " ALL "}", "", 1, 34);
    assert_values("{concatenate: [[{range: 3}], [{range: 4}]]}, {batch: " ALL "}", "", 1, 7);
    assert_values("{range: 100}, {batch: " ALL "}, {map: {value: value + 1}}", "", 1, 100);
    assert_values("{range: 100}, {batch: 3}, {rebatch: 50}", "", 1, 50);
    assert_values("{range: 100}, {batch: 3}, {rebatch: " ALL "}", "", 1, 102);
}

static void
assert_epoch_steps(const char *stages, const char *rest, uint32_t workers, int64_t steps)
{
    struct spec_file *file = NULL;
    struct plan *plan = open_plan(stages, rest, workers, &file);

    if (plan_epoch_steps(plan) != steps)
        fail_msg("%s%s: %lld steps, not %lld", stages, rest, (long long)plan_epoch_steps(plan),
                 (long long)steps);
    plan_close(plan);
    spec_close(file);
}

static void
the_steps_of_an_epoch_are_told_where_cardinality_tells(void **state)
{
    (void)state;
    assert_epoch_steps("{range: 100}, {batch: 8}", "", 1, 13);
    assert_epoch_steps("{range: 100}, {batch: {batch_size: 8, drop_remainder: true}}", "", 1, 12);
    assert_epoch_steps("{range: 100}, {shuffle: 9}, {repeat: 3}, {batch: 8}", "", 1, 38);
    /* A global batch is cut into a slice for each replica. */
    assert_epoch_steps("{range: 100}, {batch: 8}", ", distribute: {replicas: 4}", 1, 13);
    assert_epoch_steps("{range: 100}, {batch: 8}",
                       ", distribute: {replicas: 4, from_function: true}", 1, 4);
    assert_epoch_steps("{range: 100}, {batch: 8}", ", distribute: {delivery: broadcast}", 1, 13);
}

static void
the_steps_of_an_epoch_are_unknown_otherwise(void **state)
{
    (void)state;
    assert_epoch_steps("{range: 100}, {repeat: -1}, {batch: 8}", "", 1, -1);
    assert_epoch_steps("{range: 100}, {filter: \"value > 3\"}, {batch: 8}", "", 1, -1);
    assert_epoch_steps("{text_line: a}, {batch: 8}", "", 1, -1);
    assert_epoch_steps("{text_line: a}, {take: 9}, {batch: 8}", "", 1, -1);
    assert_epoch_steps("{range: 100}, {batch: 8}", "", 2, -1);
    assert_epoch_steps("{range: 100}, {batch: 8}", ", distribute: {delivery: queue}", 1, -1);
    assert_epoch_steps("{range: 100}, {batch: 8}", ", distribute: {evaluation_shards: 4}", 1, -1);
    assert_epoch_steps("{range: 100}, {batch: 8}", ", deliver: {on_error: skip}", 1, -1);
}

static void
take_says_how_many_come(void **state)
{
    (void)state;
    assert_values("{text_line: a}, {string_length: {}}, {cast: int64}, {batch: 500}", "", 1, 500);
    assert_values("{text_line: a}, {string_length: {}}, {cast: int64}, {take: 70}, {batch: 500}",
                  "", 1, 70);
    assert_values("{range: 40}, {take: 70}, {batch: 500}", "", 1, 40);
}

static void
a_remainder_that_is_dropped_takes_nothing(void **state)
{
    (void)state;
    assert_values("{range: 100}, {batch: {batch_size: " ALL ", drop_remainder: true}}", "", 1, 0);
    assert_values("{range: 100}, {batch: {batch_size: 100, drop_remainder: true}}", "", 1, 100);
}

static void
a_slice_has_its_share_of_the_rows(void **state)
{
    (void)state;
    assert_values("{range: 100}, {batch: " ALL "}", "replicas: 3", 1, 34);
    assert_values("{range: 100}, {batch: " ALL "}", "replicas: 3", 2, 17);
    assert_values("{range: 100}, {batch: 40}", "replicas: 4", 1, 10);
    assert_values("{range: 100}, {batch: 40}, {map: {value: value + 1}}", "replicas: 4", 1, 10);
}

/* Slices of ALL / 2 rows are filled from batch after batch: the first gets all that there are. */
static void
rows_that_carry_over_gather_in_one_slice(void **state)
{
    (void)state;
    assert_values("{range: 100}, {batch: " ALL "}, {repeat: 3}", "replicas: 2, rebatch: carry", 1,
                  300);
    assert_values("{range: 100}, {batch: 40}, {repeat: 3}", "replicas: 2, rebatch: carry", 1, 20);
}

/* Nothing is cut there: each replica, or reader of a queue, gets whole batches. */
static void
batches_that_are_not_cut_are_whole(void **state)
{
    (void)state;
    assert_values("{range: 100}, {batch: 40}", "replicas: 2, from_function: true", 1, 40);
    assert_values("{range: 100}, {batch: 40}", "delivery: queue", 2, 40);
}

static void
assert_checked(const char *stages, const char *deliver, const char *sentence)
{
    char *rest = tnd_sprintf(", deliver: {%s}", deliver);
    struct spec_file *file = NULL;
    struct plan *plan = open_plan(stages, rest, 1, &file);
    tundish_status status = plan_memory_check(plan);

    assert_int_equal(status, sentence == NULL ? TUNDISH_OK : TUNDISH_E_MEMORY);
    if (sentence != NULL && strstr(tnd_error_text(), sentence) == NULL)
        fail_msg("'%s' is not in '%s'", sentence, tnd_error_text());
    plan_close(plan);
    spec_close(file);
    free(rest);
}

static void
what_is_too_large_is_refused_with_the_arithmetic(void **state)
{
    (void)state;
    assert_checked("{range: 100}, {batch: " ALL "}", "memory_limit: 1MiB", NULL);
    assert_checked("{range: 100}, {batch: " ALL "}", "memory_limit: 100",
                   "a batch of 100 rows needs 832 bytes for each of 1 replicas, but there is room "
                   "for 100 (memory_limit): use a smaller batch_size, or allow more memory");
    assert_checked("{text_line: a}, {string_length: {}}, {batch: " ALL "}", "memory_limit: 1MiB",
                   "a batch of 1000000000 rows needs 4000000000 bytes for each of 1 replicas, but "
                   "there is room for 1048576 (memory_limit): use a smaller batch_size, or allow "
                   "more memory; if the input has at most N rows, put `take: N` before batch");
}

TEST_FILE(test_memory_cost)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_no_more_rows_than_come),
        cmocka_unit_test(the_steps_of_an_epoch_are_told_where_cardinality_tells),
        cmocka_unit_test(the_steps_of_an_epoch_are_unknown_otherwise),
        cmocka_unit_test(take_says_how_many_come),
        cmocka_unit_test(a_remainder_that_is_dropped_takes_nothing),
        cmocka_unit_test(a_slice_has_its_share_of_the_rows),
        cmocka_unit_test(rows_that_carry_over_gather_in_one_slice),
        cmocka_unit_test(batches_that_are_not_cut_are_whole),
        cmocka_unit_test(what_is_too_large_is_refused_with_the_arithmetic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
