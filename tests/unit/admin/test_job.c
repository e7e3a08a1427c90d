/* test_job.c - the figures of all nodes together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "job.h"
#include "stats/stats_writer.h"
#include "unit/test_file.h"

enum { NODES = 3 };

/* Three nodes with a stream and a reader each, and what the last look at them has seen. */
struct world {
    char folder[64], socket[NODES][96];
    struct stats *stats[NODES];
    struct tnd_stats_stream *stream[NODES];
    struct tnd_stats_reader *reader[NODES];
    struct watch_snapshot now[NODES], before[NODES];
    bool has_before[NODES];
    struct job job;
};

static void
start(struct world *world, int node)
{
    char labels[TND_STATS_LABEL_BYTES];

    assert_int_equal(stats_open(world->socket[node], 1, &world->stats[node]), TUNDISH_OK);
    world->stream[node] = stats_add(world->stats[node], TND_STATS_KIND_stream, "stream=\"train\"");
    snprintf(labels, sizeof labels, "stream=\"train\",group=\"a\\\"b\",replica=\"%d\"", node);
    world->reader[node] = stats_add(world->stats[node], TND_STATS_KIND_reader, labels);
}

static int
open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    strcpy(world->folder, "/tmp/test_job.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    for (int i = 0; i < NODES; i++) {
        snprintf(world->socket[i], sizeof world->socket[i], "%s/%d", world->folder, i);
        start(world, i);
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
    job_close(&world->job);
    assert_int_equal(rmdir(world->folder), 0);
    free(world);
    return 0;
}

static void
look(struct world *world)
{
    job_begin(&world->job);
    for (int i = 0; i < NODES; i++) {
        struct tnd_stats_file file = TND_STATS_FILE_NONE;

        watch_snapshot_close(&world->before[i]);
        world->before[i] = world->now[i];
        world->now[i] = (struct watch_snapshot){ 0 };
        assert_int_equal(tnd_stats_open_server(world->socket[i], &file), TUNDISH_OK);
        assert_int_equal(watch_snapshot_open(&file, &world->now[i]), TUNDISH_OK);
        tnd_stats_close(&file);
        job_note(&world->job, world->has_before[i] ? &world->before[i] : NULL, &world->now[i]);
        world->has_before[i] = true;
    }
    job_end(&world->job);
}

static const struct job_set *
find(const struct world *world, const char *kind, const char *labels)
{
    for (uint32_t i = 0; i < world->job.count; i++)
        if (strcmp(world->job.sets[i]->kind->name, kind) == 0 &&
            strcmp(world->job.sets[i]->labels, labels) == 0)
            return world->job.sets[i];
    return NULL;
}

static uint64_t
value(const struct job_set *set, const char *field)
{
    for (uint32_t i = 0; i < set->kind->field_count; i++)
        if (strcmp(set->kind->fields[i].name, field) == 0)
            return set->values[i];
    fail_msg("no %s", field);
    return 0;
}

static void
counters_are_sums_and_gauges_the_highest(void **state)
{
    struct world *world = *state;
    const struct job_set *readers;

    for (uint32_t i = 0; i < NODES; i++) {
        tnd_stats_set(&world->reader[i]->taken, 10 + i);
        tnd_stats_set(&world->reader[i]->silent, 100 * i);
        tnd_stats_observe(&world->reader[i]->next_wait, 1000);
    }
    look(world);
    /* Without the replica; the quoted name of the group stays. */
    readers = find(world, "reader", "stream=\"train\",group=\"a\\\"b\"");
    assert_non_null(readers);
    assert_int_equal(value(readers, "taken"), 33);
    assert_int_equal(value(readers, "silent"), 200);
    assert_int_equal(readers->histograms[0].buckets[0], 3);
    assert_int_equal(readers->histograms[0].sum_ns, 3000);
    tnd_stats_set(&world->reader[2]->silent, 5);
    tnd_stats_set(&world->reader[0]->taken, 20);
    look(world);
    readers = find(world, "reader", "stream=\"train\",group=\"a\\\"b\"");
    assert_int_equal(value(readers, "taken"), 43);
    assert_int_equal(value(readers, "silent"), 100);
    assert_int_equal(readers->histograms[0].buckets[0], 3);
}

/* A sum that went down would look to Prometheus as if all had begun anew. */
static void
a_server_that_is_started_again_takes_nothing_away(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < NODES; i++)
        tnd_stats_set(&world->stream[i]->rows, 1000);
    look(world);
    assert_int_equal(value(find(world, "stream", "stream=\"train\""), "rows"), 3000);
    stats_close(world->stats[1]);
    start(world, 1);
    world->has_before[1] = false;
    look(world);
    assert_int_equal(value(find(world, "stream", "stream=\"train\""), "rows"), 3000);
    tnd_stats_set(&world->stream[1]->rows, 7);
    look(world);
    assert_int_equal(value(find(world, "stream", "stream=\"train\""), "rows"), 3007);
}

static void
sets_that_no_node_has_any_more_end(void **state)
{
    struct world *world = *state;

    look(world);
    assert_non_null(find(world, "reader", "stream=\"train\",group=\"a\\\"b\""));
    for (int i = 0; i < NODES; i++)
        stats_drop(world->stats[i], world->reader[i]);
    look(world);
    assert_null(find(world, "reader", "stream=\"train\",group=\"a\\\"b\""));
    assert_non_null(find(world, "stream", "stream=\"train\""));
}

TEST_FILE(test_job)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_are_sums_and_gauges_the_highest, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_server_that_is_started_again_takes_nothing_away,
                                        open_world, close_world),
        cmocka_unit_test_setup_teardown(sets_that_no_node_has_any_more_end, open_world,
                                        close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
