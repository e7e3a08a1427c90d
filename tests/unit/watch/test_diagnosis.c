/* test_diagnosis.c - who is named, for each way in which a job can be held up. */
#include "unit/test_file.h"
#include "watch/diagnosis.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "stats/stats_process.h"
#include "stats/stats_writer.h"

#define SECOND UINT64_C(1000000000)

/* A server with two threads, three stages and two replicas, in a world whose clock we turn. */
struct world {
    char folder[64], socket[96], path[112];
    int64_t now_ns;
    struct stats *stats;
    struct tnd_stats_stream *stream;
    struct tnd_stats_thread *threads[2];
    struct tnd_stats_stage *read, *parse, *lookup;
    struct tnd_stats_reader *readers[2];
    struct tnd_stats_lane *lanes[2];
    struct tnd_stats_helper *helpers[2]; /* add_helpers */
    struct watch_snapshot before;
};

static int64_t
world_now(void *context)
{
    return ((const struct world *)context)->now_ns;
}

static struct tnd_clock world_clock = { .now_ns = world_now };

static int
open_world(void **state)
{
    static const char *const labels[] = { "stream=\"train\",thread=\"content 0\"",
                                          "stream=\"train\",thread=\"content 1\"" };
    static const char *const lanes[] = { "stream=\"train\",replica=\"0\"",
                                         "stream=\"train\",replica=\"1\"" };
    static const char *const readers[] = { "stream=\"train\",group=\"default\",replica=\"0\"",
                                           "stream=\"train\",group=\"default\",replica=\"1\"" };
    struct world *world = calloc(1, sizeof *world);
    struct tnd_stats_file file = TND_STATS_FILE_NONE;

    world->now_ns = 100 * (int64_t)SECOND;
    world_clock.context = world;
    tnd_clock_install(&world_clock);
    strcpy(world->folder, "/tmp/test_diagnosis.XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->socket, sizeof world->socket, "%s/server", world->folder);
    snprintf(world->path, sizeof world->path, "%s.stats", world->socket);
    assert_int_equal(stats_open(world->socket, 4, &world->stats), TUNDISH_OK);
    stats_show_state(world->stats, TND_STATS_SERVING);
    world->stream = stats_add(world->stats, TND_STATS_KIND_stream, "stream=\"train\"");
    world->read = stats_add(world->stats, TND_STATS_KIND_stage,
                            "stream=\"train\",stage=\"tfrecord\",node=\"0\"");
    world->parse = stats_add(world->stats, TND_STATS_KIND_stage,
                             "stream=\"train\",stage=\"parse_example\",node=\"1\"");
    world->lookup = stats_add(world->stats, TND_STATS_KIND_stage,
                              "stream=\"train\",stage=\"string_lookup\",node=\"2\"");
    for (int i = 0; i < 2; i++) {
        world->threads[i] = stats_add(world->stats, TND_STATS_KIND_thread, labels[i]);
        world->readers[i] = stats_add(world->stats, TND_STATS_KIND_reader, readers[i]);
        tnd_stats_set(&world->readers[i]->attached, 1);
        tnd_stats_set(&world->readers[i]->process, 4711);
        tnd_stats_set(&world->readers[i]->published, 20);
        tnd_stats_set(&world->readers[i]->taken, 12);
        tnd_stats_set(&world->readers[i]->released, 10);
        tnd_stats_set(&world->readers[i]->usual_step, SECOND / 10);
        world->lanes[i] = stats_add(world->stats, TND_STATS_KIND_lane, lanes[i]);
        tnd_stats_set(&world->lanes[i]->slots, 12);
        tnd_stats_set(&world->lanes[i]->published, 20);
        tnd_stats_set(&world->lanes[i]->released, 10);
    }
    assert_int_equal(tnd_stats_open_server(world->socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, &world->before), TUNDISH_OK);
    tnd_stats_close(&file);
    *state = world;
    return 0;
}

static int
close_world(void **state)
{
    struct world *world = *state;

    watch_snapshot_close(&world->before);
    stats_close(world->stats);
    tnd_clock_install(NULL);
    assert_int_equal(rmdir(world->folder), 0);
    free(world);
    return 0;
}

/* Ten seconds later. */
static struct watch_diagnosis
diagnose(struct world *world)
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct watch_snapshot now;
    struct watch_diagnosis diagnosis;

    world->now_ns += 10 * (int64_t)SECOND;
    assert_int_equal(tnd_stats_open_server(world->socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, &now), TUNDISH_OK);
    watch_diagnose(&world->before, &now, &diagnosis);
    watch_snapshot_close(&now);
    tnd_stats_close(&file);
    return diagnosis;
}

/* From now on, looks begin here. */
static void
take_as_before(struct world *world)
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;

    watch_snapshot_close(&world->before);
    assert_int_equal(tnd_stats_open_server(world->socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, &world->before), TUNDISH_OK);
    tnd_stats_close(&file);
}

static void
says(const struct watch_diagnosis *diagnosis, const char *words)
{
    if (strstr(diagnosis->sentence, words) == NULL)
        fail_msg("'%s' does not say '%s'", diagnosis->sentence, words);
}

static void
trainers_are_the_limit(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, SECOND / 5);
    tnd_stats_set(&world->threads[0]->busy, 4 * SECOND);
    tnd_stats_set(&world->threads[0]->slot_wait, 6 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FINE);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_TRAINER);
    says(&diagnosis, "the trainers are the bottleneck");
    says(&diagnosis, "2%");
    says(&diagnosis, "20% busy");
}

