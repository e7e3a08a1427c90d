/* test_next.c - what a trainer sees: batches, ends, errors, in order and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "rig/numbers.h"
#include "tundish/tundish.h"
#include "unit/test_file.h"

#define SECOND INT64_C(1000000000)
#define PATIENCE (300 * SECOND) /* for what must come: a machine may be slow */

static tundish_reader *
open_reader(const struct numbers *numbers, const char *group, int replica)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    options.server = numbers_path(numbers);
    options.stream = "numbers";
    options.group = group;
    options.replica = replica;
    options.check = 1;
    options.server_timeout_ns = PATIENCE;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

/* One step: checks the batch and gives it back. */
static tundish_status
step(tundish_reader *reader, uint32_t rows, uint32_t wide_step, uint64_t epoch, uint64_t number)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(reader, PATIENCE, &batch);

    if (status != TUNDISH_OK)
        return status;
    assert_int_equal(batch->epoch, epoch);
    assert_int_equal(batch->step, number);
    assert_true(numbers_check(batch, 0, rows, wide_step));
    tundish_release(reader, batch);
    return TUNDISH_OK;
}

static void
read_all(const struct numbers_options *options)
{
    struct numbers *numbers;
    tundish_reader *reader;

    numbers_open(options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t epoch = 0; epoch < options->epochs; epoch++) {
        for (uint64_t i = 0; i < options->steps; i++)
            assert_int_equal(step(reader, options->rows, options->wide_step, epoch, i), TUNDISH_OK);
        assert_int_equal(step(reader, 0, 0, 0, 0), TUNDISH_END);
    }
    assert_int_equal(step(reader, 0, 0, 0, 0), TUNDISH_END_OF_STREAM);
    assert_int_equal(step(reader, 0, 0, 0, 0), TUNDISH_END_OF_STREAM);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
every_batch_of_every_epoch_comes_whole_and_in_order(void **state)
{
    (void)state;
    read_all(&(struct numbers_options){ .epochs = 3, .steps = 50, .rows = 64 });
}

static void
memfd_checksums_and_codecs_change_nothing(void **state)
{
    (void)state;
    read_all(&(struct numbers_options){
        .epochs = 2, .steps = 30, .rows = 64, .memfd = true, .checksums = true, .narrow = true });
}

static void
widen_bags(const tundish_batch *batch, float *room, size_t room_bytes)
{
    const tundish_tensor *bags;
    const int32_t *values;
    size_t bytes = 0;

    assert_int_equal(tundish_tensor_named(batch, "bag", &bags), TUNDISH_OK);
    assert_int_equal(tundish_tensor_widen(batch, 2, room, room_bytes, &bytes), TUNDISH_OK);
    assert_int_equal(bytes, bags->element_count * sizeof *room);
    values = bags->data;
    for (uint64_t i = 0; i < bags->element_count; i++)
        assert_true(room[i] == (float)values[i] * (i % 2 == 0 ? 0.5F : 0.25F) + 1.0F);
    if (bytes > 0)
        assert_int_equal(tundish_tensor_widen(batch, 2, room, bytes - 1, &bytes),
                         TUNDISH_E_ARGUMENT);
    assert_int_equal(bytes, bags->element_count * sizeof *room);
    assert_int_equal(tundish_tensor_widen(batch, 0, room, room_bytes, &bytes), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_tensor_widen(batch, 9, room, room_bytes, &bytes), TUNDISH_E_ARGUMENT);
}

static void
floats_are_made_of_a_column_where_the_spec_says_so(void **state)
{
    static float room[1 << 16];
    struct numbers_options options = { .steps = 20, .rows = 64, .epochs = 1, .narrow = true };
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    while (tundish_next(reader, PATIENCE, &batch) == TUNDISH_OK) {
        widen_bags(batch, room, sizeof room);
        tundish_release(reader, batch);
    }
    tundish_close(reader);
    numbers_close(numbers);
}

static void
batches_above_the_arena_get_a_segment_of_their_own(void **state)
{
    (void)state;
    read_all(&(struct numbers_options){
        .epochs = 2, .steps = 40, .rows = 64, .wide_step = 3, .arena_bytes = 16384 });
}

static void
batches_held_do_not_starve_the_next_one(void **state)
{
    struct numbers_options options = { .steps = 20, .rows = 200, .slots = 5, .arena_bytes = 20000 };
    const tundish_batch *held[3] = { NULL };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t i = 0; i < 18; i++) {
        tundish_release(reader, held[i % 3]);
        if (tundish_next(reader, PATIENCE, &held[i % 3]) != TUNDISH_OK)
            fail_msg("step %d: %s", (int)i, tundish_last_error());
        for (uint64_t k = 0; k < 3 && k <= i; k++)
            assert_true(numbers_check(held[k], 0, 200, 0));
    }
    tundish_close(reader);
    numbers_close(numbers);
}

