/* story.c - what the simulated servers do, and what happens to them. */
#include "story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "fibers.h"
#include "link/agree.h"
#include "memory.h"
#include "shm/stats.h"
#include "stream.h"
#include "wires.h"

static const int64_t MS = 1000000, SECOND = 1000000000;
static const int64_t PATIENCE = 600000000000; /* the server's, for the agreement */
static const int64_t START = 200000000;       /* the last node begins so late */
static const int64_t DEADLINE = 5000000000;   /* after which a silent node is lost */
enum { COUNTERS_BYTES = 45 << 10, TEXT_BYTES = 400, EPOCHS = 2, MORE_STEPS = 10 };

struct node_of_story {
    struct story *story;
    uint32_t rank;
    struct link *link;
    struct session *stream;
    uint64_t ends[EPOCHS]; /* the steps of each epoch */
    uint32_t epochs;       /* that are over */
    bool has_agreed, has_counted, is_told, is_dealt, is_over;
    tundish_status dealt;
    tundish_status agreed;
    int64_t agreed_ns, told_ns;
    char text[TEXT_BYTES];
};

struct progress;

struct story {
    const struct story_options *options;
    struct story_result *result;
    struct agree_part *parts;
    uint32_t part_count;
    struct node_of_story *nodes;
    uint32_t victim;
    int64_t began_ns, fault_ns;
    bool deals;              /* the steps have begun */
    struct progress *steps;  /* of both epochs, one after the other */
    uint64_t waits, answers; /* of all nodes: times that a step was waited for, and steps */
    _Atomic int stop;
};

/* Of a step: how many nodes had it, and when the first and the last of them came to it. */
struct progress {
    uint32_t nodes;
    int64_t first_ns, last_ns;
};

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
fault_name(enum fault fault)
{
    static const char *const names[FAULT_COUNT] = { "none",   "killed", "stopped", "hung",
                                                    "slow",   "parted", "split",   "other",
                                                    "absent", "error",  "order" };

    return names[fault];
}

#define complain(story, ...)                                                                       \
    do {                                                                                           \
        if ((story)->result->text[0] == '\0')                                                      \
            snprintf((story)->result->text, sizeof(story)->result->text, __VA_ARGS__);             \
    } while (false)

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

static uint64_t
steps_of(const struct story *story, uint32_t rank, uint32_t epoch)
{
    uint64_t more = (rank * UINT64_C(0x9e3779b97f4a7c15) + epoch) >> 32;

    return story->options->steps + (story->options->are_known ? 0 : more % MORE_STEPS);
}

static struct progress *
progress_of(struct story *story, uint32_t epoch, uint64_t number)
{
    return &story->steps[epoch * (story->options->steps + MORE_STEPS) + number];
}

static void
note_progress(struct story *story, uint32_t epoch, uint64_t number)
{
    struct progress *progress = progress_of(story, epoch, number);

    if (progress->nodes++ == 0)
        progress->first_ns = fibers_now_ns();
    progress->last_ns = fibers_now_ns();
}

/* An answer could be given when the one step that it needs had come, or the last of all. */
static void
note_answer(struct node_of_story *node, uint64_t number, int64_t asked_ns, bool is_more)
{
    struct story *story = node->story;
    const struct progress *progress;
    int64_t from_ns = asked_ns, late_ns;

    story->answers++;
    if (fibers_now_ns() == asked_ns)
        return;
    story->waits++;
    if (!is_more)
        return;
    progress = progress_of(story, node->epochs, number);
    if (story->options->ends_with_first && progress->last_ns > from_ns)
        from_ns = progress->last_ns;
    if (!story->options->ends_with_first && progress->first_ns > from_ns)
        from_ns = progress->first_ns;
    late_ns = fibers_now_ns() - from_ns;
    if ((double)late_ns / (double)story->options->step_ns > story->result->steps_late)
        story->result->steps_late = (double)late_ns / (double)story->options->step_ns;
}

static tundish_status
deal_epoch(struct node_of_story *node)
{
    struct story *story = node->story;
    uint64_t has = steps_of(story, node->rank, node->epochs);
    uint64_t pause_ns = (uint64_t)story->options->step_ns;
    tundish_status status = TUNDISH_OK;
    bool is_more = true;

    stream_begin_epoch(node->stream, node->epochs);
    for (uint64_t number = 0; status == TUNDISH_OK && is_more; number++) {
        int64_t asked_ns = fibers_now_ns();

        node->ends[node->epochs] = number;
        if (number < has)
            note_progress(story, node->epochs, number);
        status = stream_deal(node->stream, number, number < has, &is_more);
        if (status == TUNDISH_OK)
            note_answer(node, number, asked_ns, is_more);
        if (stream_error(node->stream) != NULL)
            status = TUNDISH_E_DATA;
        fibers_sleep((int64_t)(pause_ns / 2 + fibers_draw(pause_ns + 1)));
    }
    return status;
}