static void
a_slow_stage_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 2 * SECOND);
    tnd_stats_set(&world->readers[1]->wait, 38 * SECOND / 10);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 97 * SECOND / 10);
    tnd_stats_set(&world->read->busy, 3 * SECOND);
    tnd_stats_set(&world->parse->busy, 4 * SECOND);
    tnd_stats_set(&world->lookup->busy, 12 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STAGE);
    assert_string_equal(diagnosis.culprit, "string_lookup");
    says(&diagnosis, "replica 1 on node ");
    says(&diagnosis,
         "waits 38% of its time: string_lookup takes 60% of 2 threads that are 97% busy");
}

/* Content is the limit, and `count` helpers of two threads each made `rows` of its 1,000 rows, in
 * this share of their time. */
static struct watch_diagnosis
diagnose_helped(struct world *world, uint32_t count, uint64_t rows, double busy)
{
    tnd_stats_set(&world->readers[0]->wait, 4 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 97 * SECOND / 10);
    tnd_stats_set(&world->lookup->busy, 18 * SECOND);
    tnd_stats_set(&world->stream->rows, 1000);
    for (uint32_t i = 0; i < count; i++) {
        tnd_stats_set(&world->helpers[i]->connections, 3);
        tnd_stats_set(&world->helpers[i]->threads, 2);
        tnd_stats_set(&world->helpers[i]->rows, rows / count);
        tnd_stats_set(&world->helpers[i]->busy, (uint64_t)(busy * 20 * (double)SECOND));
    }
    return diagnose(world);
}

static void
add_helpers(struct world *world)
{
    static const char *const labels[] = { "stream=\"train\",helper=\"c:7000\"",
                                          "stream=\"train\",helper=\"d:7000\"" };

    for (int i = 0; i < 2; i++)
        world->helpers[i] = stats_add(world->stats, TND_STATS_KIND_helper, labels[i]);
    take_as_before(world);
}

static void
helpers_are_proposed_where_there_are_none(void **state)
{
    struct watch_diagnosis diagnosis = diagnose_helped(*state, 0, 0, 0);

    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STAGE);
    assert_null(strstr(diagnosis.sentence, "helper"));
    assert_non_null(strstr(diagnosis.advice, "or use helpers (tundish-launch --helpers)"));
}

static void
one_more_helper_is_proposed_where_they_are_busy(void **state)
{
    struct watch_diagnosis diagnosis;

    add_helpers(*state);
    diagnosis = diagnose_helped(*state, 2, 400, 0.9);
    says(&diagnosis, "2 threads that are 97% busy; helpers make 40% of the rows");
    assert_null(strstr(diagnosis.sentence, "lost"));
    assert_non_null(strstr(diagnosis.advice, "One more helper would help"));
}

static void
helpers_with_time_left_are_told_so(void **state)
{
    struct watch_diagnosis diagnosis;

    add_helpers(*state);
    diagnosis = diagnose_helped(*state, 2, 400, 0.5);
    says(&diagnosis, "; helpers make 40% of the rows");
    assert_non_null(strstr(diagnosis.advice, "One more helper would not help"));
}

static void
lost_helpers_are_counted(void **state)
{
    struct watch_diagnosis diagnosis;

    add_helpers(*state);
    diagnosis = diagnose_helped(*state, 1, 250, 0.9);
    says(&diagnosis, "; helpers make 25% of the rows, 1 of 2 are lost");
    assert_non_null(strstr(diagnosis.advice, "Start the lost helpers again"));
}

/* Rows of helpers are counted when they come, those of the stream when their step is published. */
static void
helpers_make_no_more_than_all_rows(void **state)
{
    struct watch_diagnosis diagnosis;

    add_helpers(*state);
    diagnosis = diagnose_helped(*state, 2, 1200, 1.5);
    says(&diagnosis, "; helpers make 100% of the rows");
}

static void
slow_reading_is_named_by_its_source(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->threads[1]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 19 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SOURCE);
    assert_string_equal(diagnosis.culprit, "tfrecord");
    says(&diagnosis, "reading with tfrecord takes 95%");
}

/* Threads that work without running wait for their files; those that run do not. */
static void
slow_storage_is_told_from_costly_reading(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 10 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&stats_server(world->stats)->cpu, SECOND);
    diagnosis = diagnose(world);
    says(&diagnosis, "50% busy, and for 90% of that the server waits for its storage");
    assert_non_null(strstr(diagnosis.advice, "faster or nearer storage"));
    tnd_stats_set(&stats_server(world->stats)->cpu, 9 * SECOND);
    world->now_ns -= 10 * (int64_t)SECOND;
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SOURCE);
    assert_null(strstr(diagnosis.sentence, "storage"));
    assert_null(strstr(diagnosis.advice, "storage"));
}

static void
an_order_that_waits_for_its_files_is_told_so(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->stream->deal_busy, 10 * SECOND);
    tnd_stats_set(&stats_server(world->stats)->cpu, SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_ORDER);
    says(&diagnosis, "and for 90% of that the server waits for its storage");
}

/* What a run took is counted when it ends: until then there is only what it is of. */
static void
a_run_that_does_not_end_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&world->read->queued, 16);
    tnd_stats_set(&world->stream->ready_steps, 1);
    take_as_before(world);
    tnd_stats_set(&world->readers[0]->wait, 10 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SOURCE);
    assert_string_equal(diagnosis.culprit, "tfrecord");
    says(&diagnosis, "one call of reading with tfrecord has not ended in all of the last 10.0 s");
    tnd_stats_set(&world->read->calls, 1);
    world->now_ns -= 10 * (int64_t)SECOND;
    diagnosis = diagnose(world);
    says(&diagnosis, "it has little work at a time");
}

