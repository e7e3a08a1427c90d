/* test_nodes.c - one stream on several nodes: what each node's trainers get, and what they hear of
 * the other nodes. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "core/memory.h"
#include "session/nodes/agreement.h"
#include "session/nodes/session_level.h"
#include "session/served.h"
#include "session/session_private.h"
#include "unit/cluster.h"
#include "unit/test_file.h"

enum { TEXTS = 8, TEXT_BYTES = 256 };

/* A node: its server, and a thread that reads there what is expected. */
struct node_of_job {
    struct served_options options;
    struct served *served;
    tundish_status status;
    char text[512];
    tundish_reader *reader;
    const char *const *expected;
    char found[TEXTS][TEXT_BYTES];
    pthread_t thread;
};

struct job_of_nodes {
    uint32_t size;
    struct link *links[CLUSTER_NODES];
    struct node_of_job nodes[CLUSTER_NODES];
};

static void
in_all(struct job_of_nodes *job, void *(*run)(void *node))
{
    for (uint32_t i = 0; i < job->size; i++)
        assert_int_equal(pthread_create(&job->nodes[i].thread, NULL, run, &job->nodes[i]), 0);
    for (uint32_t i = 0; i < job->size; i++)
        pthread_join(job->nodes[i].thread, NULL);
}

static void *
serve(void *argument)
{
    struct node_of_job *node = argument;

    node->status = served_try(&node->options, &node->served);
    snprintf(node->text, sizeof node->text, "%s",
             node->status != TUNDISH_OK ? tnd_error_text() : "");
    return NULL;
}

static void
try_job(uint32_t size, const struct served_options *options, struct job_of_nodes *ret_job)
{
    *ret_job = (struct job_of_nodes){ .size = size };
    cluster_open(size, ret_job->links);
    for (uint32_t i = 0; i < size; i++) {
        ret_job->nodes[i].options = *options;
        ret_job->nodes[i].options.link = ret_job->links[i];
    }
}

static void
open_job(struct job_of_nodes *job)
{
    in_all(job, serve);
    for (uint32_t i = 0; i < job->size; i++) {
        if (job->nodes[i].status != TUNDISH_OK)
            fail_msg("node %u: %s", i, job->nodes[i].text);
        job->nodes[i].reader = served_reader(job->nodes[i].served, &(struct wanted){ 0 });
    }
}

static void
start_job(uint32_t size, const struct served_options *options, struct job_of_nodes *ret_job)
{
    try_job(size, options, ret_job);
    open_job(ret_job);
}

static void
close_job(struct job_of_nodes *job)
{
    for (uint32_t i = 0; i < job->size; i++) {
        tundish_close(job->nodes[i].reader);
        served_close(job->nodes[i].served);
    }
    cluster_close(job->size, job->links);
}

/* Nodes wait for each other, so each is read by a thread of its own. No assertion: those belong to
 * the main thread. */
static void *
read_here(void *argument)
{
    struct node_of_job *node = argument;

    for (int i = 0; i < TEXTS && node->expected[i] != NULL; i++) {
        const tundish_batch *batch;
        tundish_status status = tundish_next(node->reader, PATIENCE_NS, &batch);

        if (status == TUNDISH_OK) {
            served_write_text(batch, node->found[i], TEXT_BYTES);
            tundish_release(node->reader, batch);
        } else {
            snprintf(node->found[i], TEXT_BYTES, "%s", tundish_status_name(status));
        }
    }
    return NULL;
}

/* "..." stands for anything. */
static void
assert_found(const char *found, const char *expected)
{
    const char *gap = strstr(expected, "...");
    bool fits = gap == NULL ? strcmp(found, expected) == 0
                            : strncmp(found, expected, (size_t)(gap - expected)) == 0 &&
                                  strstr(found, gap + 3) != NULL;

    if (!fits)
        fail_msg("'%s' instead of '%s'", found, expected);
}

static void
expect_all(struct job_of_nodes *job, const char *const texts[][TEXTS])
{
    for (uint32_t i = 0; i < job->size; i++)
        job->nodes[i].expected = texts[i];
    in_all(job, read_here);
    for (uint32_t i = 0; i < job->size; i++)
        for (int k = 0; k < TEXTS && texts[i][k] != NULL; k++)
            assert_found(job->nodes[i].found[k], texts[i][k]);
}