static void
deal(struct node_of_story *node)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && node->epochs < EPOCHS) {
        status = deal_epoch(node);
        node->epochs += status == TUNDISH_OK;
    }
    node->dealt = status;
    node->is_dealt = true;
}

static void
serve(struct node_of_story *node)
{
    struct story *story = node->story;

    fibers_start(node->rank, tell_counters, node);
    while (!story->deals && !node->is_told && atomic_load(&story->stop) == 0)
        fibers_sleep(10 * MS);
    deal(node);
    while (!node->has_counted)
        fibers_sleep(100 * MS);
}

static void
live(void *argument)
{
    struct node_of_story *node = argument;
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
    if (status == TUNDISH_OK)
        status = agree_on_parts(node);
    if (status != TUNDISH_OK)
        snprintf(node->text, sizeof node->text, "%s", tnd_error_text());
    node->agreed = status;
    node->agreed_ns = fibers_now_ns();
    node->has_agreed = true;
    if (status == TUNDISH_OK)
        node->stream =
            stream_open(node->link, &(struct stream_options){ story->options->are_known,
                                                              story->options->ends_with_first });
    if (node->link != NULL)
        link_subscribe(node->link, hear, node);
    if (status == TUNDISH_OK)
        serve(node);
    if (node->link != NULL)
        link_subscribe(node->link, NULL, NULL);
    stream_close(node->stream);
    link_leave(node->link, DEADLINE);
    link_close(node->link);
    node->is_over = true;
}

/* The nodes that the fault leaves alone. */
static bool
is_well(const struct story *story, uint32_t rank)
{
    enum fault fault = story->options->fault;

    return rank != story->victim ||
           (fault != FAULT_KILLED && fault != FAULT_HUNG && fault != FAULT_ABSENT);
}

static bool
all_are(const struct story *story, bool (*is_so)(const struct node_of_story *node))
{
    for (uint32_t i = 0; i < story->options->nodes; i++)
        if (is_well(story, i) && !is_so(&story->nodes[i]))
            return false;
    return true;
}

static bool
has_agreed(const struct node_of_story *node)
{
    return node->has_agreed;
}

static bool
is_dealt(const struct node_of_story *node)
{
    return node->is_dealt;
}

static bool
is_told(const struct node_of_story *node)
{
    return node->is_told;
}

static bool
is_over(const struct node_of_story *node)
{
    return node->is_over;
}

static bool
wait_until(struct story *story, bool (*is_so)(const struct node_of_story *node),
           int64_t patience_ns)
{
    int64_t until_ns = fibers_now_ns() + patience_ns;

    while (!all_are(story, is_so)) {
        if (fibers_now_ns() >= until_ns)
            return false;
        fibers_sleep(10 * MS);
    }
    return true;
}

static struct wires_traffic
traffic_of_all(const struct story *story, uint64_t *ret_most)
{
    struct wires_traffic all = { 0 };
    uint64_t most = 0;

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        struct wires_traffic one = wires_traffic(i);

        all.sent += one.sent;
        all.sent_bytes += one.sent_bytes;
        most = one.sent + one.received > most ? one.sent + one.received : most;
    }
    if (ret_most != NULL)
        *ret_most = most;
    return all;
}

static void
judge_agreement(struct story *story)
{
    struct story_result *result = story->result;
    const struct node_of_story *first = NULL;
    bool differs = story->options->fault == FAULT_OTHER && story->options->nodes > 1;

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const struct node_of_story *node = &story->nodes[i];

        if (!is_well(story, i))
            continue;
        if (first == NULL)
            first = node;
        if (!node->has_agreed)
            complain(story, "node %u waits for ever", i);
        else if (node->agreed != first->agreed || (differs && strcmp(node->text, first->text) != 0))
            complain(story, "node %u says \"%s\", and node %u \"%s\"", i, node->text, first->rank,
                     first->text);
        if (node->agreed_ns - story->began_ns > result->agreed_ns)
            result->agreed_ns = node->agreed_ns - story->began_ns;
    }
    if (first != NULL && differs &&
        (first->agreed != TUNDISH_E_ARGUMENT || strstr(first->text, "part-") == NULL))
        complain(story, "the difference is told as \"%s\"", first->text);
}