static void
an_order_that_does_not_come_back_is_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 10 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_ORDER);
    says(&diagnosis, "has been at one step for all of the last 10.0 s");
    tnd_stats_set(&world->stream->deal_wait, SECOND);
    world->now_ns -= 10 * (int64_t)SECOND;
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_NONE);
}

/* A run that was longer than the look is counted in one that is shorter. */
static void
a_share_is_at_most_all(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 20 * SECOND);
    tnd_stats_set(&world->parse->busy, 40 * SECOND);
    diagnosis = diagnose(world);
    assert_string_equal(diagnosis.culprit, "parse_example");
    assert_true(diagnosis.share <= 1);
}

/* A wait for rows of another node is counted as work of the stage that reads them. */
static void
other_nodes_are_named_by_the_time_that_they_are_waited_for(void **state)
{
    struct world *world = *state;
    struct tnd_stats_link *link = stats_add(world->stats, TND_STATS_KIND_link, "");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 10 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&link->wait, 4 * SECOND);
    assert_string_equal(diagnose(world).culprit, "tfrecord"); /* most of it was its own */
    world->now_ns -= 10 * (int64_t)SECOND;
    tnd_stats_set(&link->wait, 9 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SERVER);
    assert_string_equal(diagnosis.culprit, "nodes");
    says(&diagnosis, "waits for other nodes in 90% of the time that its threads work");
}

/* Threads that only read ahead wait for it too. */
static void
a_store_is_named_by_the_threads_that_wait_for_it(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);
    struct tnd_stats_store *store =
        stats_add(world->stats, TND_STATS_KIND_store, "store=\"s3://bucket\"");
    struct tnd_stats_store *idle =
        stats_add(world->stats, TND_STATS_KIND_store, "store=\"http://other\"");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->threads[1]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 20 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&server->cpu, 19 * SECOND);
    tnd_stats_set(&store->wait, 40 * SECOND);
    tnd_stats_set(&idle->wait, 1 * SECOND);
    assert_string_equal(diagnose(world).culprit, "tfrecord");
    world->now_ns -= 10 * (int64_t)SECOND;
    tnd_stats_set(&server->cpu, 4 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STORE);
    assert_string_equal(diagnosis.culprit, "s3://bucket");
    says(&diagnosis, "the server waits for the store s3://bucket");
}

/* A store that refuses requests for now throttles: more of them at once make it worse. */
static void
a_store_that_throttles_is_told_from_a_slow_one(void **state)
{
    struct world *world = *state;
    struct tnd_stats_store *store =
        stats_add(world->stats, TND_STATS_KIND_store, "store=\"s3://bucket\"");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 10 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&store->wait, 10 * SECOND);
    tnd_stats_set(&store->requests, 1000);
    tnd_stats_set(&store->server_retries, 10);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STORE);
    assert_null(strstr(diagnosis.sentence, "refuses"));
    assert_non_null(strstr(diagnosis.advice, "raise remote.connections"));
    tnd_stats_set(&store->server_retries, 300);
    world->now_ns -= 10 * (int64_t)SECOND;
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STORE);
    says(&diagnosis, "the store s3://bucket, which refuses 30% of the requests for now (429, 503)");
    assert_non_null(strstr(diagnosis.advice, "The store throttles"));
    assert_null(strstr(diagnosis.advice, "raise remote.connections"));
}

static void
an_object_that_does_not_come_is_named(void **state)
{
    struct world *world = *state;
    struct tnd_stats_store *store =
        stats_add(world->stats, TND_STATS_KIND_store, "store=\"s3://bucket\"");
    struct tnd_stats_delay *delay = stats_add(world->stats, TND_STATS_KIND_delay,
                                              "store=\"s3://bucket\",object=\"s3://bucket/a\"");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&store->wait, 10 * SECOND);
    tnd_stats_set(&delay->wait, 8 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STORE);
    says(&diagnosis, "waits for the store s3://bucket, for s3://bucket/a for 8 s now");
}

static void
a_slow_order_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 5 * SECOND);
    tnd_stats_set(&world->readers[1]->wait, 5 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 1 * SECOND);
    tnd_stats_set(&world->stream->deal_busy, 9 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_ORDER);
    says(&diagnosis, "is 90% busy");
}

/* Threads that wait for interpreters are busy, and not on a processor: neither they nor the storage
 * are the limit. */
static void
python_is_named_by_how_busy_its_interpreters_are(void **state)
{
    struct world *world = *state;
    struct tnd_stats_python *python =
        stats_add(world->stats, TND_STATS_KIND_python, "call=\"augment:train\"");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, 10 * SECOND);
    tnd_stats_set(&world->threads[1]->busy, 10 * SECOND);
    tnd_stats_set(&world->read->busy, 20 * SECOND);
    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&python->limit, 2);
    tnd_stats_set(&python->busy, 19 * SECOND);
    tnd_stats_set(&python->rows, 10000);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_STAGE);
    assert_string_equal(diagnosis.culprit, "augment:train");
    says(&diagnosis, "python augment:train takes 95% of 2 workers, 1.9 ms a row");
    assert_non_null(strstr(diagnosis.advice, "Raise workers of that stage"));
    world->now_ns -= 10 * (int64_t)SECOND;
    tnd_stats_set(&python->limit, 8);
    diagnosis = diagnose(world);
    says(&diagnosis, "takes 24% of 8 workers");
    assert_non_null(strstr(diagnosis.advice, "have time left"));
    world->now_ns -= 10 * (int64_t)SECOND;
    tnd_stats_set(&python->busy, 2 * SECOND);
    assert_string_equal(diagnose(world).culprit, "tfrecord");
}

