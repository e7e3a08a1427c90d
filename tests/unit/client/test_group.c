/* test_group.c - replicas of a group: lost ones, successors, places, slow groups, queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "deliver/feed_hub.h"
#include "rig/numbers.h"
#include "tundish/tundish.h"
#include "unit/test_file.h"

#define SECOND INT64_C(1000000000)
#define PATIENCE (300 * SECOND) /* for what must come: a machine may be slow */

enum { PATH_BYTES = 64 };

static tundish_options
options_for(const struct numbers *numbers, const char *group, int replica)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;

    options.server = numbers_path(numbers);
    options.group = group;
    options.replica = replica;
    options.server_timeout_ns = PATIENCE;
    return options;
}

static tundish_reader *
open_reader(const struct numbers *numbers, const char *group, int replica)
{
    tundish_options options = options_for(numbers, group, replica);
    tundish_reader *reader = NULL;

    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

static void
expect(tundish_reader *reader, uint32_t replica, uint64_t epoch, uint64_t step)
{
    const tundish_batch *batch;

    if (tundish_next(reader, PATIENCE, &batch) != TUNDISH_OK)
        fail_msg("epoch %d, step %d: %s", (int)epoch, (int)step, tundish_last_error());
    assert_int_equal(batch->epoch, epoch);
    assert_int_equal(batch->step, step);
    assert_true(numbers_check(batch, replica, 64, 0));
    tundish_release(reader, batch);
}

/* A trainer in a process of its own, which takes some batches, gives back some, and is killed. */
static void
die_after(const struct numbers *numbers, int replica, unsigned take, unsigned give_back)
{
    pid_t child = fork();

    if (child == 0) {
        tundish_options options = options_for(numbers, "a", replica);
        const tundish_batch *batch;
        tundish_reader *reader;

        if (tundish_open(&options, &reader) != TUNDISH_OK)
            _exit(1);
        for (unsigned i = 0; i < take; i++) {
            if (tundish_next(reader, PATIENCE, &batch) != TUNDISH_OK)
                _exit(2);
            if (i < give_back)
                tundish_release(reader, batch);
        }
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
}

static void
others_hear_of_a_death_and_a_successor_goes_on(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = PATIENCE };
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    expect(a, 0, 0, 0);
    die_after(numbers, 1, 3, 2);
    while (numbers_told(numbers).died == 0)
        usleep(1000);
    assert_int_equal(tundish_next(a, PATIENCE, &batch), TUNDISH_E_PEER_LOST);
    assert_non_null(strstr(tundish_last_error(), "replica 1"));
    expect(a, 0, 0, 1);
    b = open_reader(numbers, "a", 1);
    /* The other has given back two: a lane is that many slots ahead of it at most. */
    for (uint64_t i = 2; i < 6; i++)
        expect(b, 1, 0, i);
    tundish_close(b);
    tundish_close(a);
    assert_int_equal(numbers_told(numbers).died, 1);
    numbers_close(numbers);
}

static void
a_group_without_a_successor_ends(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = SECOND / 10 };
    const tundish_batch *batch, *held;
    struct numbers *numbers;
    tundish_reader *a;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    expect(a, 0, 0, 0);
    assert_int_equal(tundish_next(a, PATIENCE, &held), TUNDISH_OK);
    die_after(numbers, 1, 1, 1);
    while (numbers_told(numbers).ended == 0)
        usleep(1000);
    assert_int_equal(tundish_next(a, PATIENCE, &batch), TUNDISH_E_PEER_LOST);
    assert_non_null(strstr(tundish_last_error(), "has ended"));
    assert_int_equal(tundish_next(a, 0, &batch), TUNDISH_E_PEER_LOST);
    assert_true(numbers_check(held, 0, 64, 0));
    tundish_close(a);
    a = open_reader(numbers, "a", 0);
    tundish_close(a);
    numbers_close(numbers);
}