static void
agree_all(struct story *story)
{
    struct story_result *result = story->result;
    struct wires_traffic all, first;

    if (!wait_until(story, has_agreed, 12 * DEADLINE))
        complain(story, "the agreement does not end");
    judge_agreement(story);
    all = traffic_of_all(story, &result->agree_most_messages);
    first = wires_traffic(0);
    result->agree_messages = all.sent;
    result->agree_bytes = all.sent_bytes;
    result->agree_first_messages = first.sent + first.received;
    result->agree_first_bytes = first.sent_bytes + first.received_bytes;
    result->agreed_cpu_ns = fibers_first_cpu_ns();
}

/* All serve, and nothing happens. */
static void
measure(struct story *story)
{
    struct wires_traffic all = traffic_of_all(story, NULL), first = wires_traffic(0), now;
    int64_t cpu_ns = fibers_first_cpu_ns(), serves_ns = story->options->serves_ns;
    double seconds = (double)serves_ns * 1e-9;
    uint32_t nodes = story->options->nodes;
    struct story_result *result = story->result;

    fibers_sleep(serves_ns);
    now = traffic_of_all(story, NULL);
    result->messages = (uint64_t)((double)(now.sent - all.sent) / seconds / nodes);
    result->bytes = (uint64_t)((double)(now.sent_bytes - all.sent_bytes) / seconds / nodes);
    now = wires_traffic(0);
    result->first_messages = (uint64_t)((double)(now.received - first.received) / seconds);
    result->first_bytes = (uint64_t)((double)(now.received_bytes - first.received_bytes) / seconds);
    result->first_cpu = (double)(fibers_first_cpu_ns() - cpu_ns) * 1e-9 / seconds;
    for (uint32_t i = 0; i < nodes; i++)
        if (story->nodes[i].is_told)
            complain(story, "node %u was told \"%s\", and nothing happened", i,
                     story->nodes[i].text);
}

static void
stand_still_again_and_again(struct story *story)
{
    for (int i = 0; i < 20; i++) {
        fibers_stop(story->victim);
        fibers_sleep((int64_t)fibers_draw((uint64_t)SECOND));
        fibers_go_on(story->victim);
        fibers_sleep((int64_t)fibers_draw((uint64_t)(SECOND / 5)));
    }
}

static void
make_fault(struct story *story)
{
    int64_t short_ns = (int64_t)fibers_draw(3 * (uint64_t)SECOND);
    uint32_t border = 1 + (uint32_t)fibers_draw(story->options->nodes - 1);

    story->fault_ns = fibers_now_ns();
    switch (story->options->fault) {
    case FAULT_KILLED:
        wires_take_down(story->victim);
        fibers_stop(story->victim);
        break;
    case FAULT_STOPPED:
        fibers_stop(story->victim);
        fibers_sleep(short_ns);
        fibers_go_on(story->victim);
        break;
    case FAULT_HUNG:
        fibers_stop(story->victim);
        break;
    case FAULT_SLOW:
        stand_still_again_and_again(story);
        break;
    case FAULT_PARTED:
        wires_part(border);
        fibers_sleep(short_ns);
        wires_part(0);
        break;
    case FAULT_SPLIT:
        wires_part(border);
        break;
    case FAULT_ERROR:
        stream_tell_error(story->nodes[story->victim].stream, "row 7 is bad");
        break;
    case FAULT_ORDER:
        stream_err(story->nodes[story->victim].stream);
        break;
    default:
        break;
    }
}

/* Whether a fault is one that every node must be told of. */
static bool
is_fatal(enum fault fault)
{
    return fault == FAULT_KILLED || fault == FAULT_HUNG || fault == FAULT_SPLIT;
}

/* Where each epoch ends, for all. */
static void
judge_ends(struct story *story)
{
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t end = steps_of(story, 0, epoch);

        for (uint32_t i = 1; i < story->options->nodes; i++) {
            uint64_t has = steps_of(story, i, epoch);

            end = story->options->ends_with_first == (has < end) ? has : end;
        }
        for (uint32_t i = 0; i < story->options->nodes; i++)
            if (story->nodes[i].epochs != EPOCHS || story->nodes[i].ends[epoch] != end)
                complain(story, "on node %u epoch %u ends after %llu steps, and not after %llu", i,
                         epoch, (unsigned long long)story->nodes[i].ends[epoch],
                         (unsigned long long)end);
    }
}

static void
judge_alive(struct story *story)
{
    for (uint32_t i = 0; i < story->options->nodes; i++)
        if (story->nodes[i].is_told)
            complain(story, "node %u was told \"%s\", and all live", i, story->nodes[i].text);
}

