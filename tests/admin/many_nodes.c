/* many_nodes.c - the metrics of a job of many nodes, as rank 0 of it would have them.
 *
 * many_nodes SOCKET NODES TRAINERS [SLOW KIND]: writes SOCKET.stats, and the other nodes' beside
 * it, with the server's own writer and relay, once a second until it is ended. Each node feeds so
 * many trainers, two steps a second. Node SLOW (a rank, or "all") takes three times as long: KIND
 * "stage" in a stage that computes, "storage" in reading, "order" in its order. Prints a line once
 * all are there.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/must.h"
#include "stats/stats_relay.h"
#include "stats/stats_writer.h"

enum { THREADS = 16, CONTENT = 4, ORDER = 3, SLOTS = 8, ROWS = 256, STEPS_A_SECOND = 2 };
enum { TRAINERS_MAX = 64 };
enum { READ, PARSE, LOOKUP, NORMALIZE };

static const double SECOND = 1e9;

/* The sets of one node. They are filled in anew for each node whose metrics are relayed. */
struct node {
    struct stats *stats;
    uint32_t trainers;
    struct tnd_stats_stream *stream;
    struct tnd_stats_group *group;
    struct tnd_stats_link *link;
    struct tnd_stats_thread *threads[THREADS];
    struct tnd_stats_stage *content[THREADS][CONTENT];
    struct tnd_stats_stage *order[ORDER];
    struct tnd_stats_lane *lanes[TRAINERS_MAX];
    struct tnd_stats_reader *readers[TRAINERS_MAX];
};

struct job {
    uint32_t nodes, trainers;
    int64_t slow; /* -1: none; -2: all */
    const char *kind;
    struct node own, other;
};

/* How long a node takes, of the time that it takes at rest; nodes differ by some percent. */
static double
slowness(const struct job *job, uint32_t rank)
{
    double even = 1 + 0.001 * (double)(rank * 2654435761u >> 26);

    return job->slow == -2 || job->slow == (int64_t)rank ? 3 * even : even;
}

static void
add_sets(struct node *node, const char *socket, uint32_t rank, uint32_t trainers)
{
    static const char *const content[] = { "tfrecord", "parse_example", "string_lookup",
                                           "normalization" };
    static const char *const order[] = { "interleave", "shuffle", "batch" };
    char labels[TND_STATS_LABEL_BYTES];

    must(stats_open(socket, THREADS, &node->stats) == TUNDISH_OK);
    node->trainers = trainers;
    node->stream = stats_add(node->stats, TND_STATS_KIND_stream, "stream=\"train\"");
    node->group =
        stats_add(node->stats, TND_STATS_KIND_group, "stream=\"train\",group=\"default\"");
    node->link = stats_add(node->stats, TND_STATS_KIND_link, "");
    for (uint32_t i = 0; i < THREADS; i++) {
        snprintf(labels, sizeof labels, "stream=\"train\",thread=\"content %u\"", i);
        node->threads[i] = stats_add(node->stats, TND_STATS_KIND_thread, labels);
        for (uint32_t stage = 0; stage < CONTENT; stage++) {
            snprintf(labels, sizeof labels,
                     "stream=\"train\",stage=\"%s\",node=\"%u\",line=\"%u\",part=\"content\"",
                     content[stage], stage, stage + 5);
            node->content[i][stage] = stats_add(node->stats, TND_STATS_KIND_stage, labels);
        }
    }
    for (uint32_t stage = 0; stage < ORDER; stage++) {
        snprintf(labels, sizeof labels,
                 "stream=\"train\",stage=\"%s\",node=\"%u\",line=\"%u\",part=\"order\"",
                 order[stage], stage, stage + 4);
        node->order[stage] = stats_add(node->stats, TND_STATS_KIND_stage, labels);
    }
    for (uint32_t i = 0; i < trainers; i++) {
        snprintf(labels, sizeof labels, "stream=\"train\",replica=\"%u\"", rank * trainers + i);
        node->lanes[i] = stats_add(node->stats, TND_STATS_KIND_lane, labels);
        snprintf(labels, sizeof labels, "stream=\"train\",group=\"default\",replica=\"%u\"",
                 rank * trainers + i);
        node->readers[i] = stats_add(node->stats, TND_STATS_KIND_reader, labels);
    }
    stats_show_state(node->stats, TND_STATS_SERVING);
}

/* The pipeline of the stages above, as a server shows it. */
static void
add_texts(struct stats *stats)
{
    stats_add_text(stats, "pipeline", "",
                   "streams:\n  train:\n    dataset:\n      - interleave: {...}\n");
    stats_add_text(
        stats, "plan", "train",
        "{\"root\": {\"stage\": \"normalization\", \"node\": 3, \"line\": 8, \"part\": \"content\","
        " \"inputs\": [{\"stage\": \"string_lookup\", \"node\": 2, \"line\": 7, \"part\": "
        "\"content\","
        " \"inputs\": [{\"stage\": \"parse_example\", \"node\": 1, \"line\": 6, \"part\": "
        "\"content\","
        " \"inputs\": [{\"stage\": \"tfrecord\", \"node\": 0, \"line\": 5, \"part\": "
        "\"content\"}]}]}]}}");
}