static void
one_that_closes_is_awaited_in_silence(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = PATIENCE };
    struct numbers *numbers;
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    b = open_reader(numbers, "a", 1);
    expect(b, 1, 0, 0);
    tundish_close(b);
    expect(a, 0, 0, 0);
    expect(a, 0, 0, 1);
    b = open_reader(numbers, "a", 1);
    expect(b, 1, 0, 1);
    assert_int_equal(numbers_told(numbers).died, 0);
    tundish_close(b);
    tundish_close(a);
    numbers_close(numbers);
}

static void
count_lacking(void *user, enum tnd_log_level level, const char *event, const char *sentence)
{
    (void)level, (void)event;
    *(unsigned *)user += strstr(sentence, "replica 1 of group \"a\" has not come") != NULL;
}

static void
the_log_is_told_once_of_one_that_never_comes(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100 };
    struct numbers *numbers;
    unsigned told = 0;
    tundish_reader *a;

    (void)state;
    tnd_log_set_tap(count_lacking, &told);
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    expect(a, 0, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        feed_tick(numbers_feed(numbers), tnd_clock_ns() + 60 * SECOND);
        assert_int_equal(told, 1);
    }
    tundish_close(a);
    numbers_close(numbers);
    tnd_log_set_tap(NULL, NULL);
}

static void
await_left(struct numbers *numbers, uint32_t count)
{
    while (numbers_told(numbers).left + numbers_told(numbers).died < count)
        usleep(1000);
}

/* A process with both replicas takes three batches of the first and one of the second. */
static void
die_together(const struct numbers *numbers)
{
    pid_t child = fork();

    if (child == 0) {
        tundish_reader *a = open_reader(numbers, "a", 0), *b = open_reader(numbers, "a", 1);

        for (uint64_t i = 0; i < 3; i++)
            expect(a, 0, 0, i);
        expect(b, 1, 0, 0);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
}

static void
a_group_that_died_starts_at_its_lowest_step(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = PATIENCE };
    struct numbers *numbers;
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    die_together(numbers);
    await_left(numbers, 2);
    a = open_reader(numbers, "a", 0);
    b = open_reader(numbers, "a", 1);
    expect(a, 0, 0, 1);
    expect(b, 1, 0, 1);
    tundish_close(a);
    tundish_close(b);
    numbers_close(numbers);
}

/* One thread reads both: neither may wait for the other to pass over the rest of the epoch. */
static void
a_group_that_closed_begins_the_next_epoch(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = PATIENCE };
    struct numbers *numbers;
    tundish_reader *a, *b;

    (void)state;
    numbers_open(&options, &numbers);
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        a = open_reader(numbers, "a", 0);
        b = open_reader(numbers, "a", 1);
        for (uint64_t i = 0; i < 3; i++)
            expect(a, 0, epoch, i);
        expect(b, 1, epoch, 0);
        tundish_close(a);
        tundish_close(b);
        await_left(numbers, 2 * (uint32_t)epoch + 2);
    }
    numbers_close(numbers);
}

static void
one_that_closes_before_the_other_begins_once_more(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100, .rejoin_ns = PATIENCE };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        for (int replica = 0; replica < 2; replica++) {
            reader = open_reader(numbers, "a", replica);
            expect(reader, (uint32_t)replica, epoch, 0);
            expect(reader, (uint32_t)replica, epoch, 1);
            tundish_close(reader);
            await_left(numbers, 2 * (uint32_t)epoch + (uint32_t)replica + 1);
        }
    numbers_close(numbers);
}

static void
a_replica_that_is_taken_or_not_there_is_refused(void **state)
{
    struct numbers_options options = { .replicas = 2, .steps = 100 };
    struct numbers *numbers;
    tundish_reader *a, *other = NULL;
    tundish_options wanted;

    (void)state;
    numbers_open(&options, &numbers);
    a = open_reader(numbers, "a", 0);
    wanted = options_for(numbers, "a", 0);
    assert_int_equal(tundish_open(&wanted, &other), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "already in use by process"));
    assert_non_null(strstr(tundish_last_error(), "close its reader there"));
    wanted.replica = 2;
    assert_int_equal(tundish_open(&wanted, &other), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "2 replicas"));
    wanted.replica = 1;
    wanted.stream = "letters";
    assert_int_equal(tundish_open(&wanted, &other), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "numbers"));
    wanted.server_timeout_ns = 1000000;
    hub_shut(numbers_hub(numbers)); /* from now on what is not there may have been */
    assert_int_equal(tundish_open(&wanted, &other), TUNDISH_E_SERVER_GONE);
    assert_null(other);
    tundish_close(a);
    numbers_close(numbers);
}

