/* test_keep.c - batches that are made the caller's own where they lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig/numbers.h"
#include "tundish/tundish.h"
#include "unit/test_file.h"

#define PATIENCE INT64_C(300000000000) /* for what must come: a machine may be slow */

enum { ROWS = 64, WIDE_STEP = 5 };

static tundish_reader *
open_reader(const struct numbers *numbers)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    options.server = numbers_path(numbers);
    options.stream = "numbers";
    options.group = "a";
    options.replica = 0;
    options.check = 1;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

/* The next batch; ends of epochs are passed. */
static const tundish_batch *
next(tundish_reader *reader)
{
    const tundish_batch *batch = NULL;
    tundish_status status = tundish_next(reader, PATIENCE, &batch);

    if (status == TUNDISH_END)
        status = tundish_next(reader, PATIENCE, &batch);
    if (status != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return batch;
}

static void
keep(tundish_reader *reader, const tundish_batch *batch)
{
    if (tundish_keep(reader, batch) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
}

static tundish_info
info_of(tundish_reader *reader)
{
    tundish_info info = { .size = sizeof info };

    assert_int_equal(tundish_get_info(reader, &info), TUNDISH_OK);
    return info;
}

/* Mappings of the server's segments in this process, which are the server's own as well. */
static int
mapping_count(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, "tundish-") != NULL;
    fclose(file);
    return count;
}

/* Keep all of many batches and look at them when the lane has gone around several times. */
static void
keep_many(const struct numbers_options *options)
{
    enum { MANY = 60 };
    const tundish_batch *batches[MANY];
    struct numbers *numbers;
    tundish_reader *reader;

    numbers_open(options, &numbers);
    reader = open_reader(numbers);
    for (int i = 0; i < MANY; i++) {
        batches[i] = next(reader);
        /* Of some the tensors are made before, of some after. */
        if (i % 2 == 0)
            assert_true(numbers_check(batches[i], 0, options->rows, options->wide_step));
        if (i % 3 != 0)
            keep(reader, batches[i]);
        else
            tundish_release(reader, batches[i]);
    }
    for (int i = 0; i < MANY; i++)
        if (i % 3 != 0)
            assert_true(numbers_check(batches[i], 0, options->rows, options->wide_step));
    for (int i = MANY; i-- > 0;)
        if (i % 3 != 0)
            tundish_release(reader, batches[i]);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
more_batches_than_slots_are_kept_and_stay_whole(void **state)
{
    (void)state;
    keep_many(&(struct numbers_options){ .rows = ROWS });
    keep_many(&(struct numbers_options){ .rows = 3000 });
}

static void
memfd_checksums_and_codecs_change_nothing(void **state)
{
    (void)state;
    keep_many(&(struct numbers_options){
        .rows = ROWS, .memfd = true, .checksums = true, .narrow = true });
}

static void
batches_in_segments_of_their_own_are_kept_as_well(void **state)
{
    (void)state;
    keep_many(
        &(struct numbers_options){ .rows = ROWS, .wide_step = WIDE_STEP, .arena_bytes = 16384 });
}

static void
of_several_that_are_held_any_is_kept(void **state)
{
    enum { HELD = 4 };
    struct numbers_options options = { .rows = ROWS, .slots = 7 };
    const tundish_batch *held[HELD] = { NULL };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    srand(7);
    for (int i = 0; i < 400; i++) {
        int which = rand() % HELD, other = rand() % HELD;

        tundish_release(reader, held[which]);
        held[which] = next(reader);
        if (held[other] != NULL && info_of(reader).ahead_count <= 3)
            for (int k = 0; k < HELD; k++)
                if (held[k] != NULL && k != which)
                    keep(reader, held[k]);
        for (int k = 0; k < HELD; k++)
            if (held[k] != NULL)
                assert_true(numbers_check(held[k], 0, ROWS, 0));
    }
    for (int k = 0; k < HELD; k++)
        tundish_release(reader, held[k]);
    tundish_close(reader);
    numbers_close(numbers);
}

struct gazer {
    const tundish_batch *batch;
    atomic_bool is_over;
    uint64_t looks;
};

static void *
gaze(void *argument)
{
    struct gazer *gazer = argument;

    while (!atomic_load(&gazer->is_over)) {
        if (!numbers_check(gazer->batch, 0, ROWS, 0))
            return NULL;
        gazer->looks++;
    }
    return gazer;
}

static void
a_thread_that_reads_meanwhile_sees_no_other_byte(void **state)
{
    struct numbers_options options = { .rows = ROWS };
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    for (int round = 0; round < 100; round++) {
        struct gazer gazer = { .batch = next(reader) };
        pthread_t thread;
        void *good;

        assert_true(numbers_check(gazer.batch, 0, ROWS, 0));
        assert_int_equal(pthread_create(&thread, NULL, gaze, &gazer), 0);
        keep(reader, gazer.batch);
        for (int i = 0; i < 10; i++)
            tundish_release(reader, next(reader));
        atomic_store(&gazer.is_over, true);
        pthread_join(thread, &good);
        assert_non_null(good);
        tundish_release(reader, gazer.batch);
    }
    tundish_close(reader);
    numbers_close(numbers);
}

static void
a_kept_batch_outlives_its_reader_and_its_server(void **state)
{
    struct numbers_options options = { .rows = ROWS, .narrow = true };
    const tundish_batch *early, *late;
    struct numbers *numbers;
    tundish_reader *reader;
    int before = mapping_count();

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    early = next(reader);
    late = next(reader);
    keep(reader, early);
    keep(reader, late);
    tundish_close(reader);
    numbers_close(numbers);
    assert_true(numbers_check(early, 0, ROWS, 0));
    tundish_release(reader, early);
    assert_true(numbers_check(late, 0, ROWS, 0));
    tundish_release(reader, late);
    assert_int_equal(mapping_count(), before);
}

static void
nothing_stays_mapped_for_batches_that_were_released(void **state)
{
    struct numbers_options options = { .rows = 3000 };
    struct numbers *numbers;
    tundish_reader *reader;
    int before;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    before = mapping_count();
    for (int i = 0; i < 200; i++) {
        const tundish_batch *batch = next(reader);

        keep(reader, batch);
        tundish_release(reader, batch);
    }
    /* The view's own, with a hole where the first kept batch was, and the one in use. */
    assert_in_range(mapping_count(), before, before + 3);
    tundish_close(reader);
    numbers_close(numbers);
}

static void
the_slot_goes_back_at_once_and_only_what_is_held_is_kept(void **state)
{
    struct numbers_options options = { .rows = ROWS, .slots = 4 };
    const tundish_batch *batch;
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    assert_int_equal(info_of(reader).ahead_count, 4);
    batch = next(reader);
    assert_int_equal(info_of(reader).held_count, 1);
    assert_int_equal(info_of(reader).ahead_count, 3);
    tundish_release(reader, next(reader));
    /* The one after it came back, but the lane is filled in turn. */
    assert_int_equal(info_of(reader).ahead_count, 2);
    keep(reader, batch);
    keep(reader, batch);
    assert_int_equal(info_of(reader).held_count, 0);
    assert_int_equal(info_of(reader).ahead_count, 4);
    tundish_release(reader, batch);
    assert_int_equal(tundish_keep(reader, NULL), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_keep(NULL, batch), TUNDISH_E_ARGUMENT);
    batch = next(reader);
    tundish_release(reader, batch);
    assert_int_equal(tundish_keep(reader, batch), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "does not hold"));
    tundish_close(reader);
    numbers_close(numbers);
}

static void
a_queue_gives_its_slot_back_too(void **state)
{
    struct numbers_options options = { .rows = ROWS, .slots = 4, .queue = true };
    const tundish_batch *kept[10];
    struct numbers *numbers;
    tundish_reader *reader;

    (void)state;
    numbers_open(&options, &numbers);
    reader = open_reader(numbers);
    for (int i = 0; i < 10; i++) {
        kept[i] = next(reader);
        keep(reader, kept[i]);
    }
    for (int i = 0; i < 10; i++) {
        assert_true(numbers_check(kept[i], 0, ROWS, 0));
        tundish_release(reader, kept[i]);
    }
    tundish_close(reader);
    numbers_close(numbers);
}

TEST_FILE(test_keep)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_batches_than_slots_are_kept_and_stay_whole),
        cmocka_unit_test(memfd_checksums_and_codecs_change_nothing),
        cmocka_unit_test(batches_in_segments_of_their_own_are_kept_as_well),
        cmocka_unit_test(of_several_that_are_held_any_is_kept),
        cmocka_unit_test(a_thread_that_reads_meanwhile_sees_no_other_byte),
        cmocka_unit_test(a_kept_batch_outlives_its_reader_and_its_server),
        cmocka_unit_test(nothing_stays_mapped_for_batches_that_were_released),
        cmocka_unit_test(the_slot_goes_back_at_once_and_only_what_is_held_is_kept),
        cmocka_unit_test(a_queue_gives_its_slot_back_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