/* Batches and ends of epochs, then this: a node does not hear at once of what happens on others. */
static void
expect_in_the_end(tundish_reader *reader, tundish_status expected, const char *words)
{
    const tundish_batch *batch = NULL;
    tundish_status status;

    while ((status = tundish_next(reader, PATIENCE_NS, &batch)) == TUNDISH_OK ||
           status == TUNDISH_END)
        if (status == TUNDISH_OK)
            tundish_release(reader, batch);
    assert_int_equal(status, expected);
    if (strstr(tundish_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tundish_last_error());
}

/* The same for two groups. They read in turns, since one that does not read holds up the other. */
static void
expect_of_both_in_the_end(tundish_reader *const readers[2], tundish_status expected,
                          const char *words)
{
    bool has_ended[2] = { false, false };

    for (int i = 0; !has_ended[0] || !has_ended[1]; i = 1 - i) {
        const tundish_batch *batch = NULL;
        tundish_status status;

        if (has_ended[i])
            continue;
        status = tundish_next(readers[i], 1000000, &batch);
        if (status == TUNDISH_OK)
            tundish_release(readers[i], batch);
        if (status == TUNDISH_OK || status == TUNDISH_END || status == TUNDISH_E_TIMEOUT)
            continue;
        assert_int_equal(status, expected);
        if (strstr(tundish_last_error(), words) == NULL)
            fail_msg("'%s' is not in: %s", words, tundish_last_error());
        has_ended[i] = true;
    }
}

static void
write_files(void)
{
    served_write("rows-a.txt", "1\n2\n3\n4\n5\n");
    served_write("rows-b.txt", "6\n7\n");
}

#define FILES                                                                                      \
    "{list_files: {file_pattern: 'rows-*.txt', shuffle: false}}, "                                 \
    "{interleave: {dataset: [text_line], cycle_length: 1}}, "

static void
each_node_gets_its_part_of_every_step(void **state)
{
    static const struct {
        struct served_options options;
        const char *texts[2][TEXTS];
    } cases[] = {
        /* Under DATA all know the number of steps. */
        { { .stages = "{range: 10}, {batch: 4}", .deliver = "epochs: 1" },
          { { "0.0 value=0,1", "0.1 value=4,5", "0.2 value=8", "END", "END_OF_STREAM" },
            { "0.0 value=2,3", "0.1 value=6,7", "0.2 value=9", "END", "END_OF_STREAM" } } },
        /* By file they tell each other; the one with fewer delivers empty batches. */
        { { .stages = FILES "{batch: 4}",
            .distribute = "auto_shard: FILE",
            .deliver = "epochs: 1" },
          { { "0.0 value=1,2", "0.1 value=3,4", "0.2 value=5", "0.3 value=", "END",
              "END_OF_STREAM" },
            { "0.0 value=6", "0.1 value=7", "0.2 value=", "0.3 value=", "END",
              "END_OF_STREAM" } } },
        { { .stages = FILES "{batch: 4}",
            .distribute = "auto_shard: FILE, drop_remainder_step: true",
            .deliver = "epochs: 1" },
          { { "0.0 value=1,2", "0.1 value=3,4", "END", "END_OF_STREAM" },
            { "0.0 value=6", "0.1 value=7", "END", "END_OF_STREAM" } } },
    };

    (void)state;
    write_files();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job_of_nodes job;

        start_job(2, &cases[i].options, &job);
        expect_all(&job, cases[i].texts);
        close_job(&job);
    }
}

static bool
never(struct link *link, void *context)
{
    (void)link;
    (void)context;
    return false;
}

static void
a_bad_row_of_one_node_is_the_error_of_all(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{string_to_number: {out_type: int64}}, {batch: 4}",
        .distribute = "auto_shard: FILE",
    };
    struct job_of_nodes job;

    (void)state;
    write_files();
    served_write("rows-b.txt", "seven\n");
    start_job(2, &options, &job);
    expect_in_the_end(job.nodes[0].reader, TUNDISH_E_DATA, "(rank 1): ");
    expect_in_the_end(job.nodes[1].reader, TUNDISH_E_DATA, "seven");
    close_job(&job);
}

