/* test_together.c - does the place of one replica serve its group? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "rig/numbers.h"
#include "tundish/tundish_device.h"
#include "unit/test_file.h"

#define SECOND INT64_C(1000000000)
#define PATIENCE (300 * SECOND) /* for what must come: a machine may be slow */

static tundish_reader *
open_reader(const struct numbers *numbers, int replica)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    options.server = numbers_path(numbers);
    options.replica = replica;
    options.server_timeout_ns = PATIENCE;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

static void
take(tundish_reader *reader, tundish_status expected)
{
    const tundish_batch *batch = NULL;

    if (tundish_next(reader, PATIENCE, &batch) != expected)
        fail_msg("%s", tundish_last_error());
    if (expected == TUNDISH_OK)
        tundish_release(reader, batch);
}

static tundish_standing
stand(tundish_reader *reader)
{
    tundish_standing standing = { .size = sizeof standing };

    if (tundish_get_standing(reader, PATIENCE, &standing) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return standing;
}

static void
replicas_that_stand_apart_are_not_together(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 2 };
    tundish_standing standing;
    struct numbers *numbers;
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, 0);
    b = open_reader(numbers, 1);
    take(a, TUNDISH_OK);
    take(b, TUNDISH_OK);
    standing = stand(a);
    assert_true(standing.is_known && standing.is_together);
    assert_true(standing.epoch == 0 && standing.step == 1);
    assert_true(stand(b).is_together);
    take(b, TUNDISH_OK);
    standing = stand(a);
    assert_true(standing.is_known && !standing.is_together);
    assert_true(standing.lowest_epoch == 0 && standing.lowest_step == 1);
    assert_true(standing.highest_epoch == 0 && standing.highest_step == 2);
    assert_false(stand(b).is_together);
    take(a, TUNDISH_OK);
    assert_true(stand(b).is_together);
    take(a, TUNDISH_END); /* the next epoch is another place */
    standing = stand(a);
    assert_true(standing.is_known && !standing.is_together);
    assert_true(standing.epoch == 1 && standing.step == 0);
    take(b, TUNDISH_END);
    assert_true(stand(a).is_together && stand(b).is_together);
    tundish_close(b);
    tundish_close(a);
    numbers_close(numbers);
}

static void
it_is_not_known_without_a_trainer_or_of_one_that_reads_ahead(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 9, .rejoin_ns = PATIENCE };
    tundish_device_figures figures = { .size = sizeof figures,
                                       .mode = TUNDISH_DEVICE_COPY,
                                       .why = TUNDISH_DEVICE_ASKED };
    struct numbers *numbers;
    tundish_standing small = { .size = 4 };
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, 0);
    take(a, TUNDISH_OK);
    assert_false(stand(a).is_known);
    b = open_reader(numbers, 1);
    take(b, TUNDISH_OK);
    assert_true(stand(a).is_together);
    assert_int_equal(tundish_tell_device(b, &figures), TUNDISH_OK);
    assert_false(stand(a).is_known);
    assert_int_equal(tundish_get_standing(a, PATIENCE, &small), TUNDISH_E_ARGUMENT);
    tundish_close(b);
    assert_false(stand(a).is_known);
    tundish_close(a);
    numbers_close(numbers);
}

static void
a_dead_server_does_not_tell_and_a_queue_has_no_steps(void **state)
{
    struct numbers_options options = { .steps = 9 };
    tundish_standing standing = { .size = sizeof standing };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, 0);
    take(reader, TUNDISH_OK);
    numbers_close(numbers);
    assert_int_equal(tundish_get_standing(reader, PATIENCE, &standing), TUNDISH_E_SERVER_GONE);
    tundish_close(reader);

    options.queue = true;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, 0);
    take(reader, TUNDISH_OK);
    assert_int_equal(tundish_get_standing(reader, PATIENCE, &standing), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "queue"));
    tundish_close(reader);
    numbers_close(numbers);
}

TEST_FILE(test_together)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_that_stand_apart_are_not_together),
        cmocka_unit_test(it_is_not_known_without_a_trainer_or_of_one_that_reads_ahead),
        cmocka_unit_test(a_dead_server_does_not_tell_and_a_queue_has_no_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