static void
judge_told(struct story *story)
{
    struct story_result *result = story->result;

    result->failed = true;
    if (!wait_until(story, is_told, DEADLINE + SECOND))
        complain(story, "not all are told within the deadline and a second");
    if (!wait_until(story, is_dealt, DEADLINE))
        complain(story, "a node waits for a step for ever");
    result->noticed_ns = INT64_MAX;
    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const struct node_of_story *node = &story->nodes[i];
        int64_t after_ns = node->told_ns - story->fault_ns;

        if (!is_well(story, i) || !node->is_told)
            continue;
        result->noticed_ns = after_ns < result->noticed_ns ? after_ns : result->noticed_ns;
        result->told_ns = after_ns > result->told_ns ? after_ns : result->told_ns;
    }
}

/* An error of one node is that of all, in the same words. The one that has it is not told. */
static void
judge_error(struct story *story)
{
    uint32_t first = story->victim == 0 ? 1 : 0;
    const char *text = stream_error(story->nodes[first].stream);

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const char *other = stream_error(story->nodes[i].stream);

        if (i == story->victim && story->options->fault == FAULT_ERROR)
            continue;
        if (text == NULL || other == NULL || strcmp(text, other) != 0)
            complain(story,
                     "the error of node %u is \"%.150s\" on node %u, and \"%.150s\" on node %u",
                     story->victim, other != NULL ? other : "", i, text != NULL ? text : "", first);
    }
}

static void
judge_fault(struct story *story)
{
    enum fault fault = story->options->fault;
    bool is_of_rows = fault == FAULT_ERROR || (fault == FAULT_ORDER && story->options->are_known);

    if (is_fatal(fault)) {
        judge_told(story);
        return;
    }
    if (!wait_until(story, is_dealt, 20 * DEADLINE))
        complain(story, "a node waits for a step for ever");
    fibers_sleep(2 * DEADLINE);
    judge_alive(story);
    if (is_of_rows)
        judge_error(story);
    else
        judge_ends(story);
}

/* Both epochs, in the midst of which the fault is. */
static void
deal_all(struct story *story)
{
    const struct story_options *options = story->options;
    struct story_result *result = story->result;
    uint64_t steps = options->steps * EPOCHS, before = traffic_of_all(story, NULL).sent;

    story->deals = true;
    fibers_sleep((int64_t)fibers_draw((uint64_t)options->step_ns * options->steps));
    if (options->nodes > 1)
        make_fault(story);
    if (options->nodes == 1 || options->fault == FAULT_NONE) {
        if (!wait_until(story, is_dealt, 20 * DEADLINE))
            complain(story, "a node waits for a step for ever");
        result->step_messages =
            (double)(traffic_of_all(story, NULL).sent - before) / (double)steps / options->nodes;
        result->steps_waited = (double)story->waits / (double)(story->answers + 1);
        judge_ends(story);
    } else {
        judge_fault(story);
    }
}

/* Those that stand still go on, and hear that they were given up, or hear nobody. */
static void
end_all(struct story *story)
{
    atomic_store(&story->stop, 1);
    fibers_go_on(story->victim);
    story->victim = UINT32_MAX;
    if (!wait_until(story, is_over, 10 * DEADLINE))
        complain(story, "a node does not end");
}

static void
direct(void *argument)
{
    struct story *story = argument;
    enum fault fault = story->options->fault;
    int64_t absent_ns = 2 * DEADLINE;

    story->began_ns = fibers_now_ns();
    story->victim = (uint32_t)fibers_draw(story->options->nodes);
    for (uint32_t i = 0; i < story->options->nodes; i++) {
        story->nodes[i] = (struct node_of_story){ .story = story, .rank = i };
        fibers_start(i, live, &story->nodes[i]);
    }
    if (fault == FAULT_ABSENT) {
        fibers_stop(story->victim);
        if (story->options->nodes > 1 && !wait_until(story, has_agreed, absent_ns))
            complain(story, "a node does not begin, and others wait for it");
        judge_agreement(story);
    } else {
        agree_all(story);
        if (fault != FAULT_OTHER || story->options->nodes == 1) {
            measure(story);
            deal_all(story);
        }
    }
    story->result->first_memory_bytes = memory_of_first_most();
    end_all(story);
}

void
story_play(const struct story_options *options, struct story_result *ret_result)
{
    struct story story = { .options = options, .result = ret_result };
    struct wires_options wires = {
        .nodes = options->nodes,
        .latency_ns = options->latency_ns,
        .jitter_ns = options->jitter_ns,
        .bytes_per_ns = options->bytes_per_ns,
    };

    *ret_result = (struct story_result){ 0 };
    make_parts(&story);
    story.nodes = calloc(options->nodes, sizeof *story.nodes);
    story.steps = calloc(EPOCHS * (options->steps + MORE_STEPS), sizeof *story.steps);
    wires_open(&wires);
    fibers_run(options->seed, options->nodes, direct, &story);
    wires_close();
    memory_forget();
    free(story.steps);
    free(story.nodes);
    free_parts(&story);
}