/* Node 0's trainers come late: none of its threads runs when node 1 tells of its bad row. */
static void
a_bad_row_told_before_a_node_runs_is_its_error(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{string_to_number: {out_type: int64}}, {batch: 4}",
        .distribute = "auto_shard: FILE, groups: 2",
    };
    const struct link_key error = { .topic = LINK_ERROR };
    tundish_reader *readers[2][2];
    struct job_of_nodes job;
    uint8_t *bytes;
    size_t byte_count;

    (void)state;
    write_files();
    served_write("rows-b.txt", "seven\n");
    try_job(2, &options, &job);
    in_all(&job, serve);
    for (int i = 1; i >= 0; i--) {
        readers[i][0] = served_reader(job.nodes[i].served, &(struct wanted){ .group = "a" });
        readers[i][1] = served_reader(job.nodes[i].served, &(struct wanted){ .group = "b" });
        expect_of_both_in_the_end(readers[i], TUNDISH_E_DATA, "seven");
        while (!link_find(job.links[0], &error, 1, &bytes, &byte_count))
            (void)link_wait(job.links[0], never, NULL, 1000000, NULL);
        free(bytes);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            tundish_close(readers[i][k]);
    close_job(&job);
}

enum { MANY_THREADS = 64 }; /* for which a session wants 2 GiB of address space */

/* Address space for all that a server needs, but for so many threads. */
static void
leave_no_room_for_many_threads(struct rlimit *ret_before)
{
    const uint64_t room_bytes = UINT64_C(512) << 20;
    uint64_t pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%" SCNu64, &pages), 1);
    (void)fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, ret_before), 0);
    limit = *ret_before;
    limit.rlim_cur = pages * (uint64_t)sysconf(_SC_PAGESIZE) + room_bytes;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

/* A reader is let in before its group counts as joined. */
static void
wait_until_begun(struct session *session)
{
    bool has_begun = false;

    while (!has_begun) {
        tnd_lock_take(&session->control.lock);
        has_begun = !session->control.barrier.closed;
        tnd_lock_release(&session->control.lock);
    }
}

/* Each node has one replica of the group. */
static void
a_replica_without_a_place_is_not_read_beside_one_of_another_node(void **state)
{
    static const struct served_options options = { .stages = "{range: 1000000000}, {batch: 4}",
                                                   .distribute = "auto_shard: DATA",
                                                   .deliver = "slots: 4" };
    struct job_of_nodes job;
    char token[4096];
    const char *text;

    (void)state;
    start_job(2, &options, &job);
    for (int i = 0; i < 3; i++)
        assert_int_equal(served_next(job.nodes[0].reader)[0], '0');
    strcpy(token, served_token(job.nodes[0].reader));
    close_job(&job);
    try_job(2, &options, &job);
    in_all(&job, serve);
    job.nodes[1].reader = served_reader(job.nodes[1].served, &(struct wanted){ 0 });
    job.nodes[0].reader = served_reader(job.nodes[0].served, &(struct wanted){ .token = token });
    while ((text = served_next(job.nodes[1].reader))[0] == '0')
        ;
    assert_string_equal(text, "E_PLACE");
    assert_non_null(strstr(tundish_last_error(), "replica 0 of group \"default\" on "));
    assert_non_null(strstr(tundish_last_error(), "epoch 0, step 3, and replica 1 has none"));
    tundish_close(job.nodes[1].reader);
    job.nodes[1].reader = served_reader(job.nodes[1].served, &(struct wanted){ 0 });
    assert_string_equal(served_next(job.nodes[1].reader), "E_PLACE");
    tundish_close(job.nodes[1].reader);
    job.nodes[1].reader = served_reader(job.nodes[1].served, &(struct wanted){ .token = token });
    for (int i = 0; i < 2; i++)
        assert_int_equal(strncmp(served_next(job.nodes[i].reader), "0.3 ", 4), 0);
    close_job(&job);
}

/* Where nodes need one another at the end of an epoch. */
static void
threads_that_do_not_start_are_the_error_of_all(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{string_to_number: {out_type: int64}}, {batch: 4}",
        .distribute = "auto_shard: FILE, groups: 2",
        .threads = MANY_THREADS,
    };
    tundish_reader *readers[2][2];
    struct job_of_nodes job;
    struct rlimit before;

    (void)state;
    write_files();
    try_job(2, &options, &job);
    in_all(&job, serve);
    readers[1][0] = served_reader(job.nodes[1].served, &(struct wanted){ .group = "a" });
    readers[1][1] = served_reader(job.nodes[1].served, &(struct wanted){ .group = "b" });
    readers[0][0] = served_reader(job.nodes[0].served, &(struct wanted){ .group = "a" });
    wait_until_begun(job.nodes[1].served->session);
    leave_no_room_for_many_threads(&before);
    readers[0][1] = served_reader(job.nodes[0].served, &(struct wanted){ .group = "b" });
    expect_in_the_end(readers[0][0], TUNDISH_E_SYSTEM, "threads need");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    expect_in_the_end(readers[1][0], TUNDISH_E_SYSTEM, "(rank 0): ");
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            tundish_close(readers[i][k]);
    close_job(&job);
}