static void
one_batch_too_many_held_is_an_error_at_once(void **state)
{
    struct numbers_options options = { .steps = 20 };
    const tundish_batch *a, *b, *c = NULL;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_next(reader, PATIENCE, &a), TUNDISH_OK);
    assert_int_equal(tundish_next(reader, PATIENCE, &b), TUNDISH_OK);
    assert_int_equal(tundish_next(reader, PATIENCE, &c), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "deliver.slots"));
    assert_null(c);
    tundish_release(reader, b);
    assert_int_equal(tundish_next(reader, PATIENCE, &c), TUNDISH_OK);
    assert_int_equal(c->step, 2);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
an_error_comes_at_its_step_and_stays(void **state)
{
    struct numbers_options options = { .steps = 20, .bad_step = 4, .rows = 64 };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(step(reader, 64, 0, 0, i), TUNDISH_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(step(reader, 64, 0, 0, 0), TUNDISH_E_DATA);
        assert_string_equal(tundish_last_error(), "numbers.txt: line 3 is bad");
    }
    tundish_close(reader);
    numbers_close(numbers);
}

static void
a_batch_above_the_limit_is_an_error_naming_its_step(void **state)
{
    struct numbers_options options = {
        .steps = 9, .rows = 64, .wide_step = 5, .max_batch_bytes = 50000
    };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(step(reader, 64, 5, 0, 0), TUNDISH_E_MEMORY);
    assert_non_null(strstr(tundish_last_error(), "epoch 0, step 0"));
    tundish_close(reader);
    numbers_close(numbers);
}

static void
a_drain_gives_stopped_and_never_an_end(void **state)
{
    struct numbers_options options = { .steps = 1000000, .rows = 64 };
    struct numbers *numbers;
    tundish_reader *reader;
    tundish_status status = TUNDISH_OK;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t i = 0; status == TUNDISH_OK; i++) {
        if (i == 10)
            numbers_drain(numbers);
        status = step(reader, 64, 0, 0, i);
    }
    assert_int_equal(status, TUNDISH_STOPPED);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
next_optional_says_no_value_until_a_restart(void **state)
{
    struct numbers_options options = { .steps = 2, .rows = 64 };
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tundish_next_optional(reader, PATIENCE, &batch), TUNDISH_OK);
            assert_int_equal(batch->epoch, epoch);
            tundish_release(reader, batch);
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(tundish_next_optional(reader, PATIENCE, &batch), TUNDISH_NO_VALUE);
        assert_int_equal(tundish_restart(reader), TUNDISH_OK);
    }
    tundish_close(reader);
    numbers_close(numbers);
}

/* Replicas pass over what is left side by side: neither lane runs far ahead of the other. */
static void
first_of_next_epoch(tundish_reader *a, tundish_reader *b)
{
    tundish_reader *readers[] = { a, b };
    const tundish_batch *batch;
    unsigned there = 0;

    for (unsigned i = 0; there != 3; i = 1 - i) {
        tundish_status status = TUNDISH_E_TIMEOUT;

        if ((there >> i & 1) == 0)
            status = tundish_next(readers[i], SECOND / 100, &batch);
        if (status == TUNDISH_E_TIMEOUT)
            continue;
        assert_int_equal(status, TUNDISH_OK);
        assert_int_equal(batch->epoch, 1);
        assert_int_equal(batch->step, 0);
        assert_true(numbers_check(batch, i, 64, 0));
        tundish_release(readers[i], batch);
        there |= 1u << i;
    }
}

