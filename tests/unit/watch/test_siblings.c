/* test_siblings.c - which of the nodes that do the same work is slow. */
#include "unit/test_file.h"
#include "watch/siblings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "stats/stats_writer.h"

#define SECOND UINT64_C(1000000000)

enum { NODES = 5 };

/* Five nodes with a thread each, and their verdicts, in a world whose clock we turn. */
struct world {
    char folder[64], socket[NODES][96];
    int64_t now_ns;
    struct stats *stats[NODES];
    struct tnd_stats_stream *stream[NODES];
    struct tnd_stats_thread *thread[NODES];
    struct tnd_stats_link *link[NODES];
    struct watch_snapshot before[NODES], now[NODES];
    struct watch_diagnosis diagnoses[NODES];
    struct watch_sibling siblings[NODES];
};

static int64_t
world_now(void *context)
{
    return ((const struct world *)context)->now_ns;
}

static struct tnd_clock world_clock = { .now_ns = world_now };

static void
look(struct world *world, struct watch_snapshot snapshots[NODES])
{
    for (int i = 0; i < NODES; i++) {
        struct tnd_stats_file file = TND_STATS_FILE_NONE;

        watch_snapshot_close(&snapshots[i]);
        assert_int_equal(tnd_stats_open_server(world->socket[i], &file), TUNDISH_OK);
        assert_int_equal(watch_snapshot_open(&file, &snapshots[i]), TUNDISH_OK);
        tnd_stats_close(&file);
    }
}

static int
open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    world->now_ns = 100 * (int64_t)SECOND;
    world_clock.context = world;
    tnd_clock_install(&world_clock);
    strcpy(world->folder, "/tmp/test_siblings.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    for (int i = 0; i < NODES; i++) {
        snprintf(world->socket[i], sizeof world->socket[i], "%s/%d", world->folder, i);
        assert_int_equal(stats_open(world->socket[i], 1, &world->stats[i]), TUNDISH_OK);
        world->stream[i] = stats_add(world->stats[i], TND_STATS_KIND_stream, "stream=\"train\"");
        world->thread[i] = stats_add(world->stats[i], TND_STATS_KIND_thread,
                                     "stream=\"train\",thread=\"content 0\"");
        world->link[i] = stats_add(world->stats[i], TND_STATS_KIND_link, "");
        world->diagnoses[i] = (struct watch_diagnosis){ .level = WATCH_FINE,
                                                        .cause = WATCH_CAUSE_TRAINER,
                                                        .stream = "train" };
        /* Ten seconds in which each is busy for two, with 1,000 rows. */
        tnd_stats_set(&world->thread[i]->busy, 2 * SECOND);
        tnd_stats_set(&world->stream[i]->rows, 1000);
    }
    *state = world;
    return 0;
}

static int
close_world(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < NODES; i++) {
        watch_snapshot_close(&world->before[i]);
        watch_snapshot_close(&world->now[i]);
        stats_close(world->stats[i]);
    }
    tnd_clock_install(NULL);
    assert_int_equal(rmdir(world->folder), 0);
    free(world);
    return 0;
}

/* Ten seconds with what was set against nothing. */
static void
compare(struct world *world)
{
    look(world, world->now);
    for (int i = 0; i < NODES; i++) {
        tnd_stats_set(&world->thread[i]->busy, 0);
        tnd_stats_set(&world->stream[i]->rows, 0);
        tnd_stats_set(&world->stream[i]->deal_busy, 0);
        tnd_stats_set(&world->link[i]->wait, 0);
    }
    look(world, world->before);
    for (int i = 0; i < NODES; i++) {
        world->now[i].taken_ns += 10 * (int64_t)SECOND;
        world->siblings[i] = (struct watch_sibling){ .before = &world->before[i],
                                                     .now = &world->now[i],
                                                     .diagnosis = &world->diagnoses[i] };
    }
    watch_compare(world->siblings, NODES);
}

/* Node 3 works longer, and its trainers wait for that reason. */
static void
slow_down(struct world *world, enum watch_cause cause)
{
    tnd_stats_set(&world->thread[3]->busy, 7 * SECOND);
    world->diagnoses[3].level = WATCH_WAITING;
    world->diagnoses[3].cause = cause;
    strcpy(world->diagnoses[3].sentence, "replica 0 waits 40% of its time: map takes 90%");
    strcpy(world->diagnoses[3].culprit, "map");
    strcpy(world->diagnoses[3].advice, "Use more threads.");
}