static void
threads_that_do_not_start_are_the_error_of_a_node_that_is_alone(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 4}",
                                                   .distribute = "groups: 2",
                                                   .threads = MANY_THREADS };
    struct served *served = served_open(&options);
    tundish_reader *one = served_reader(served, &(struct wanted){ .group = "a" }), *other;
    struct rlimit before;

    (void)state;
    leave_no_room_for_many_threads(&before);
    other = served_reader(served, &(struct wanted){ .group = "b" });
    expect_in_the_end(one, TUNDISH_E_SYSTEM, "threads need");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    tundish_close(one);
    tundish_close(other);
    served_close(served);
}

/* More steps than anybody reads. */
static const struct served_options LONG = { .stages = "{range: 10000}, {batch: 2}",
                                            .deliver = "slots: 3" };

static void
an_epoch_ends_early_at_the_same_step_on_all_nodes(void **state)
{
    struct job_of_nodes job;

    (void)state;
    start_job(2, &LONG, &job);
    expect_all(
        &job, (const char *const[2][TEXTS]){ { "0.0 value=0", "0.1 value=2" }, { "0.0 value=1" } });
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_restart(job.nodes[i].reader), TUNDISH_OK);
    expect_all(&job, (const char *const[2][TEXTS]){ { "1.0 value=0", "1.1 value=2" },
                                                    { "1.0 value=1", "1.1 value=3" } });
    close_job(&job);
}

/* The job at new servers, each node's trainer at its place. */
static void
go_on(struct job_of_nodes *job, const struct served_options *options, char *tokens[2])
{
    close_job(job);
    try_job(2, options, job);
    in_all(job, serve);
    for (int i = 0; i < 2; i++) {
        job->nodes[i].reader =
            served_reader(job->nodes[i].served, &(struct wanted){ .token = tokens[i] });
        free(tokens[i]);
    }
}

/* The second node's trainer goes on from a checkpoint before the cut. */
static void
epochs_that_others_have_left_are_cut(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 10}, {repeat: {}}, {batch: 2}",
        .distribute = "auto_shard: DATA",
        .deliver = "slots: 3",
    };
    struct job_of_nodes job;
    char *tokens[2];

    (void)state;
    start_job(2, &options, &job);
    expect_all(
        &job, (const char *const[2][TEXTS]){ { "0.0 value=0", "0.1 value=2" }, { "0.0 value=1" } });
    tokens[1] = tnd_strdup(served_token(job.nodes[1].reader));
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_restart(job.nodes[i].reader), TUNDISH_OK);
    expect_all(
        &job, (const char *const[2][TEXTS]){ { "1.0 value=0", "1.1 value=2" }, { "1.0 value=1" } });
    tokens[0] = tnd_strdup(served_token(job.nodes[0].reader));
    go_on(&job, &options, tokens);
    expect_all(&job, (const char *const[2][TEXTS]){ { "1.2 value=4" }, { "0.1 value=3" } });
    assert_int_equal(tundish_restart(job.nodes[1].reader), TUNDISH_OK);
    expect_all(&job, (const char *const[2][TEXTS]){ { "1.3 value=6" }, { "1.0 value=1" } });
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_restart(job.nodes[i].reader), TUNDISH_OK);
    expect_all(&job, (const char *const[2][TEXTS]){ { "2.0 value=0" }, { "2.0 value=1" } });
    close_job(&job);
}

static uint32_t
bit_of(const char *text)
{
    int value = -1;

    assert_int_equal(sscanf(text, "1.%*d value=%d", &value), 1);
    assert_in_range(value, 0, 9);
    return UINT32_C(1) << value;
}

/* An epoch is shuffled by how often the rows were gone through before, so by where the epoch before
 * was cut: for the second node that is elsewhere, the second time. */