static void
a_program_that_writes_slowly_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 5 * SECOND);
    tnd_stats_set(&world->stream->deal_busy, 9 * SECOND);
    tnd_stats_set(&world->stream->program_wait, 8 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SOURCE);
    assert_string_equal(diagnosis.culprit, "program");
    says(&diagnosis,
         "a program writes its rows too slowly: the server waits 80% of its time for them");
}

static void
a_trainer_that_is_not_there_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 8 * SECOND);
    tnd_stats_set(&world->readers[1]->attached, 0);
    assert_int_equal(diagnose(world).level, WATCH_WAITING); /* its lane has room */
    tnd_stats_set(&world->lanes[1]->slots, 10);
    tnd_stats_set(&world->readers[1]->attached, 1);
    assert_int_equal(diagnose(world).level, WATCH_WAITING); /* it is there */
    tnd_stats_set(&world->readers[1]->attached, 0);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "1");
    says(&diagnosis, "for replica 1 on node ");
    says(&diagnosis, ", whose trainer is gone or has not attached");
}

/* Beside it another group reads there, which waits. */
static void
a_group_that_is_not_there_is_named(void **state)
{
    struct world *world = *state;
    struct tnd_stats_reader *absent =
        stats_add(world->stats, TND_STATS_KIND_reader,
                  "stream=\"train\",group=\"(awaited 1)\",replica=\"0\"");
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&absent->released, 8);
    tnd_stats_set(&world->lanes[0]->slots, 10);
    tnd_stats_set(&world->readers[0]->wait, 8 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    says(&diagnosis, "for replica 0 of group (awaited 1) on node ");
    says(&diagnosis, ", whose trainer is gone or has not attached");
}

/* Replica 1 has taken all there is and waits; the lane of replica 0 is full. */
static void
wait_for_replica_0(struct world *world)
{
    tnd_stats_set(&world->readers[1]->wait, 10 * SECOND);
    tnd_stats_set(&world->readers[1]->waiting, 10 * SECOND);
    tnd_stats_set(&world->readers[1]->taken, 20);
    tnd_stats_set(&world->readers[1]->silent, 10 * SECOND);
    tnd_stats_set(&world->lanes[0]->slots, 10);
}

static void
a_slow_sibling_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->slot_wait, 9 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SLOTS);
    assert_string_equal(diagnosis.culprit, "0");
    says(&diagnosis, "replica 1 on node ");
    says(&diagnosis, "for replica 0 on node ");
}

/* The lane of replica 1, which waits and has given everything back, is full for replica 0, too. */
static void
a_slow_sibling_is_named_where_it_fills_all_lanes(void **state)
{
    struct world *world = *state;

    wait_for_replica_0(world);
    tnd_stats_set(&world->lanes[1]->slots, 10);
    tnd_stats_set(&world->readers[1]->released, 20);
    assert_string_equal(diagnose(world).culprit, "0");
}

/* The threads' wait has not ended, so it is not counted; and a stage is a little busy. */
static void
a_slow_sibling_whose_step_outlasts_the_look_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->silent, 25 * SECOND);
    tnd_stats_set(&world->readers[0]->usual_step, 15 * SECOND);
    tnd_stats_set(&world->threads[0]->busy, SECOND / 10);
    tnd_stats_set(&world->read->busy, SECOND / 10);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING); /* its steps are like that: it is not stuck */
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SLOTS);
    assert_string_equal(diagnosis.culprit, "0");
}

static void
of_a_slow_job_detach_is_named(void **state)
{
    struct world *world = *state;
    struct tnd_stats_reader *other = stats_add(world->stats, TND_STATS_KIND_reader,
                                               "stream=\"train\",group=\"other\",replica=\"0\"");
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->released, 18);
    tnd_stats_set(&other->attached, 1);
    tnd_stats_set(&other->published, 20);
    tnd_stats_set(&other->taken, 11);
    tnd_stats_set(&other->released, 10);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SLOTS);
    says(&diagnosis, "for replica 0 of group other");
    assert_non_null(strstr(diagnosis.advice, "slow_group: detach"));
}

static void
groups_that_the_first_batch_waits_for_are_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    for (int i = 0; i < 2; i++) {
        tnd_stats_set(&world->readers[i]->published, 0);
        tnd_stats_set(&world->readers[i]->taken, 0);
        tnd_stats_set(&world->readers[i]->released, 0);
        tnd_stats_set(&world->lanes[i]->published, 0);
        tnd_stats_set(&world->lanes[i]->released, 0);
    }
    tnd_stats_set(&world->readers[0]->wait, 10 * SECOND);
    tnd_stats_set(&world->stream->groups_missing, 1);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    says(&diagnosis, "for the first batch, which waits until 1 more group is complete");
    assert_null(strstr(diagnosis.sentence, "so for"));
    tnd_stats_set(&world->readers[1]->attached, 0);
    tnd_stats_set(&world->readers[0]->wait, 20 * SECOND);
    diagnosis = diagnose(world);
    says(&diagnosis, "is complete, so for replica 1 on node ");
    assert_non_null(strstr(diagnosis.advice, "deliver.group_wait"));
}

static void
a_stuck_trainer_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->silent, 34 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "0");
    says(&diagnosis, "(process 4711) has not taken or returned a batch for 34 s");
}