static void
observe(struct tnd_stats_histogram *histogram, uint64_t count, double each_ns)
{
    uint64_t each = (uint64_t)each_ns;

    tnd_stats_set(&histogram->buckets[tnd_stats_bucket(each)], count);
    tnd_stats_set(&histogram->sum_ns, count * each);
}

static void
fill_threads(const struct job *job, const struct node *node, double times, double seconds)
{
    static const double shares[CONTENT] = { 0.08, 0.12, 0.08, 0.04 };
    uint64_t steps = (uint64_t)(seconds * STEPS_A_SECOND);
    uint32_t slow = strcmp(job->kind, "storage") == 0 ? READ : LOOKUP;
    bool is_slow = times >= 3, by_order = strcmp(job->kind, "order") == 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        double busy = 0;

        for (uint32_t stage = 0; stage < CONTENT; stage++) {
            struct tnd_stats_stage *set = node->content[i][stage];
            double takes = shares[stage];

            if (is_slow && !by_order && stage == slow)
                takes = 0.96 - 0.32 + shares[slow];
            busy += takes;
            tnd_stats_set(&set->rows, steps * ROWS * node->trainers / THREADS);
            tnd_stats_set(&set->output, steps * ROWS * node->trainers / THREADS * 160);
            tnd_stats_set(&set->busy, (uint64_t)(takes * seconds * SECOND));
            tnd_stats_set(&set->calls, steps);
            tnd_stats_set(&set->source, stage == READ);
            observe(&set->call, steps, takes / STEPS_A_SECOND * SECOND);
        }
        tnd_stats_set(&node->threads[i]->busy, (uint64_t)(busy * seconds * SECOND));
        tnd_stats_set(&node->threads[i]->slot_wait,
                      is_slow ? 0 : (uint64_t)((1 - busy) * seconds * SECOND));
        observe(&node->threads[i]->idle, steps, (1 - busy) / STEPS_A_SECOND * SECOND);
    }
}

static void
fill_readers(const struct node *node, uint32_t rank, bool is_slow, double seconds)
{
    uint64_t steps = (uint64_t)(seconds * STEPS_A_SECOND);
    /* The slow node's trainers wait for their server. The others wait for those, in the training
     * framework, of which their servers see nothing. */
    double waits = is_slow ? 0.4 : 0.005 + 0.0005 * (double)(rank % 20);

    for (uint32_t i = 0; i < node->trainers; i++) {
        struct tnd_stats_reader *reader = node->readers[i];
        struct tnd_stats_lane *lane = node->lanes[i];
        uint64_t ready = is_slow ? 0 : SLOTS - 2;

        tnd_stats_set(&reader->attached, 1);
        tnd_stats_set(&reader->process, 10000 + i);
        tnd_stats_set(&reader->published, steps + 1 + ready);
        tnd_stats_set(&reader->taken, steps + 1);
        tnd_stats_set(&reader->released, steps);
        tnd_stats_set(&reader->wait, (uint64_t)(waits * seconds * SECOND));
        tnd_stats_set(&reader->usual_step, (uint64_t)(SECOND / STEPS_A_SECOND));
        observe(&reader->next_wait, steps, waits / STEPS_A_SECOND * SECOND);
        tnd_stats_set(&lane->slots, SLOTS);
        tnd_stats_set(&lane->published, steps + 1 + ready);
        tnd_stats_set(&lane->taken, steps + 1);
        tnd_stats_set(&lane->released, steps);
        tnd_stats_set(&lane->occupied, 1);
        tnd_stats_set(&lane->stored, steps * ROWS * 160);
        tnd_stats_set(&lane->segments, SLOTS * ROWS * 160);
        observe(&lane->slot_wait, steps, SECOND / 10);
    }
}