static void
all_nodes_deal_one_order_after_a_cut(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 10}, {shuffle: {buffer_size: 10}}, {repeat: {}}, {batch: 2}",
        .distribute = "auto_shard: DATA",
        .deliver = "slots: 3",
        .seed = 7,
    };
    struct job_of_nodes job;
    uint32_t seen = 0;
    char *tokens[2];

    (void)state;
    start_job(2, &options, &job);
    expect_all(&job, (const char *const[2][TEXTS]){ { "0.0..." }, { "0.0..." } });
    tokens[1] = tnd_strdup(served_token(job.nodes[1].reader));
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_restart(job.nodes[i].reader), TUNDISH_OK);
    expect_all(&job, (const char *const[2][TEXTS]){ { "1.0...", "1.1..." }, { "1.0..." } });
    seen |= bit_of(job.nodes[0].found[0]) | bit_of(job.nodes[0].found[1]);
    tokens[0] = tnd_strdup(served_token(job.nodes[0].reader));
    go_on(&job, &options, tokens);
    expect_all(&job, (const char *const[2][TEXTS]){ { "1.2..." }, { "0.1..." } });
    seen |= bit_of(job.nodes[0].found[0]);
    assert_int_equal(tundish_restart(job.nodes[1].reader), TUNDISH_OK);
    expect_all(&job,
               (const char *const[2][TEXTS]){
                   { "1.3...", "1.4..." }, { "1.0...", "1.1...", "1.2...", "1.3...", "1.4..." } });
    for (int k = 0; k < 2; k++)
        seen |= bit_of(job.nodes[0].found[k]);
    for (int k = 0; k < 5; k++)
        seen |= bit_of(job.nodes[1].found[k]);
    assert_int_equal(seen, 0x3ff);
    close_job(&job);
}

static void
the_failure_of_the_job_ends_the_stream(void **state)
{
    struct job_of_nodes job;

    (void)state;
    start_job(2, &LONG, &job);
    link_fail(job.links[1], "the cable was pulled");
    expect_in_the_end(job.nodes[1].reader, TUNDISH_E_PEER_LOST, "the cable was pulled");
    for (int i = 0; i < 2; i++) {
        tundish_close(job.nodes[i].reader);
        served_close(job.nodes[i].served);
    }
    link_close(job.links[1]);
    link_close(job.links[0]);
}

static void
a_group_that_ends_on_one_node_ends_on_all(void **state)
{
    static const struct served_options options = { .stages = "{range: 10000}, {batch: 2}",
                                                   .deliver = "slots: 3, rejoin: 1ms" };
    struct job_of_nodes job;

    (void)state;
    start_job(2, &options, &job);
    expect_all(&job, (const char *const[2][TEXTS]){ { "0.0 value=0" }, { "0.0 value=1" } });
    tundish_close(job.nodes[1].reader);
    job.nodes[1].reader = NULL;
    expect_in_the_end(job.nodes[0].reader, TUNDISH_E_PEER_LOST, "\"default\" has ended on node ");
    close_job(&job);
}

/* Files shuffled by each node's own seed: a place holds the state of both. */
static void
a_place_of_one_node_serves_all(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{shuffle: {buffer_size: 4, seed: 5}}, {batch: 2}",
        .distribute = "auto_shard: FILE",
        .deliver = "epochs: 2, slots: 4",
    };
    struct job_of_nodes job;
    char first[2][TEXT_BYTES], *token;

    (void)state;
    write_files();
    start_job(2, &options, &job);
    /* Into the second epoch, whose state is not that of the first. */
    expect_all(&job,
               (const char *const[2][TEXTS]){
                   { "0....", "0....", "0....", "0....", "0....", "0....", "END", "1.0..." },
                   { "0....", "0....", "0....", "0....", "0....", "0....", "END", "1.0..." } });
    for (int i = 0; i < 2; i++)
        strcpy(first[i], job.nodes[i].found[7]);
    close_job(&job);
    start_job(2, &options, &job);
    expect_all(&job, (const char *const[2][TEXTS]){
                         { "0....", "0....", "0....", "0....", "0....", "0....", "END" },
                         { "0....", "0....", "0....", "0....", "0....", "0....", "END" } });
    token = tnd_strdup(served_token(job.nodes[1].reader));
    close_job(&job);
    try_job(2, &options, &job);
    in_all(&job, serve);
    for (int i = 0; i < 2; i++)
        job.nodes[i].reader =
            served_reader(job.nodes[i].served, &(struct wanted){ .token = token });
    expect_all(&job, (const char *const[2][TEXTS]){ { first[0] }, { first[1] } });
    close_job(&job);
    free(token);
}

