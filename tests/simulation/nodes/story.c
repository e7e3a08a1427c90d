/* story.c - what the simulated servers do, phase by phase. */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "evaluation.h"
#include "link/agree.h"
#include "memory.h"
#include "rows.h"
#include "shares.h"
#include "shm/stats.h"
#include "story_private.h"
#include "stream.h"
#include "wires.h"

static const int64_t PATIENCE = 600000000000; /* the server's, for the agreement */
static const int64_t START = 200000000;       /* the last node begins so late */
enum { COUNTERS_BYTES = 45 << 10 };

/* Thousands of servers would say the same. */
void __wrap_tnd_log(enum tnd_log_level level, const char *event, const char *format, ...);

void
__wrap_tnd_log(enum tnd_log_level level, const char *event, const char *format, ...)
{
    (void)level;
    (void)event;
    (void)format;
}

const char *
phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = { "agree", "share",    "serve",
                                                    "rows",  "evaluate", "deal" };

    return names[phase];
}

static void
make_parts(struct story *story)
{
    uint32_t files = story->options->files;

    story->part_count = files + story->options->vocabularies;
    story->parts = calloc(story->part_count, sizeof *story->parts);
    for (uint32_t i = 0; i < story->part_count; i++) {
        char name[64];

        snprintf(name, sizeof name,
                 i < files ? "file data/part-%05u-of-%05u.tfrecord" : "file vocabulary-%u.txt",
                 i < files ? i : i - files, files);
        story->parts[i] = (struct agree_part){ strdup(name), i * UINT64_C(0x9e3779b97f4a7c15) };
    }
}

static void
free_parts(struct story *story)
{
    for (uint32_t i = 0; i < story->part_count; i++)
        free((char *)(uintptr_t)story->parts[i].name);
    free(story->parts);
}

/* With another file where that is the story. */
static tundish_status
agree_on_parts(struct node_of_story *node)
{
    struct story *story = node->story;
    const struct agree_part *parts = story->parts;
    struct agree_part *other = NULL;
    tundish_status status;

    if (story->options->fault == FAULT_OTHER && node->rank == story->victim) {
        other = malloc(story->part_count * sizeof *other);
        memcpy(other, parts, story->part_count * sizeof *other);
        other[story->part_count / 2].hash ^= 1;
        parts = other;
    }
    status = agree(node->link, parts, story->part_count, PATIENCE, &story->stop);
    free(other);
    return status;
}

static tundish_status
join(struct node_of_story *node)
{
    struct story *story = node->story;
    uint64_t number = node->rank == 0 ? story->options->seed : 0;
    tundish_status status;

    fibers_sleep((int64_t)fibers_draw((uint64_t)START));
    status =
        link_open(&(struct link_options){ .expected_nodes = story->options->nodes }, &node->link);
    if (status == TUNDISH_OK)
        status = agree_on_number(node->link, &number, PATIENCE, &story->stop);
    if (status == TUNDISH_OK && number != story->options->seed)
        complain(story, "node %u has another seed", node->rank);
    return status == TUNDISH_OK ? agree_on_parts(node) : status;
}

static void
hear(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct node_of_story *node = user;

    if (node->stream != NULL)
        stream_hear(node->stream, from, key, bytes);
    if (key != NULL || node->is_told)
        return;
    node->is_told = true;
    node->told_ns = fibers_now_ns();
    snprintf(node->text, sizeof node->text, "%.*s", (int)bytes.size, (const char *)bytes.data);
}

/* The server's loop. */
static void
tell_counters(void *argument)
{
    static const uint8_t counters[COUNTERS_BYTES];
    static const struct link_key key = { .topic = LINK_COUNTERS };
    struct node_of_story *node = argument;

    while (!node->is_told && atomic_load(&node->story->stop) == 0) {
        fibers_sleep(SECOND);
        if (node->rank != 0 && node->rank < TND_STATS_NODES)
            link_post(node->link, &key, counters, sizeof counters);
    }
    node->has_counted = true;
}

static void
open_stream(struct node_of_story *node)
{
    const struct story_options *options = node->story->options;

    node->stream = stream_open(node->link, &(struct stream_options){
                                               .are_known = options->are_known,
                                               .ends_with_first = options->ends_with_first,
                                               .places_differ = options->places_differ,
                                           });
    link_subscribe(node->link, hear, node);
    evaluation_join(node->story->evaluation, node->link);
    fibers_start(node->rank, tell_counters, node);
}

static tundish_status
ask_for_rows(struct node_of_story *node)
{
    struct story *story = node->story;
    tundish_status status = rows_join(story->rows, node->link);

    return status == TUNDISH_OK ? rows_ask(story->rows, node->link, &story->stop) : status;
}