static void
restart_ends_the_epoch_early_once_every_replica_asks(void **state)
{
    struct numbers_options options = { .steps = 1000, .rows = 64, .replicas = 2 };
    struct numbers *numbers;
    tundish_reader *a, *b;
    const tundish_batch *batch;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    b = open_reader(numbers, "a", 1);
    assert_int_equal(step(a, 64, 0, 0, 0), TUNDISH_OK);
    assert_int_equal(tundish_next(b, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(tundish_restart(a), TUNDISH_OK);
    assert_int_equal(tundish_next(a, SECOND / 10, &batch), TUNDISH_E_TIMEOUT);
    assert_int_equal(tundish_restart(b), TUNDISH_OK);
    tundish_release(b, batch);
    first_of_next_epoch(a, b);
    assert_int_equal(numbers_told(numbers).restarts, 1);
    tundish_close(a);
    tundish_close(b);
    numbers_close(numbers);
}

static void
restart_where_an_epoch_begins_does_nothing(void **state)
{
    struct numbers_options options = { .steps = 3, .rows = 64 };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_restart(reader), TUNDISH_OK);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(step(reader, 64, 0, 0, i), TUNDISH_OK);
    assert_int_equal(step(reader, 64, 0, 0, 0), TUNDISH_END);
    assert_int_equal(tundish_restart(reader), TUNDISH_OK);
    assert_int_equal(step(reader, 64, 0, 1, 0), TUNDISH_OK);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
nothing_published_is_a_timeout(void **state)
{
    struct numbers_options options = { .idle = true };
    const tundish_batch *batch = NULL;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_next(reader, 0, &batch), TUNDISH_E_TIMEOUT);
    assert_int_equal(tundish_next(reader, SECOND / 20, &batch), TUNDISH_E_TIMEOUT);
    assert_null(batch);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
the_descriptor_polls_readable_while_there_is_something(void **state)
{
    struct numbers_options options = { .idle = true, .steps = 5, .rows = 64, .epochs = 1 };
    struct pollfd polled = { .events = POLLIN };
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *reader;
    uint64_t batches = 0;
    tundish_status status;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_descriptor(reader, &polled.fd), TUNDISH_OK);
    /* What the server says meanwhile may make it readable in vain. */
    do
        assert_int_equal(tundish_next(reader, 0, &batch), TUNDISH_E_TIMEOUT);
    while (poll(&polled, 1, 0) != 0);
    numbers_run(numbers);
    do {
        assert_int_equal(poll(&polled, 1, 300000), 1);
        status = tundish_next(reader, 0, &batch);
        if (status == TUNDISH_OK) {
            batches++;
            tundish_release(reader, batch);
        }
    } while (status == TUNDISH_OK || status == TUNDISH_E_TIMEOUT);
    assert_int_equal(status, TUNDISH_END);
    assert_int_equal(batches, 5);
    tundish_close(reader);
    numbers_close(numbers);
}

struct releaser {
    tundish_reader *reader;
    const tundish_batch *batch;
};

static void *
check_and_release(void *argument)
{
    struct releaser *releaser = argument;
    void *good = numbers_check(releaser->batch, 0, 64, 0) ? argument : NULL;

    tundish_release(releaser->reader, releaser->batch);
    return good;
}

static void
batches_go_back_in_any_order_from_any_thread(void **state)
{
    enum { HELD = 4 };
    struct numbers_options options = { .steps = 400, .slots = 6, .rows = 64 };
    struct releaser releasers[HELD];
    pthread_t threads[HELD];
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < HELD; i++) {
            releasers[i].reader = reader;
            if (tundish_next(reader, PATIENCE, &releasers[i].batch) != TUNDISH_OK)
                fail_msg("%s", tundish_last_error());
        }
        for (int i = HELD; i-- > 0;)
            assert_int_equal(pthread_create(&threads[i], NULL, check_and_release, &releasers[i]),
                             0);
        for (int i = 0; i < HELD; i++) {
            void *good;

            pthread_join(threads[i], &good);
            assert_non_null(good);
        }
    }
    tundish_close(reader);
    numbers_close(numbers);
}

static void
columns_are_found_by_index_and_by_name(void **state)
{
    struct numbers_options options = { .steps = 5, .rows = 64 };
    const tundish_tensor *by_name, *by_index;
    const tundish_batch *batch;
    const tundish_spec *spec;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_element_spec(reader, &spec), TUNDISH_OK);
    assert_int_equal(spec->column_count, 4);
    assert_string_equal(tundish_column_spec_at(spec, 2)->name, "bag");
    assert_int_equal(tundish_column_spec_at(spec, 2)->shape[2], 2);
    assert_null(tundish_column_spec_at(spec, 4));
    assert_int_equal(tundish_next(reader, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(tundish_tensor_named(batch, "bag", &by_name), TUNDISH_OK);
    assert_int_equal(tundish_tensor_at(batch, 2, &by_index), TUNDISH_OK);
    assert_ptr_equal(by_name, by_index);
    assert_int_equal(by_name->kind, TUNDISH_RAGGED);
    assert_int_equal(by_name->shape[1], -1);
    assert_int_equal((uintptr_t)by_name->data % 64, 0);
    assert_int_equal(tundish_tensor_at(batch, 4, &by_index), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_tensor_named(batch, "nobody", &by_index), TUNDISH_E_ARGUMENT);
    tundish_close(reader);
    numbers_close(numbers);
}

TEST_FILE(test_next)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_of_every_epoch_comes_whole_and_in_order),
        cmocka_unit_test(memfd_checksums_and_codecs_change_nothing),
        cmocka_unit_test(floats_are_made_of_a_column_where_the_spec_says_so),
        cmocka_unit_test(batches_above_the_arena_get_a_segment_of_their_own),
        cmocka_unit_test(batches_held_do_not_starve_the_next_one),
        cmocka_unit_test(one_batch_too_many_held_is_an_error_at_once),
        cmocka_unit_test(an_error_comes_at_its_step_and_stays),
        cmocka_unit_test(a_batch_above_the_limit_is_an_error_naming_its_step),
        cmocka_unit_test(a_drain_gives_stopped_and_never_an_end),
        cmocka_unit_test(next_optional_says_no_value_until_a_restart),
        cmocka_unit_test(restart_ends_the_epoch_early_once_every_replica_asks),
        cmocka_unit_test(restart_where_an_epoch_begins_does_nothing),
        cmocka_unit_test(nothing_published_is_a_timeout),
        cmocka_unit_test(the_descriptor_polls_readable_while_there_is_something),
        cmocka_unit_test(batches_go_back_in_any_order_from_any_thread),
        cmocka_unit_test(columns_are_found_by_index_and_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