static const char *
root_of(int node)
{
    static char roots[4][96];

    snprintf(roots[node], sizeof roots[node], "%s/node-%d", served_folder, node);
    (void)mkdir(roots[node], 0700);
    return roots[node];
}

static void
nodes_that_serve_different_things_are_told_which(void **state)
{
    static const struct served_options options = { .stages = FILES "{batch: 4}" };
    struct job_of_nodes job;

    (void)state;
    for (int i = 0; i < 2; i++)
        (void)root_of(i);
    served_write("node-0/rows-a.txt", "1\n");
    served_write("node-1/rows-a.txt", "2\n");
    try_job(2, &options, &job);
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.root = root_of(i);
    in_all(&job, serve);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.nodes[i].status, TUNDISH_E_ARGUMENT);
        assert_found(job.nodes[i].text, "...rows-a.txt differs on node ");
        assert_string_equal(job.nodes[i].text, job.nodes[0].text);
    }
    cluster_close(2, job.links);
    try_job(2, &options, &job);
    job.nodes[0].options.stages = FILES "{batch: 2}";
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.root = root_of(0);
    in_all(&job, serve);
    for (int i = 0; i < 2; i++)
        assert_found(job.nodes[i].text, "stream 's' (stages, parameters and seeds) differs...");
    cluster_close(2, job.links);
}

static void
files_that_are_local_are_read_by_all(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{batch: 4}",
        .distribute = "files: local, auto_shard: DATA",
        .deliver = "epochs: 1",
    };
    static const char *const texts[2][TEXTS] = {
        { "0.0 value=1,2", "0.1 value=5,6", "END", "END_OF_STREAM" },
        { "0.0 value=3,4", "0.1 value=7", "END", "END_OF_STREAM" },
    };
    struct job_of_nodes job;

    (void)state;
    for (int i = 0; i < 2; i++)
        (void)root_of(i);
    served_write("node-0/rows-a.txt", "1\n2\n3\n");
    served_write("node-1/rows-b.txt", "4\n5\n6\n7\n");
    served_remove("node-1/rows-a.txt");
    try_job(2, &options, &job);
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.root = root_of(i);
    open_job(&job);
    expect_all(&job, texts);
    close_job(&job);
    /* Of one name there is one file. */
    served_write("node-1/rows-a.txt", "8\n");
    try_job(2, &options, &job);
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.root = root_of(i);
    in_all(&job, serve);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.nodes[i].status, TUNDISH_E_ARGUMENT);
        assert_found(job.nodes[i].text, "file ...rows-a.txt differs on node ");
    }
    cluster_close(2, job.links);
    served_remove("node-1/rows-a.txt");
    served_remove("node-1/rows-b.txt");
}

/* A program is not compared before it runs. */
static void
rows_that_differ_between_nodes_are_the_epoch_s_error(void **state)
{
    static const struct served_options options = {
        .stages = "{program: {command: [cat, rows.bin], spec: {x: {dtype: int32, shape: []}}}}, "
                  "{batch: 2}",
        .distribute = "auto_shard: DATA",
        .deliver = "epochs: 1",
    };
    struct job_of_nodes job;

    (void)state;
    for (int i = 0; i < 2; i++)
        (void)root_of(i);
    served_write("node-0/rows.bin", "abcdabcd");
    served_write("node-1/rows.bin", "abcdabcdabcdabcd");
    try_job(2, &options, &job);
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.root = root_of(i);
    open_job(&job);
    for (int i = 0; i < 2; i++)
        expect_in_the_end(job.nodes[i].reader, TUNDISH_E_DATA, "the rows of epoch 0 differ");
    close_job(&job);
}

/* Large enough that where its lines begin is worth keeping. */
static void
write_large_file(const char *name)
{
    static char text[(1 << 20) + 64];

    memset(text, 'x', sizeof text - 1);
    for (size_t i = 63; i < sizeof text - 1; i += 64)
        text[i] = '\n';
    served_write(name, text);
}