static tundish_status
run_phase(struct node_of_story *node, enum phase phase)
{
    struct story *story = node->story;

    switch (phase) {
    case PHASE_AGREE:
        return join(node);
    case PHASE_SHARE:
        return shares_run(story->shares, node->link, &story->stop);
    case PHASE_SERVE:
        open_stream(node);
        return TUNDISH_OK;
    case PHASE_ROWS:
        return ask_for_rows(node);
    case PHASE_EVALUATE:
        return evaluation_run(story->evaluation, node->link, &story->stop);
    default:
        return steps_deal(node);
    }
}

static bool
may_begin(const struct node_of_story *node, enum phase phase)
{
    while (node->story->phase < phase && !node->is_told && atomic_load(&node->story->stop) == 0)
        fibers_sleep(10 * MS);
    return node->story->phase >= phase && atomic_load(&node->story->stop) == 0;
}

/* Its server stays while others still read what it gives out. */
static bool
may_end(const struct node_of_story *node)
{
    return node->story->phase != PHASE_EVALUATE || atomic_load(&node->story->stop) != 0;
}

static void
live(void *argument)
{
    struct node_of_story *node = argument;

    for (enum phase phase = 0; phase < PHASE_COUNT && node->status == TUNDISH_OK; phase++)
        if (may_begin(node, phase)) {
            node->status = run_phase(node, phase);
            if (node->status != TUNDISH_OK && node->text[0] == '\0')
                snprintf(node->text, sizeof node->text, "%s", tnd_error_text());
            node->through_ns = fibers_now_ns();
            node->is_through[phase] = true;
        }
    while (node->stream != NULL && !(node->has_counted && may_end(node)))
        fibers_sleep(100 * MS);
    if (node->link != NULL)
        link_subscribe(node->link, NULL, NULL);
    stream_close(node->stream);
    link_leave(node->link, DEADLINE);
    rows_leave(node->story->rows, node->rank);
    evaluation_leave(node->story->evaluation, node->rank);
    link_close(node->link);
    node->is_over = true;
}

bool
story_wait(struct story *story, story_is *is_so, int64_t patience_ns)
{
    int64_t until_ns = fibers_now_ns() + patience_ns;
    uint32_t i = 0;

    for (;;) {
        while (i < story->options->nodes && (story->nodes[i].is_gone || is_so(&story->nodes[i])))
            i++;
        if (i == story->options->nodes)
            return true;
        if (fibers_now_ns() >= until_ns)
            return false;
        fibers_sleep(10 * MS);
    }
}

bool
story_is_through(const struct node_of_story *node)
{
    return node->is_through[node->story->phase];
}

static bool
is_over(const struct node_of_story *node)
{
    return node->is_over;
}

static struct wires_traffic
traffic_of_all(const struct story *story)
{
    struct wires_traffic all = { 0 };

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        struct wires_traffic one = wires_traffic(i);

        all.sent += one.sent;
        all.sent_bytes += one.sent_bytes;
        all.sent_of_steps += one.sent_of_steps;
    }
    return all;
}

/* What has been used up at some moment. */
struct meter {
    struct wires_traffic all, first;
    int64_t at_ns, cpu_ns;
};

static struct meter
read_meter(const struct story *story)
{
    return (struct meter){ traffic_of_all(story), wires_traffic(0), fibers_now_ns(),
                           fibers_first_cpu_ns() };
}

static void
note_cost(struct story *story, const struct meter *before)
{
    struct meter now = read_meter(story);
    double nodes = story->options->nodes, seconds = (double)(now.at_ns - before->at_ns) * 1e-9;
    struct phase_cost *cost = &story->result->costs[story->phase];

    *cost = (struct phase_cost){
        .seconds = seconds,
        .messages = (double)(now.all.sent - before->all.sent) / nodes,
        .bytes = (double)(now.all.sent_bytes - before->all.sent_bytes) / nodes,
        .first_messages = (double)(now.first.received - before->first.received),
        .first_bytes = (double)(now.first.received_bytes - before->first.received_bytes),
        .first_cpu_seconds = (double)(now.cpu_ns - before->cpu_ns) * 1e-9,
    };
    if (story->phase == PHASE_DEAL) {
        double steps = nodes * (double)(story->options->steps * EPOCHS);

        story->result->step_messages = cost->messages * nodes / steps;
        story->result->step_words =
            (double)(now.all.sent_of_steps - before->all.sent_of_steps) / steps;
    }
}

/* When the last node was through, which the director notices a little later. */
static void
note_end(struct story *story, const struct meter *before)
{
    int64_t end_ns = 0;

    for (uint32_t i = 0; i < story->options->nodes; i++)
        if (!story->nodes[i].is_gone && story->nodes[i].through_ns > end_ns)
            end_ns = story->nodes[i].through_ns;
    story->result->costs[story->phase].seconds = (double)(end_ns - before->at_ns) * 1e-9;
}