static void
before_its_first_step_a_trainer_has_more_time(void **state)
{
    struct world *world = *state;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->usual_step, 0);
    tnd_stats_set(&world->readers[0]->silent, 34 * SECOND);
    assert_int_equal(diagnose(world).level, WATCH_WAITING);
    tnd_stats_set(&world->readers[0]->silent, 64 * SECOND);
    assert_int_equal(diagnose(world).level, WATCH_STUCK);
}

static void
a_silent_trainer_whose_lane_has_room_holds_nobody_up(void **state)
{
    struct world *world = *state;

    wait_for_replica_0(world);
    tnd_stats_set(&world->lanes[0]->slots, 12);
    tnd_stats_set(&world->readers[0]->silent, 34 * SECOND);
    assert_int_not_equal(diagnose(world).level, WATCH_STUCK);
}

static void
a_trainer_that_keeps_batches_is_told_so(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->silent, 34 * SECOND);
    tnd_stats_set(&world->readers[0]->taken, 18);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "0");
    says(&diagnosis, "holds 8 of the 10 batches in its lane and returns none");
    assert_null(strstr(diagnosis.advice, "debugger"));
    tnd_stats_set(&world->readers[0]->taken, 17);
    says((diagnosis = diagnose(world), &diagnosis), "has not taken or returned a batch");
}

/* With a batch that it never gave back it has filled its lane, and waits for itself. */
static void
a_trainer_that_waits_for_itself_is_told_so(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 10 * SECOND);
    tnd_stats_set(&world->readers[0]->taken, 20);
    tnd_stats_set(&world->readers[0]->released, 8);
    tnd_stats_set(&world->lanes[0]->released, 8);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_TRAINER);
    assert_string_equal(diagnosis.culprit, "0");
    assert_true(diagnosis.wait_share > 0.9);
    says(&diagnosis, "(process 4711) holds 12 of the 12 batches in its lane and returns none; it "
                     "waits for more");
}

/* As when all of a job stand in an all-reduce, or save their state: nobody waits for a batch. */
static void
a_trainer_that_is_silent_while_nobody_waits_is_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->readers[i]->silent, 20 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FINE);
    says(&diagnosis, "replica 0 on node ");
    says(&diagnosis, "has not taken or returned a batch for 20 s; no trainer waits for the server");
    tnd_stats_set(&world->readers[1]->silent, 121 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "1");
    tnd_stats_set(&world->readers[1]->usual_step, 35 * SECOND); /* 121 s are not four of these */
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FINE);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->readers[i]->usual_step, 60 * SECOND);
    diagnosis = diagnose(world);
    says(&diagnosis, "the trainers are the bottleneck");
}

static void
a_trainer_stopped_while_it_waits_is_named(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    wait_for_replica_0(world);
    tnd_stats_set(&world->readers[0]->wait, 34 * SECOND);
    tnd_stats_set(&world->readers[0]->waiting, 34 * SECOND);
    tnd_stats_set(&world->readers[0]->silent, 34 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "0");
}

static void
a_server_without_processors_is_told(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);
    struct tnd_stats_rival *rival;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 5 * SECOND);
    tnd_stats_set(&world->parse->busy, 9 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 9 * SECOND);
    tnd_stats_set(&server->cpu, 5 * SECOND);
    tnd_stats_set(&server->run_delay, 4 * SECOND);
    assert_string_equal(diagnose(world).culprit, "parse_example"); /* it ran more than it waited */
    tnd_stats_set(&server->run_delay, 25 * SECOND);
    rival = stats_add(world->stats, TND_STATS_KIND_rival, "process=\"99\",command=\"python3\"");
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_PROCESSORS);
    assert_null(strstr(diagnosis.sentence, "uses most")); /* it uses none now */
    tnd_stats_set(&rival->cpu, SECOND / 10 * 6);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_PROCESSORS);
    says(&diagnosis, "of which python3 (process 99) uses most, 0.6");
    says(&diagnosis, "they had none for 83%");
}

static void
trainers_that_have_all_died_are_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->readers[i]->attached, 0);
    assert_int_equal(diagnose(world).level, WATCH_IDLE); /* both have closed their readers */
    tnd_stats_set(&world->readers[1]->died, 1);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STUCK);
    assert_string_equal(diagnosis.culprit, "1");
    says(&diagnosis, "the trainer of replica 1 on node");
    says(&diagnosis, "has died, none is attached, and 10 batches wait for replacements");
    tnd_stats_set(&world->readers[0]->died, 1);
    diagnosis = diagnose(world);
    says(&diagnosis, "and 1 other have died");
}

/* The lane of a slow trainer has room for the moment between its release and the next step, the
 * longer the fewer processors the server gets. */
static void
a_lane_that_was_full_comes_before_processors(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    for (int i = 0; i < 2; i++) {
        tnd_stats_set(&world->threads[i]->busy, SECOND);
        tnd_stats_set(&world->threads[i]->slot_wait, 8 * SECOND);
    }
    tnd_stats_set(&server->cpu, SECOND);
    tnd_stats_set(&server->run_delay, 9 * SECOND);
    tnd_stats_set(&server->memory_stalled, 4 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_SLOTS);
    assert_string_equal(diagnosis.culprit, "1");
    /* The same threads, without a step: a slow order is not to be blamed on a sibling. */
    for (int i = 0; i < 2; i++) {
        tnd_stats_set(&world->threads[i]->slot_wait, SECOND / 10);
        tnd_stats_set(&world->threads[i]->order_wait, 8 * SECOND);
    }
    tnd_stats_set(&server->memory_stalled, 0);
    world->now_ns -= 10 * (int64_t)SECOND;
    assert_int_equal(diagnose(world).cause, WATCH_CAUSE_PROCESSORS);
}