static void
groups_see_the_same_batches(void **state)
{
    struct numbers_options options = { .steps = 40, .broadcast = true };
    struct numbers *numbers;
    tundish_reader *readers[3];
    const char *names[] = { "a", "b", "c" };

    (void)state;
    numbers_open(&options, &numbers);
    for (int i = 0; i < 3; i++)
        readers[i] = open_reader(numbers, names[i], 0);
    while (numbers_told(numbers).full_groups < 3)
        usleep(1000);
    for (uint64_t step = 0; step < 40; step++)
        for (int i = 0; i < 3; i++)
            expect(readers[i], 0, 0, step);
    for (int i = 0; i < 3; i++)
        tundish_close(readers[i]);
    numbers_close(numbers);
}

static void
a_slow_group_is_cut_off_but_keeps_what_it_holds(void **state)
{
    struct numbers_options options = { .steps = 1000, .broadcast = true, .detach_ns = SECOND / 5 };
    const tundish_batch *held, *batch;
    struct numbers *numbers;
    tundish_reader *fast, *slow;

    (void)state;
    numbers_open(&options, &numbers);
    fast = open_reader(numbers, "fast", 0);
    slow = open_reader(numbers, "slow", 0);
    assert_int_equal(tundish_next(slow, PATIENCE, &held), TUNDISH_OK);
    for (uint64_t step = 0; step < 200; step++)
        expect(fast, 0, 0, step);
    assert_int_equal(held->step, 0);
    assert_true(numbers_check(held, 0, 64, 0));
    assert_int_equal(tundish_next(slow, PATIENCE, &batch), TUNDISH_E_DETACHED);
    assert_non_null(strstr(tundish_last_error(), "slow_group"));
    tundish_release(slow, held);
    assert_int_equal(tundish_next(slow, PATIENCE, &batch), TUNDISH_E_DETACHED);
    for (uint64_t step = 200; step < 300; step++)
        expect(fast, 0, 0, step);
    tundish_close(slow);
    tundish_close(fast);
    numbers_close(numbers);
}

static void
a_place_resumes_at_the_batch_after_the_last_returned(void **state)
{
    struct numbers_options options = { .steps = 7 };
    char token[512];
    uint8_t bytes[512];
    size_t token_bytes, byte_count;
    struct numbers *numbers;
    tundish_reader *reader;
    tundish_options at;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (uint64_t i = 0; i < 5; i++)
        expect(reader, 0, 0, i);
    assert_int_equal(tundish_place_save(reader, bytes, 3, &byte_count), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_place_save(reader, bytes, sizeof bytes, &byte_count), TUNDISH_OK);
    assert_int_equal(tundish_place_token(reader, token, sizeof token, &token_bytes), TUNDISH_OK);
    assert_int_equal(token_bytes, strlen(token) + 1);
    tundish_close(reader);
    numbers_close(numbers);

    for (int form = 0; form < 2; form++) {
        numbers_open(&options, &numbers);
        at = options_for(numbers, "a", 0);
        at.place = form == 0 ? bytes : NULL;
        at.place_bytes = byte_count;
        at.place_token = form == 1 ? token : NULL;
        if (tundish_open(&at, &reader) != TUNDISH_OK)
            fail_msg("%s", tundish_last_error());
        expect(reader, 0, 0, 5);
        expect(reader, 0, 0, 6);
        tundish_close(reader);
        numbers_close(numbers);
    }
}