static void
one_that_computes_slowly_is_the_cause_itself(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_STAGE);
    compare(world);
    assert_true(world->siblings[3].slowness > 3.4 && world->siblings[3].slowness < 3.6);
    assert_int_equal(world->diagnoses[3].cause, WATCH_CAUSE_NODE);
    assert_string_equal(world->diagnoses[3].culprit, world->now[3].copy.header->node);
    assert_non_null(strstr(world->diagnoses[3].sentence, "map takes 90%; for each row this node"));
    assert_non_null(
        strstr(world->diagnoses[3].sentence, " works 3.5 times as long as the others do (median)"));
    assert_non_null(strstr(world->diagnoses[3].advice, "Look at this machine"));
    for (int i = 0; i < NODES; i++)
        if (i != 3)
            assert_true(world->siblings[i].slowness > 0.99 && world->siblings[i].slowness < 1.01);
    assert_string_equal(world->diagnoses[0].sentence, "");
}

static void
where_all_work_as_long_the_stage_is_the_cause(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_STAGE);
    for (int i = 0; i < NODES; i++)
        tnd_stats_set(&world->thread[i]->busy, 7 * SECOND);
    compare(world);
    assert_int_equal(world->diagnoses[3].cause, WATCH_CAUSE_STAGE);
    assert_string_equal(world->diagnoses[3].culprit, "map");
    assert_null(strstr(world->diagnoses[3].sentence, "times as long"));
}

static void
one_that_waits_for_its_files_keeps_that_cause(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_SOURCE);
    world->diagnoses[3].file_share = 0.9;
    compare(world);
    assert_int_equal(world->diagnoses[3].cause, WATCH_CAUSE_SOURCE);
    assert_non_null(strstr(world->diagnoses[3].sentence, "3.5 times as long"));
    assert_non_null(
        strstr(world->diagnoses[3].advice, "compare this node's mount, disk and network"));
}

static void
one_whose_trainers_have_batches_is_left_alone(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_TRAINER);
    world->diagnoses[3].level = WATCH_FINE;
    compare(world);
    assert_true(world->siblings[3].slowness > 3.4);
    assert_null(strstr(world->diagnoses[3].sentence, "times as long"));
}

/* More rows are more work, and what others are waited for is theirs. */
static void
rows_count_and_waits_for_other_nodes_do_not(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_STAGE);
    tnd_stats_set(&world->stream[3]->rows, 3500);
    tnd_stats_set(&world->thread[1]->busy, 9 * SECOND);
    tnd_stats_set(&world->link[1]->wait, 7 * SECOND);
    compare(world);
    assert_true(world->siblings[3].slowness > 0.99 && world->siblings[3].slowness < 1.01);
    assert_true(world->siblings[1].slowness > 0.99 && world->siblings[1].slowness < 1.01);
    assert_int_equal(world->diagnoses[3].cause, WATCH_CAUSE_STAGE);
}

static void
one_without_work_or_of_another_stream_is_not_compared(void **state)
{
    struct world *world = *state;

    slow_down(world, WATCH_CAUSE_STAGE);
    strcpy(world->diagnoses[3].stream, "validation");
    tnd_stats_set(&world->stream[0]->rows, 0);
    tnd_stats_set(&world->thread[1]->busy, 1000);
    compare(world);
    assert_true(world->siblings[3].slowness == 0);
    assert_true(world->siblings[0].slowness == 0);
    assert_true(world->siblings[1].slowness == 0);
    assert_int_equal(world->diagnoses[3].cause, WATCH_CAUSE_STAGE);
}

TEST_FILE(test_siblings)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_computes_slowly_is_the_cause_itself, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(where_all_work_as_long_the_stage_is_the_cause, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(one_that_waits_for_its_files_keeps_that_cause, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(one_whose_trainers_have_batches_is_left_alone, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(rows_count_and_waits_for_other_nodes_do_not, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(one_without_work_or_of_another_stream_is_not_compared,
                                        open_world, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