/* Some threads, such as the one of the heartbeat, lacked processors for a while. */
static void
slow_storage_comes_before_a_small_lack_of_processors(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);

    tnd_stats_set(&world->read->source, 1);
    tnd_stats_set(&world->read->busy, 18 * SECOND);
    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 9 * SECOND);
    tnd_stats_set(&server->cpu, SECOND / 10);
    tnd_stats_set(&server->run_delay, 3 * SECOND);
    assert_int_equal(diagnose(world).cause, WATCH_CAUSE_SOURCE);
}

static void
a_trainer_that_is_not_scheduled_at_the_moment_has_waited(void **state)
{
    struct world *world = *state;

    tnd_stats_set(&world->readers[0]->wait, 9 * SECOND);
    tnd_stats_set(&world->readers[0]->waiting, SECOND / 10);
    assert_int_equal(diagnose(world).level, WATCH_WAITING);
    tnd_stats_set(&world->readers[0]->waiting, 9 * SECOND);
    world->now_ns -= 10 * (int64_t)SECOND;
    assert_int_equal(diagnose(world).level, WATCH_FINE);
}

static void
a_quota_of_processor_time_is_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 5 * SECOND);
    tnd_stats_set(&stats_server(world->stats)->throttled, 4 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_PROCESSORS);
    assert_string_equal(diagnosis.culprit, "quota");
    says(&diagnosis, "the quota of its cgroup stops the server 40% of the time");
}

static void
a_trainer_that_stops_now_and_then_is_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 4 * SECOND);
    tnd_stats_set(&world->readers[1]->paused, 4 * SECOND);
    tnd_stats_set(&world->readers[1]->pauses, 1);
    assert_int_not_equal(diagnose(world).cause, WATCH_CAUSE_TRAINER); /* once is no habit */
    tnd_stats_set(&world->readers[1]->pauses, 2);
    tnd_stats_set(&world->readers[1]->pause_every, 100);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_TRAINER);
    assert_string_equal(diagnosis.culprit, "1");
    says(&diagnosis, "which stops for 2.0 s every 100 batches");
    tnd_stats_set(&world->readers[1]->paused, SECOND); /* too little for that wait */
    assert_int_not_equal(diagnose(world).cause, WATCH_CAUSE_TRAINER);
}

static void
a_lack_of_memory_is_told(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->wait, 5 * SECOND);
    tnd_stats_set(&world->parse->busy, 9 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 9 * SECOND);
    tnd_stats_set(&server->memory_stalled, 4 * SECOND);
    tnd_stats_set(&server->major_faults, 12345);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_MEMORY);
    says(&diagnosis, "waited for it 40% of the time, and the server read 12345 pages again");
    tnd_stats_set(&server->memory_stalled, SECOND);
    assert_string_equal(diagnose(world).culprit, "parse_example");
}

static void
many_bad_rows_are_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->stream->rows, 9700);
    tnd_stats_set(&world->stream->rows_skipped, 300);
    assert_int_equal(diagnose(world).level, WATCH_FINE);
    tnd_stats_set(&world->stream->rows_skipped, 9700);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WARNING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_DATA);
    says(&diagnosis, "50% of the rows of stream 'train' are bad and left out");
    tnd_stats_set(&world->readers[0]->wait, 20 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_non_null(strstr(diagnosis.advice, "Besides, 50% of the rows"));
}

/* The share of such values among all until the first look, and since. */
static struct watch_diagnosis
judge_share(struct world *world, _Atomic uint64_t *all, _Atomic uint64_t *such, uint64_t before,
            uint64_t of_late)
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;

    tnd_stats_set(all, 100000);
    tnd_stats_set(such, before * 1000);
    watch_snapshot_close(&world->before);
    assert_int_equal(tnd_stats_open_server(world->socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, &world->before), TUNDISH_OK);
    tnd_stats_close(&file);
    tnd_stats_add(all, 1000);
    tnd_stats_add(such, of_late * 10);
    return diagnose(world);
}

static struct watch_diagnosis
judge_unknown(void **state, uint64_t before, uint64_t of_late)
{
    struct world *world = *state;
    struct tnd_stats_vocabulary *values =
        stats_add(world->stats, TND_STATS_KIND_vocabulary, "stream=\"train\",vocabulary=\"C7\"");

    return judge_share(world, &values->lookups, &values->out_of_vocabulary, before, of_late);
}

static struct tnd_stats_column *
add_column(struct world *world)
{
    return stats_add(world->stats, TND_STATS_KIND_column, "stream=\"train\",column=\"price\"");
}

static void
a_column_that_has_far_more_nan_than_before_is_named(void **state)
{
    struct tnd_stats_column *column = add_column(*state);
    struct watch_diagnosis diagnosis = judge_share(*state, &column->values, &column->nan, 0, 30);

    assert_int_equal(diagnosis.level, WATCH_WARNING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_DATA);
    says(&diagnosis, "30% of the values in column 'price' are NaN, 0% before");
    assert_non_null(strstr(diagnosis.advice, "tundish explain"));
}

static void
a_column_that_has_far_more_infinities_is_named(void **state)
{
    struct tnd_stats_column *column = add_column(*state);
    struct watch_diagnosis diagnosis =
        judge_share(*state, &column->values, &column->infinite, 1, 40);

    says(&diagnosis, "40% of the values in column 'price' are infinite, 1% before");
}

static void
a_column_that_always_had_nan_is_not(void **state)
{
    struct tnd_stats_column *column = add_column(*state);

    assert_int_equal(judge_share(*state, &column->values, &column->nan, 50, 55).level, WATCH_FINE);
}