static void
a_place_after_the_end_is_the_next_epoch(void **state)
{
    struct numbers_options options = { .steps = 2 };
    const tundish_batch *batch;
    char token[512];
    size_t token_bytes;
    struct numbers *numbers;
    tundish_reader *reader;
    tundish_options at;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    expect(reader, 0, 0, 0);
    expect(reader, 0, 0, 1);
    assert_int_equal(tundish_next(reader, PATIENCE, &batch), TUNDISH_END);
    assert_int_equal(tundish_place_token(reader, token, sizeof token, &token_bytes), TUNDISH_OK);
    tundish_close(reader);
    numbers_close(numbers);
    numbers_open(&options, &numbers);
    at = options_for(numbers, "a", 0);
    at.place_token = token;
    assert_int_equal(tundish_open(&at, &reader), TUNDISH_OK);
    expect(reader, 0, 1, 0);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
a_damaged_place_is_refused(void **state)
{
    struct numbers_options options = { .steps = 5 };
    uint8_t bytes[512];
    size_t byte_count;
    struct numbers *numbers;
    tundish_reader *reader;
    tundish_options at;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    expect(reader, 0, 0, 0);
    assert_int_equal(tundish_place_save(reader, bytes, sizeof bytes, &byte_count), TUNDISH_OK);
    at = options_for(numbers, "b", 0);
    at.place = bytes;
    for (size_t i = 0; i < byte_count; i++) {
        bytes[i] ^= 1;
        at.place_bytes = byte_count;
        assert_int_equal(tundish_open(&at, &reader), TUNDISH_E_PLACE);
        bytes[i] ^= 1;
        at.place_bytes = i;
        if (i > 0)
            assert_int_equal(tundish_open(&at, &reader), TUNDISH_E_PLACE);
    }
    at.place = NULL;
    at.place_token = "not a place";
    assert_int_equal(tundish_open(&at, &reader), TUNDISH_E_PLACE);
    tundish_close(reader);
    numbers_close(numbers);
}

/* Where servers listen one after another. */
static void
make_path(char path[PATH_BYTES])
{
    strcpy(path, "/tmp/tundish-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    strcat(path, "/server");
}

static void
remove_path(char path[PATH_BYTES])
{
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

static void
a_server_that_restarts_loses_and_doubles_nothing(void **state)
{
    struct numbers_options options = { .steps = 100, .replicas = 2 };
    const tundish_batch *batch, *held;
    char path[PATH_BYTES];
    struct numbers *numbers;
    tundish_reader *readers[2];
    uint64_t steps[2] = { 0, 0 };

    (void)state;
    make_path(path);
    options.path = path;
    numbers_open(&options, &numbers);
    for (int i = 0; i < 2; i++)
        readers[i] = open_reader(numbers, "a", i);
    for (; steps[0] < 3; steps[0]++)
        expect(readers[0], 0, 0, steps[0]);
    for (; steps[1] < 2; steps[1]++)
        expect(readers[1], 1, 0, steps[1]);
    assert_int_equal(tundish_next(readers[0], PATIENCE, &held), TUNDISH_OK);
    steps[0]++;
    numbers_close(numbers);
    for (unsigned i = 0; i < 2; i++) {
        tundish_status status;

        while ((status = tundish_next(readers[i], PATIENCE, &batch)) == TUNDISH_OK) {
            assert_int_equal(batch->step, steps[i]++);
            assert_true(numbers_check(batch, i, 64, 0));
            tundish_release(readers[i], batch);
        }
        assert_int_equal(status, TUNDISH_E_SERVER_GONE);
    }
    assert_true(numbers_check(held, 0, 64, 0));
    /* The session starts at the lowest step that a survivor has yet to see. */
    options.idle = true;
    numbers_open(&options, &numbers);
    for (unsigned k = 0; k < 2; k++) {
        unsigned i = steps[0] < steps[1] ? k : 1 - k;

        do
            assert_int_equal(tundish_next(readers[i], SECOND / 10, &batch), TUNDISH_E_TIMEOUT);
        while (numbers_told(numbers).joined <= k);
    }
    numbers_run(numbers);
    tundish_release(readers[0], held);
    for (int n = 0; n < 20; n++)
        for (unsigned i = 0; i < 2; i++)
            expect(readers[i], i, 0, steps[i]++);
    for (int i = 0; i < 2; i++)
        tundish_close(readers[i]);
    numbers_close(numbers);
    remove_path(path);
}

/* The first batch is there, and what the server has said besides is not read yet. */
static void
await_first_batch(struct numbers *numbers)
{
    struct lane_stats stats = { 0 };

    for (int64_t i = 0; i < PATIENCE / 1000000 && stats.published == 0; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        lane_stats(feed_lane(numbers_feed(numbers), 0), &stats);
    }
    assert_true(stats.published > 0);
}

static void
a_place_is_made_of_what_a_dead_server_had_said(void **state)
{
    struct numbers_options options = { .idle = true };
    char token[512];
    size_t bytes;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    numbers_run(numbers);
    await_first_batch(numbers);
    numbers_close(numbers);
    assert_int_equal(tundish_place_token(reader, token, sizeof token, &bytes), TUNDISH_OK);
    expect(reader, 0, 0, 0);
    assert_int_equal(tundish_place_token(reader, token, sizeof token, &bytes), TUNDISH_OK);
    tundish_close(reader);
}

/* A trainer's socket is full, so what the server says of its batches dies with the server: they are
 * read from the next one. */
static void
read_past_a_full_socket(struct numbers_options options, uint32_t wide_step)
{
    enum { LETTERS = 4000 };
    const tundish_batch *batch;
    char path[PATH_BYTES], token[512];
    size_t bytes;
    struct numbers *numbers;
    tundish_reader *reader;

    make_path(path);
    options.path = path;
    options.idle = true;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    for (int i = 0; i < LETTERS; i++)
        feed_tell_lost(numbers_feed(numbers), "a", "replica 1 of group \"a\" has died");
    numbers_run(numbers);
    await_first_batch(numbers);
    numbers_close(numbers);
    assert_int_equal(tundish_next(reader, PATIENCE, &batch), TUNDISH_E_PEER_LOST);
    assert_int_equal(tundish_next(reader, PATIENCE, &batch), TUNDISH_E_SERVER_GONE);
    options.idle = false;
    numbers_open(&options, &numbers);
    assert_int_equal(tundish_next(reader, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(batch->epoch, 0);
    assert_int_equal(batch->step, 0);
    assert_true(numbers_check(batch, 0, 64, wide_step));
    assert_int_equal(tundish_place_token(reader, token, sizeof token, &bytes), TUNDISH_OK);
    tundish_close(reader);
    numbers_close(numbers);
    remove_path(path);
}

static void
a_batch_whose_place_died_with_the_server_is_not_lent(void **state)
{
    (void)state;
    read_past_a_full_socket((struct numbers_options){ 0 }, 0);
}

static void
a_batch_whose_segment_died_with_the_server_is_not_lent(void **state)
{
    struct numbers_options options = { .wide_step = 1, .arena_bytes = 16384 };

    (void)state;
    read_past_a_full_socket(options, 1);
}

static void
a_forked_child_cannot_use_the_reader_and_does_not_hold_it_open(void **state)
{
    struct numbers_options options = { .steps = 100, .replicas = 2 };
    const tundish_batch *batch, *held;
    const tundish_tensor *tensor;
    struct numbers *numbers;
    tundish_reader *reader;
    int result = -1;
    pid_t child;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers, "a", 0);
    assert_int_equal(tundish_next(reader, PATIENCE, &held), TUNDISH_OK);
    child = fork();
    if (child == 0) {
        tundish_release(reader, held);
        if (tundish_next(reader, 0, &batch) != TUNDISH_E_ARGUMENT ||
            tundish_tensor_at(held, 0, &tensor) != TUNDISH_E_ARGUMENT ||
            tundish_restart(reader) != TUNDISH_E_ARGUMENT)
            _exit(1);
        tundish_close(reader);
        _exit(0);
    }
    waitpid(child, &result, 0);
    assert_int_equal(result, 0);
    assert_true(numbers_check(held, 0, 64, 0));
    tundish_release(reader, held);
    expect(reader, 0, 0, 1);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    tundish_close(reader);
    while (numbers_told(numbers).left == 0)
        usleep(1000);
    assert_int_equal(numbers_told(numbers).left, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    numbers_close(numbers);
}

static void
a_queue_gives_each_batch_once_and_the_end_to_all(void **state)
{
    enum { READERS = 3, STEPS = 50, EPOCHS = 3 };
    struct numbers_options options = { .steps = STEPS, .epochs = EPOCHS, .queue = true };
    unsigned seen[EPOCHS][STEPS] = { 0 }, ends[READERS] = { 0 }, over = 0;
    struct numbers *numbers;
    tundish_reader *readers[READERS];

    (void)state;
    numbers_open(&options, &numbers);
    for (int i = 0; i < READERS; i++)
        readers[i] = open_reader(numbers, "a", i);
    for (unsigned i = 0; over != (1u << READERS) - 1; i = (i + 1) % READERS) {
        const tundish_batch *batch;
        tundish_status status = TUNDISH_E_TIMEOUT;

        if ((over >> i & 1) == 0)
            status = tundish_next(readers[i], SECOND / 100, &batch);
        if (status == TUNDISH_OK) {
            assert_int_equal(batch->epoch, ends[i]);
            assert_true(numbers_check(batch, 0, 64, 0));
            seen[batch->epoch][batch->step]++;
            tundish_release(readers[i], batch);
        } else if (status == TUNDISH_END) {
            ends[i]++;
        } else if (status == TUNDISH_END_OF_STREAM) {
            over |= 1u << i;
        } else {
            assert_int_equal(status, TUNDISH_E_TIMEOUT);
        }
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(ends[i], EPOCHS);
        tundish_close(readers[i]);
    }
    for (int e = 0; e < EPOCHS; e++)
        for (int s = 0; s < STEPS; s++)
            assert_int_equal(seen[e][s], 1);
    numbers_close(numbers);
}

static void
what_a_dead_reader_of_a_queue_held_is_offered_again(void **state)
{
    struct numbers_options options = { .steps = 30, .epochs = 1, .queue = true };
    unsigned seen[30] = { 0 }, again = 0;
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *reader;
    tundish_status status;

    (void)state;
    numbers_open(&options, &numbers);
    die_after(numbers, 0, 4, 2);
    reader = open_reader(numbers, "a", 1);
    while ((status = tundish_next(reader, PATIENCE, &batch)) == TUNDISH_OK) {
        seen[batch->step]++;
        again += batch->visits > 0;
        tundish_release(reader, batch);
    }
    assert_int_equal(status, TUNDISH_END);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(seen[i], i >= 2);
    assert_int_equal(again, 2);
    tundish_close(reader);
    numbers_close(numbers);
}

TEST_FILE(test_group)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_hear_of_a_death_and_a_successor_goes_on),
        cmocka_unit_test(a_group_without_a_successor_ends),
        cmocka_unit_test(one_that_closes_is_awaited_in_silence),
        cmocka_unit_test(the_log_is_told_once_of_one_that_never_comes),
        cmocka_unit_test(a_group_that_died_starts_at_its_lowest_step),
        cmocka_unit_test(a_group_that_closed_begins_the_next_epoch),
        cmocka_unit_test(one_that_closes_before_the_other_begins_once_more),
        cmocka_unit_test(a_replica_that_is_taken_or_not_there_is_refused),
        cmocka_unit_test(groups_see_the_same_batches),
        cmocka_unit_test(a_slow_group_is_cut_off_but_keeps_what_it_holds),
        cmocka_unit_test(a_place_resumes_at_the_batch_after_the_last_returned),
        cmocka_unit_test(a_place_after_the_end_is_the_next_epoch),
        cmocka_unit_test(a_damaged_place_is_refused),
        cmocka_unit_test(a_server_that_restarts_loses_and_doubles_nothing),
        cmocka_unit_test(a_place_is_made_of_what_a_dead_server_had_said),
        cmocka_unit_test(a_batch_whose_place_died_with_the_server_is_not_lent),
        cmocka_unit_test(a_batch_whose_segment_died_with_the_server_is_not_lent),
        cmocka_unit_test(a_forked_child_cannot_use_the_reader_and_does_not_hold_it_open),
        cmocka_unit_test(a_queue_gives_each_batch_once_and_the_end_to_all),
        cmocka_unit_test(what_a_dead_reader_of_a_queue_held_is_offered_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