static void
fill(const struct job *job, const struct node *node, uint32_t rank, double seconds)
{
    struct tnd_stats_server *server = stats_server(node->stats);
    double times = slowness(job, rank);
    bool is_slow = times >= 3, by_order = is_slow && strcmp(job->kind, "order") == 0;
    uint64_t steps = (uint64_t)(seconds * STEPS_A_SECOND);
    double cpu = is_slow && strcmp(job->kind, "stage") == 0 ? 0.96 : 0.3;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    tnd_stats_set(&server->heartbeat, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    tnd_stats_set(&server->rank, rank);
    tnd_stats_set(&server->cpu, (uint64_t)(cpu * THREADS * seconds * SECOND));
    tnd_stats_set(&server->threads, THREADS);
    tnd_stats_set(&server->processors, 2 * THREADS);
    tnd_stats_set(&server->resident_memory, UINT64_C(3) << 30);
    tnd_stats_set(&node->stream->steps, steps);
    tnd_stats_set(&node->stream->step, steps);
    tnd_stats_set(&node->stream->rows, steps * ROWS * node->trainers);
    tnd_stats_set(&node->stream->read, steps * ROWS * node->trainers * 400);
    tnd_stats_set(&node->stream->deal_busy, (uint64_t)((by_order ? 0.97 : 0.1) * seconds * SECOND));
    tnd_stats_set(&node->stream->deal_wait, (uint64_t)((by_order ? 0.03 : 0.9) * seconds * SECOND));
    observe(&node->stream->step_make, steps, times * SECOND / 20);
    observe(&node->stream->slot_wait, steps, SECOND / 10);
    tnd_stats_set(&node->group->attached, node->trainers);
    tnd_stats_set(&node->group->step, steps);
    tnd_stats_set(&node->link->messages_sent, steps);
    tnd_stats_set(&node->link->sent, steps * 1000);
    for (uint32_t stage = 0; stage < ORDER; stage++) {
        tnd_stats_set(&node->order[stage]->rows, steps * ROWS * job->nodes * node->trainers);
        tnd_stats_set(&node->order[stage]->busy,
                      (uint64_t)((by_order ? 0.32 : 0.03) * seconds * SECOND));
    }
    fill_threads(job, node, times, seconds);
    fill_readers(node, rank, is_slow, seconds);
}

/* Replicas are numbered over all nodes, so the labels of each node's lanes and readers are its own:
 * those of the copy are written anew. */
static void
number_replicas(struct tnd_stats_header *header, uint64_t bytes, uint32_t rank, uint32_t trainers)
{
    uint32_t lanes = 0, readers = 0;

    for (uint64_t at = sizeof *header; at < bytes;) {
        struct tnd_stats_set_entry *set = (void *)((char *)header + at);
        char *replica =
            set->entry.type == TND_STATS_ENTRY_SET ? strstr(set->labels, "replica=") : NULL;

        if (replica != NULL) {
            bool is_reader = strstr(set->labels, "group=") != NULL;

            sprintf(replica, "replica=\"%u\"", rank * trainers + (is_reader ? readers++ : lanes++));
        }
        at += set->entry.entry_bytes;
    }
}

static void
relay(const struct job *job, uint32_t rank, double seconds)
{
    struct byte_view view;
    struct tnd_stats_header *copy;

    fill(job, &job->other, rank, seconds);
    view = stats_relay_copy(job->other.stats);
    copy = aligned_alloc(TND_STATS_LINE, view.size);
    must(copy != NULL);
    memcpy(copy, view.data, view.size);
    snprintf(copy->node, sizeof copy->node, "node-%03u", rank);
    number_replicas(copy, view.size, rank, job->trainers);
    stats_relay_keep(job->own.stats, rank, (struct byte_view){ (const uint8_t *)copy, view.size },
                     INT64_C(1000000000));
    free(copy);
}

static volatile sig_atomic_t is_over;

static void
end(int number)
{
    (void)number;
    is_over = 1;
}

static void
run(struct job *job)
{
    struct timespec start, now;
    bool is_first = true;

    clock_gettime(CLOCK_MONOTONIC, &start);
    while (!is_over) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (uint32_t rank = 0; rank < job->nodes && !is_over; rank++) {
            /* Half a minute has passed when it begins, so that counters are not all zero. */
            double seconds = 30 + (double)(now.tv_sec - start.tv_sec) +
                             (double)(now.tv_nsec - start.tv_nsec) / SECOND;

            if (rank == 0)
                fill(job, &job->own, rank, seconds);
            else
                relay(job, rank, seconds);
        }
        if (is_first)
            printf("%u nodes\n", job->nodes);
        is_first = false;
        fflush(stdout);
        usleep(1000000);
    }
}

int
main(int argc, char **argv)
{
    struct job job = { .slow = -1, .kind = "stage" };
    struct sigaction action = { .sa_handler = end };
    char other[200];

    if (argc != 4 && argc != 6)
        return 2;
    job.nodes = (uint32_t)atoi(argv[2]);
    job.trainers = (uint32_t)atoi(argv[3]);
    if (argc == 6) {
        job.slow = strcmp(argv[4], "all") == 0 ? -2 : atoi(argv[4]);
        job.kind = argv[5];
    }
    if (job.trainers == 0 || job.trainers > TRAINERS_MAX)
        return 2;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    snprintf(other, sizeof other, "%.100s.other", argv[1]);
    add_sets(&job.other, other, 0, job.trainers);
    add_sets(&job.own, argv[1], 0, job.trainers);
    snprintf(((struct tnd_stats_header *)(uintptr_t)stats_relay_copy(job.own.stats).data)->node, 64,
             "node-000");
    add_texts(job.own.stats);
    tnd_log(TND_LOG_WARNING, "store", "part-00017.tfrecord: asked for again, too slow");
    run(&job);
    stats_close(job.own.stats);
    stats_close(job.other.stats);
    return 0;
}