static void
a_vocabulary_that_lacks_far_more_than_before_is_named(void **state)
{
    struct watch_diagnosis diagnosis = judge_unknown(state, 3, 60);

    assert_int_equal(diagnosis.level, WATCH_WARNING);
    says(&diagnosis, "60% of the values looked up in vocabulary 'C7' are not in it, 3% before");
}

static void
a_vocabulary_that_always_lacked_much_is_not(void **state)
{
    assert_int_equal(judge_unknown(state, 55, 60).level, WATCH_FINE);
}

static void
a_failed_stream_gives_its_error(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_log(TND_LOG_ERROR, "stream", "part-3.tfrecord: no space left on device");
    tnd_stats_set(&world->stream->failed, 1);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FAILED);
    says(&diagnosis, "part-3.tfrecord: no space left on device");
}

static void
a_full_disk_is_named_by_what_it_stopped(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_fail_errno(ENOSPC, "write rows.cache");
    tnd_log(TND_LOG_ERROR, "stream", "train: step 7: %s", tnd_error_text());
    tnd_stats_set(&world->stream->failed, 1);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FAILED);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_DISK);
    says(&diagnosis, "a disk of node ");
    says(&diagnosis, "write rows.cache: No space left on device");
}

static void
a_full_disk_that_stopped_nothing_is_told_all_the_same(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;
    uint64_t before = tnd_status_disk_full_count();

    tnd_fail_errno(ENOSPC, "write");
    tnd_fail_errno(EDQUOT, "write");
    tnd_fail_errno(EIO, "write");
    assert_int_equal(tnd_status_disk_full_count(), before + 2);
    tnd_stats_set(&stats_server(world->stats)->disk_full, 2);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_FINE);
    assert_non_null(strstr(diagnosis.advice, "is full: 2 writes failed"));
}

static void
a_disk_that_has_room_again_is_not_full(void **state)
{
    struct world *world = *state;
    struct tnd_stats_server *server = stats_server(world->stats);

    tnd_fail_errno(ENOSPC, "write");
    assert_int_equal(tnd_status_disk_full_ns(), world->now_ns);
    world->now_ns += 40 * (int64_t)SECOND;
    stats_show_process(world->stats);
    assert_int_equal(tnd_stats_get(&server->disk_full_age), 40 * SECOND);
    tnd_stats_set(&server->heartbeat, 0);
    assert_non_null(strstr(diagnose(world).advice, "is full: "));
    tnd_stats_set(&server->disk_full_age, 61 * SECOND);
    assert_null(strstr(diagnose(world).advice, "is full: "));
}

/* All slots of a queue are held, or the shards that are left are with others. */
static void
a_reader_that_waits_for_what_another_has_is_told_of_its_process(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->stream->awaits_readers, 1);
    tnd_stats_set(&world->readers[0]->wait, 10 * SECOND);
    tnd_stats_set(&world->readers[0]->waiting, 10 * SECOND);
    tnd_stats_set(&world->readers[0]->taken, 20);
    tnd_stats_set(&world->readers[0]->released, 20);
    tnd_stats_set(&world->readers[1]->process, 4712);
    tnd_stats_set(&world->readers[1]->silent, 9 * SECOND);
    for (int i = 0; i < 2; i++)
        tnd_stats_set(&world->threads[i]->busy, 97 * SECOND / 10);
    tnd_stats_set(&world->lookup->busy, 12 * SECOND);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_WAITING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_TRAINER);
    assert_string_equal(diagnosis.culprit, "1");
    says(&diagnosis, "waits 100% of its time for what other readers have: process 4712 holds 2 "
                     "batches and has not taken or returned any for 9 s");
    tnd_stats_set(&world->readers[1]->silent, 10 * SECOND);
    assert_int_equal(diagnose(world).level, WATCH_STUCK);
}

static void
a_server_that_stops_says_who_has_batches_left(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    stats_show_state(world->stats, TND_STATS_DRAINING);
    tnd_stats_set(&world->readers[0]->released, 17);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STOPPING);
    assert_int_equal(diagnosis.cause, WATCH_CAUSE_TRAINER);
    assert_string_equal(diagnosis.culprit, "1");
    says(&diagnosis,
         " is stopping: batches of stream 'train' are still to be taken or returned, 10 "
         "by replica 1 (process 4711), 3 by replica 0 (process 4711)");
    tnd_stats_set(&world->readers[0]->released, 20);
    tnd_stats_set(&world->readers[1]->attached, 0);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_STOPPING);
    says(&diagnosis, " is stopping: no trainer holds batches of stream 'train'");
    assert_string_equal(diagnosis.advice, "");
}

static void
a_server_that_stops_counts_trainers_beyond_three(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    stats_show_state(world->stats, TND_STATS_DRAINING);
    for (unsigned i = 2; i < 6; i++) {
        char labels[64];
        struct tnd_stats_reader *reader;

        snprintf(labels, sizeof labels, "stream=\"train\",group=\"b\",replica=\"%u\"", i);
        reader = stats_add(world->stats, TND_STATS_KIND_reader, labels);
        tnd_stats_set(&reader->attached, 1);
        tnd_stats_set(&reader->published, i);
    }
    tnd_stats_set(&world->readers[0]->released, 20);
    diagnosis = diagnose(world);
    says(&diagnosis,
         ", 10 by replica 1 (process 4711), 5 by replica 5 of group b (process 0), 4 by "
         "replica 4 of group b (process 0), and more by 2 others");
}