static int64_t
machine_ns(void *unused)
{
    struct timespec now;

    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t
far_ns(void *unused)
{
    (void)unused;
    return INT64_MAX / 2;
}

/* A file that is young may still change. */
static const struct tnd_clock when_files_are_old = { .now_ns = machine_ns, .wall_ns = far_ns };

static void *
settle(void *argument)
{
    struct node_of_job *node = argument;
    const struct plan_options plan = {
        .worker = link_rank(node->options.link),
        .worker_count = link_size(node->options.link),
        .cache_folder = node->options.cache,
    };
    struct catalogue catalogue = { 0 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    const struct agreement_options options = { .plan = &plan,
                                               .catalogue = &catalogue,
                                               .timeout_ns = PATIENCE_NS };
    struct agreement_options wanted = options;

    node->status = spec_open_text(node->options.stages, strlen(node->options.stages), "case.yaml",
                                  served_folder, &errors, &file);
    wanted.file = file;
    if (node->status == TUNDISH_OK)
        node->status = agreement_reach(node->options.link, &wanted, &errors);
    spec_close(file);
    spec_errors_close(&errors);
    return NULL;
}

static unsigned
count_files(const char *folder)
{
    DIR *entries = opendir(folder);
    unsigned count = 0;

    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        count += entry->d_type == DT_REG;
    if (entries != NULL)
        closedir(entries);
    return count;
}

static void
indexes_are_made_once_and_given_to_all(void **state)
{
    static const struct served_options options = {
        .stages =
            "streams: {s: {dataset: [{list_files: {file_pattern: 'large-*', shuffle: false}}, "
            "{interleave: {dataset: [text_line], cycle_length: 1}}, {batch: 4}], "
            "distribute: {auto_shard: DATA}}}",
    };
    struct job_of_nodes job;

    (void)state;
    write_large_file("large-a");
    write_large_file("large-b");
    write_large_file("large-c");
    tnd_clock_install(&when_files_are_old);
    try_job(2, &options, &job);
    for (int i = 0; i < 2; i++)
        job.nodes[i].options.cache = root_of(i + 2);
    in_all(&job, settle);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.nodes[i].status, TUNDISH_OK);
        assert_int_equal(count_files(root_of(i + 2)), 3);
    }
    cluster_close(2, job.links);
    tnd_clock_install(NULL);
}

static const _Atomic int never_stops;

static void *
tell_level(void *argument)
{
    struct node_of_job *node = argument;

    node->status = session_level_tell(node->served->session, 1, &never_stops);
    return NULL;
}

static void *
reach_level(void *argument)
{
    struct node_of_job *node = argument;

    node->status = session_level_reach(node->served->session, 1, &never_stops);
    return NULL;
}

static void *
level(void *argument)
{
    struct node_of_job *node = argument;

    tell_level(node);
    return node->status == TUNDISH_OK ? reach_level(node) : NULL;
}

static void
trainers_that_begin_again_begin_at_the_lowest_step_of_all_nodes(void **state)
{
    static const struct served_options options = { .stages = "{range: 10000}, {batch: 2}",
                                                   .deliver = "slots: 4" };
    struct job_of_nodes job;

    (void)state;
    start_job(2, &options, &job);
    expect_all(&job, (const char *const[2][TEXTS]){ { "0.0 value=0", "0.1 value=2", "0.2 value=4" },
                                                    { "0.0 value=1", "0.1 value=3" } });
    for (int i = 0; i < 2; i++)
        tundish_close(job.nodes[i].reader);
    in_all(&job, level);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job.nodes[i].status, TUNDISH_OK);
        job.nodes[i].reader = served_reader(job.nodes[i].served, &(struct wanted){ 0 });
    }
    expect_all(&job, (const char *const[2][TEXTS]){ { "0.2 value=4" }, { "0.2 value=5" } });
    close_job(&job);
}

static bool
knows_state(const struct node_of_job *node, uint64_t epoch)
{
    const struct link_key key = session_link_key(node->served->session, LINK_EPOCH_STATE, epoch);
    struct link_total total = { 0 };
    bool is_known = link_find_total(node->options.link, &key, &total);

    free(total.bytes);
    return is_known;
}