static void
judge_agreement(struct story *story)
{
    const struct node_of_story *first = NULL;
    bool differs = story->options->fault == FAULT_OTHER && story->options->nodes > 1;

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const struct node_of_story *node = &story->nodes[i];

        if (node->is_gone)
            continue;
        if (first == NULL)
            first = node;
        if (!node->is_through[PHASE_AGREE])
            complain(story, "node %u waits for ever", i);
        else if (node->status != first->status || (differs && strcmp(node->text, first->text) != 0))
            complain(story, "node %u says \"%s\", and node %u \"%s\"", i, node->text, first->rank,
                     first->text);
    }
    if (first != NULL && differs &&
        (first->status != TUNDISH_E_ARGUMENT || strstr(first->text, "part-") == NULL))
        complain(story, "the difference is told as \"%s\"", first->text);
}

/* All nodes go through it, and nothing happens. */
static void
pass(struct story *story, enum phase phase)
{
    struct meter before = read_meter(story);

    story->phase = phase;
    if (!story_wait(story, story_is_through, 20 * DEADLINE))
        complain(story, "a node waits for ever in the phase %s", phase_name(phase));
    if (phase == PHASE_SERVE)
        fibers_sleep(story->options->serves_ns);
    if (phase == PHASE_ROWS) /* who asked is heard from once more */
        fibers_sleep(SECOND);
    note_cost(story, &before);
    if (phase != PHASE_SERVE)
        note_end(story, &before);
    if (phase == PHASE_AGREE)
        judge_agreement(story);
    for (uint32_t i = 0; i < story->options->nodes && phase != PHASE_AGREE; i++)
        if (story->nodes[i].status != TUNDISH_OK || story->nodes[i].is_told)
            complain(story, "node %u says \"%s\", and nothing happened", i, story->nodes[i].text);
}

/* All nodes go through it, and in the midst of it is the fault. */
static void
pass_with_fault(struct story *story, enum phase phase)
{
    const struct story_options *options = story->options;
    uint64_t takes_ns =
        phase == PHASE_DEAL ? (uint64_t)options->step_ns * options->steps : (uint64_t)SECOND / 4;

    story->phase = phase;
    fibers_sleep((int64_t)fibers_draw(takes_ns));
    fault_make(story);
    fault_judge(story);
}

static void
go_through(struct story *story, enum fault fault)
{
    for (enum phase phase = PHASE_SHARE; phase < PHASE_COUNT; phase++) {
        bool has_fault = fault != FAULT_NONE && phase == story->options->fault_phase;

        if (has_fault)
            pass_with_fault(story, phase);
        else
            pass(story, phase);
        if (has_fault && fault_is_fatal(fault))
            return;
        if (phase == PHASE_SHARE)
            shares_judge(story->shares, story->result->text, sizeof story->result->text);
        if (phase == PHASE_EVALUATE)
            evaluation_judge(story->evaluation, story->result->text, sizeof story->result->text);
    }
    story->result->steps_waited = (double)story->waits / (double)(story->answers + 1);
    if (fault == FAULT_NONE)
        steps_judge_ends(story);
}

/* Those that stand still go on, and hear that they were given up, or hear nobody. */
static void
end_all(struct story *story)
{
    atomic_store(&story->stop, 1);
    fault_end(story);
    if (!story_wait(story, is_over, 10 * DEADLINE))
        complain(story, "a node does not end");
}

static void
direct(void *argument)
{
    struct story *story = argument;
    uint32_t nodes = story->options->nodes;
    enum fault fault = nodes > 1 ? story->options->fault : FAULT_NONE;

    story->victim = (uint32_t)fibers_draw(nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        story->nodes[i] = (struct node_of_story){ .story = story, .rank = i };
        fibers_start(i, live, &story->nodes[i]);
    }
    if (fault == FAULT_ABSENT) {
        story->nodes[story->victim].is_gone = true;
        fibers_stop(story->victim);
    }
    pass(story, PHASE_AGREE);
    if (fault != FAULT_ABSENT && fault != FAULT_OTHER)
        go_through(story, fault);
    story->result->first_memory_bytes = memory_of_first_most();
    end_all(story);
}

void
story_play(const struct story_options *options, struct story_result *ret_result)
{
    struct story story = { .options = options, .result = ret_result };
    struct wires_options wires = {
        .nodes = options->nodes,
        .network = { options->latency_ns, options->jitter_ns, options->bytes_per_ns },
    };

    *ret_result = (struct story_result){ 0 };
    make_parts(&story);
    story.shares = shares_open(options->nodes, options->shared_files);
    story.rows = rows_open(options->nodes);
    story.evaluation = evaluation_open(options->nodes);
    story.nodes = calloc(options->nodes, sizeof *story.nodes);
    story.steps = calloc(EPOCHS * (options->steps + MORE_STEPS), sizeof *story.steps);
    wires_open(&wires);
    fibers_run(options->seed, options->nodes, direct, &story);
    wires_close();
    evaluation_close(story.evaluation);
    rows_close(story.rows);
    shares_close(story.shares);
    free(story.steps);
    free(story.nodes);
    free_parts(&story);
}