static void
of_two_that_wait_the_longer_is_worse(void **state)
{
    const struct watch_diagnosis some = { .level = WATCH_WAITING, .wait_share = 0.1 };
    const struct watch_diagnosis more = { .level = WATCH_WAITING, .wait_share = 0.3 };
    const struct watch_diagnosis gone = { .level = WATCH_GONE };

    (void)state;
    assert_true(watch_is_worse(&more, &some));
    assert_false(watch_is_worse(&some, &more));
    assert_true(watch_is_worse(&gone, &more));
}

static void
nobody_reading_is_idle(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&world->readers[0]->attached, 0);
    tnd_stats_set(&world->readers[1]->attached, 0);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_IDLE);
    says(&diagnosis, "no trainer reads stream 'train'");
}

static void
a_hung_server_is_told(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    tnd_stats_set(&stats_server(world->stats)->heartbeat, (uint64_t)world->now_ns);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_GONE);
    says(&diagnosis, "has not responded for 10 s");
}

static void
a_stopped_server_has_finished(void **state)
{
    struct world *world = *state;
    struct watch_diagnosis diagnosis;

    stats_show_state(world->stats, TND_STATS_STOPPED);
    diagnosis = diagnose(world);
    assert_int_equal(diagnosis.level, WATCH_IDLE);
    says(&diagnosis, "was stopped normally and has finished");
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

TEST_FILE(test_diagnosis)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(trainers_are_the_limit),
        IN_WORLD(a_slow_stage_is_named),
        IN_WORLD(helpers_are_proposed_where_there_are_none),
        IN_WORLD(one_more_helper_is_proposed_where_they_are_busy),
        IN_WORLD(helpers_with_time_left_are_told_so),
        IN_WORLD(lost_helpers_are_counted),
        IN_WORLD(helpers_make_no_more_than_all_rows),
        IN_WORLD(slow_reading_is_named_by_its_source),
        IN_WORLD(slow_storage_is_told_from_costly_reading),
        IN_WORLD(an_order_that_waits_for_its_files_is_told_so),
        IN_WORLD(a_run_that_does_not_end_is_named),
        IN_WORLD(an_order_that_does_not_come_back_is_told),
        IN_WORLD(a_share_is_at_most_all),
        IN_WORLD(other_nodes_are_named_by_the_time_that_they_are_waited_for),
        IN_WORLD(python_is_named_by_how_busy_its_interpreters_are),
        IN_WORLD(a_store_is_named_by_the_threads_that_wait_for_it),
        IN_WORLD(a_store_that_throttles_is_told_from_a_slow_one),
        IN_WORLD(an_object_that_does_not_come_is_named),
        IN_WORLD(a_slow_order_is_named),
        IN_WORLD(a_program_that_writes_slowly_is_named),
        IN_WORLD(a_trainer_that_is_not_there_is_named),
        IN_WORLD(a_group_that_is_not_there_is_named),
        IN_WORLD(a_slow_sibling_is_named),
        IN_WORLD(a_slow_sibling_is_named_where_it_fills_all_lanes),
        IN_WORLD(a_slow_sibling_whose_step_outlasts_the_look_is_named),
        IN_WORLD(of_a_slow_job_detach_is_named),
        IN_WORLD(groups_that_the_first_batch_waits_for_are_told),
        IN_WORLD(a_stuck_trainer_is_named),
        IN_WORLD(a_trainer_stopped_while_it_waits_is_named),
        IN_WORLD(before_its_first_step_a_trainer_has_more_time),
        IN_WORLD(a_silent_trainer_whose_lane_has_room_holds_nobody_up),
        IN_WORLD(a_trainer_that_keeps_batches_is_told_so),
        IN_WORLD(a_trainer_that_waits_for_itself_is_told_so),
        IN_WORLD(a_trainer_that_is_silent_while_nobody_waits_is_told),
        IN_WORLD(a_server_without_processors_is_told),
        IN_WORLD(trainers_that_have_all_died_are_told),
        IN_WORLD(a_lane_that_was_full_comes_before_processors),
        IN_WORLD(slow_storage_comes_before_a_small_lack_of_processors),
        IN_WORLD(a_trainer_that_is_not_scheduled_at_the_moment_has_waited),
        IN_WORLD(a_quota_of_processor_time_is_told),
        IN_WORLD(a_trainer_that_stops_now_and_then_is_told),
        IN_WORLD(a_lack_of_memory_is_told),
        IN_WORLD(many_bad_rows_are_told),
        IN_WORLD(a_vocabulary_that_lacks_far_more_than_before_is_named),
        IN_WORLD(a_vocabulary_that_always_lacked_much_is_not),
        IN_WORLD(a_column_that_has_far_more_nan_than_before_is_named),
        IN_WORLD(a_column_that_has_far_more_infinities_is_named),
        IN_WORLD(a_column_that_always_had_nan_is_not),
        IN_WORLD(a_failed_stream_gives_its_error),
        IN_WORLD(a_full_disk_is_named_by_what_it_stopped),
        IN_WORLD(a_full_disk_that_stopped_nothing_is_told_all_the_same),
        IN_WORLD(a_disk_that_has_room_again_is_not_full),
        IN_WORLD(a_reader_that_waits_for_what_another_has_is_told_of_its_process),
        IN_WORLD(a_server_that_stops_says_who_has_batches_left),
        IN_WORLD(a_server_that_stops_counts_trainers_beyond_three),
        cmocka_unit_test(of_two_that_wait_the_longer_is_worse),
        IN_WORLD(nobody_reading_is_idle),
        IN_WORLD(a_hung_server_is_told),
        IN_WORLD(a_stopped_server_has_finished),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