/* The other node may be dealing still, and forgets what it was told of an epoch once it is far. */
static void
a_node_that_has_gone_back_takes_nothing_of_before(void **state)
{
    static const struct served_options options = {
        .stages = FILES "{shuffle: {buffer_size: 2}}, {batch: 4}",
        .deliver = "epochs: 2",
        .seed = 7,
    };
    struct job_of_nodes job;

    (void)state;
    start_job(2, &options, &job);
    expect_all(
        &job, (const char *const[2][TEXTS]){ { "0.0 value=...", "0.1 value=..." }, { "0.0 ..." } });
    for (int i = 0; i < 2; i++) {
        tundish_close(job.nodes[i].reader);
        assert_true(knows_state(&job.nodes[i], 0));
    }
    in_all(&job, tell_level);
    for (int i = 0; i < 2; i++) {
        reach_level(&job.nodes[i]);
        assert_int_equal(job.nodes[i].status, TUNDISH_OK);
        if (i == 0)
            assert_false(knows_state(&job.nodes[i], 0));
    }
    for (int i = 0; i < 2; i++)
        job.nodes[i].reader = served_reader(job.nodes[i].served, &(struct wanted){ 0 });
    for (int i = 0; i < 2; i++)
        expect_in_the_end(job.nodes[i].reader, TUNDISH_END_OF_STREAM, "");
    close_job(&job);
}

static tundish_standing
stand(tundish_reader *reader)
{
    tundish_standing standing = { .size = sizeof standing };

    if (tundish_get_standing(reader, PATIENCE_NS, &standing) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return standing;
}

static void
a_trainer_is_told_where_those_of_other_nodes_stand(void **state)
{
    struct job_of_nodes job;
    tundish_standing standing;

    (void)state;
    start_job(3, &(struct served_options){ .stages = "{range: 60}, {batch: 6}" }, &job);
    expect_all(&job, (const char *const[3][TEXTS]){ { "0.0 ..." }, { "0.0 ..." }, { "0.0 ..." } });
    for (int i = 0; i < 3; i++)
        assert_true(stand(job.nodes[i].reader).is_together);
    expect_all(&job, (const char *const[3][TEXTS]){
                         { "0.1 ..." }, { "0.1 ..." }, { "0.1 ...", "0.2 ...", "0.3 ..." } });
    for (int i = 0; i < 3; i++) {
        standing = stand(job.nodes[i].reader);
        assert_true(standing.is_known && !standing.is_together);
        assert_true(standing.lowest_epoch == 0 && standing.lowest_step == 2);
        assert_true(standing.highest_epoch == 0 && standing.highest_step == 4);
    }
    expect_all(&job, (const char *const[3][TEXTS]){
                         { "0.2 ...", "0.3 ..." }, { "0.2 ...", "0.3 ..." }, { NULL } });
    for (int i = 0; i < 12; i++) /* more questions than are kept */
        assert_true(stand(job.nodes[i % 3].reader).is_together);
    tundish_close(job.nodes[1].reader);
    job.nodes[1].reader = NULL;
    /* Its server may not have heard yet that it closed. */
    while (stand(job.nodes[0].reader).is_known)
        sched_yield();
    close_job(&job);
}

TEST_FILE(test_nodes)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_gets_its_part_of_every_step),
        cmocka_unit_test(a_bad_row_of_one_node_is_the_error_of_all),
        cmocka_unit_test(a_bad_row_told_before_a_node_runs_is_its_error),
        cmocka_unit_test(a_replica_without_a_place_is_not_read_beside_one_of_another_node),
        cmocka_unit_test(threads_that_do_not_start_are_the_error_of_all),
        cmocka_unit_test(threads_that_do_not_start_are_the_error_of_a_node_that_is_alone),
        cmocka_unit_test(an_epoch_ends_early_at_the_same_step_on_all_nodes),
        cmocka_unit_test(epochs_that_others_have_left_are_cut),
        cmocka_unit_test(all_nodes_deal_one_order_after_a_cut),
        cmocka_unit_test(the_failure_of_the_job_ends_the_stream),
        cmocka_unit_test(a_group_that_ends_on_one_node_ends_on_all),
        cmocka_unit_test(a_place_of_one_node_serves_all),
        cmocka_unit_test(a_trainer_is_told_where_those_of_other_nodes_stand),
        cmocka_unit_test(nodes_that_serve_different_things_are_told_which),
        cmocka_unit_test(files_that_are_local_are_read_by_all),
        cmocka_unit_test(indexes_are_made_once_and_given_to_all),
        cmocka_unit_test(rows_that_differ_between_nodes_are_the_epoch_s_error),
        cmocka_unit_test(trainers_that_begin_again_begin_at_the_lowest_step_of_all_nodes),
        cmocka_unit_test(a_node_that_has_gone_back_takes_nothing_of_before),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
