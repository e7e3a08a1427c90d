/* story_faults.c - faults of nodes and of the network, and what all others must make of them. */
#include <string.h>

#include "evaluation.h"
#include "story_private.h"
#include "stream.h"
#include "wires.h"

enum { LOSSES = 3 };

static const int64_t STALL = 400000000;       /* of a slow node, at most */
static const int64_t STALLED = 2000000000;    /* of slow nodes on the way of a message */
static const int64_t PARTED_MAX = 3000000000; /* is not too long */

const char *
fault_name(enum fault fault)
{
    static const char *const names[FAULT_COUNT] = { "none",
                                                    "killed",
                                                    "several",
                                                    "killed while parted",
                                                    "killed while some are slow",
                                                    "stopped",
                                                    "hung",
                                                    "slow",
                                                    "parted",
                                                    "split",
                                                    "other",
                                                    "absent",
                                                    "error of a row",
                                                    "order" };

    return names[fault];
}

bool
fault_is_fatal(enum fault fault)
{
    return fault == FAULT_KILLED || fault == FAULT_SEVERAL || fault == FAULT_KILLED_PARTED ||
           fault == FAULT_KILLED_SLOW || fault == FAULT_HUNG || fault == FAULT_SPLIT;
}

static void
kill_node(struct story *story, uint32_t rank)
{
    story->nodes[rank].is_gone = true;
    wires_take_down(rank);
    fibers_stop(rank);
}

/* The victim, the one above it, and any; at least one stays. */
static void
kill_several(struct story *story)
{
    uint32_t nodes = story->options->nodes;
    uint32_t ranks[LOSSES] = { story->victim,
                               story->victim > 0 ? (story->victim - 1) / 8 : nodes - 1,
                               (uint32_t)fibers_draw(nodes) };

    for (uint32_t i = 0; i < LOSSES && i + 1 < nodes; i++) {
        kill_node(story, ranks[i]);
        story->last_loss_ns = fibers_now_ns();
        fibers_sleep((int64_t)fibers_draw((uint64_t)SECOND));
    }
}

static void
stand_still_again_and_again(void *argument)
{
    struct node_of_story *node = argument;

    while (atomic_load(&node->story->stop) == 0) {
        fibers_stop(node->rank);
        fibers_sleep((int64_t)fibers_draw((uint64_t)STALL));
        fibers_go_on(node->rank);
        fibers_sleep((int64_t)fibers_draw((uint64_t)STALL));
    }
}

/* A tenth of the nodes, and at least one, but not the victim. */
static void
slow_some(struct story *story)
{
    for (uint32_t i = 0; i < 1 + story->options->nodes / 10; i++) {
        struct node_of_story *node = &story->nodes[fibers_draw(story->options->nodes)];

        if (node->rank == story->victim || node->is_slow)
            continue;
        node->is_slow = true;
        fibers_start(FIBERS_NOBODY, stand_still_again_and_again, node);
    }
}

static void
slow_one(struct story *story)
{
    for (int i = 0; i < 20; i++) {
        fibers_stop(story->victim);
        fibers_sleep((int64_t)fibers_draw((uint64_t)SECOND));
        fibers_go_on(story->victim);
        fibers_sleep((int64_t)fibers_draw((uint64_t)(SECOND / 5)));
    }
}

static void
part(const struct story *story)
{
    wires_part(1 + (uint32_t)fibers_draw(story->options->nodes - 1));
}

void
fault_make(struct story *story)
{
    int64_t short_ns = (int64_t)fibers_draw((uint64_t)PARTED_MAX);

    story->fault_ns = fibers_now_ns();
    switch (story->options->fault) {
    case FAULT_KILLED:
        kill_node(story, story->victim);
        break;
    case FAULT_SEVERAL:
        kill_several(story);
        break;
    case FAULT_KILLED_PARTED:
        part(story);
        fibers_sleep(short_ns / 2);
        story->fault_ns = fibers_now_ns();
        kill_node(story, story->victim);
        fibers_sleep(short_ns / 2);
        wires_part(0);
        break;
    case FAULT_KILLED_SLOW:
        slow_some(story);
        fibers_sleep(short_ns);
        story->fault_ns = fibers_now_ns();
        kill_node(story, story->victim);
        break;
    case FAULT_STOPPED:
        fibers_stop(story->victim);
        fibers_sleep(short_ns);
        fibers_go_on(story->victim);
        break;
    case FAULT_HUNG:
        story->nodes[story->victim].is_gone = true;
        fibers_stop(story->victim);
        break;
    case FAULT_SLOW:
        slow_one(story);
        break;
    case FAULT_PARTED:
        part(story);
        fibers_sleep(short_ns);
        wires_part(0);
        break;
    case FAULT_SPLIT:
        part(story);
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

static bool
is_told(const struct node_of_story *node)
{
    return node->is_told;
}

/* All, within the deadline and a second: of several losses, after the last, since who passes on the
 * tidings of the first may be the next. A message waits where a slow node stands still. */
static void
judge_told(struct story *story)
{
    struct story_result *result = story->result;
    int64_t slow_ns = story->options->fault == FAULT_KILLED_SLOW ? STALLED : 0;
    int64_t from_ns = story->last_loss_ns > story->fault_ns ? story->last_loss_ns : story->fault_ns;
    int64_t until_ns = from_ns + DEADLINE + SECOND + slow_ns;

    result->failed = true;
    if (!story_wait(story, is_told, until_ns - fibers_now_ns()))
        complain(story, "not all are told within the deadline and a second");
    if (!story_wait(story, story_is_through, 20 * DEADLINE))
        complain(story, "a node waits for ever in the phase %s", phase_name(story->phase));
    result->noticed_ns = INT64_MAX;
    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const struct node_of_story *node = &story->nodes[i];
        int64_t after_ns = node->told_ns - story->fault_ns;

        if (node->is_gone || !node->is_told)
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
judge_alive(struct story *story)
{
    for (uint32_t i = 0; i < story->options->nodes; i++)
        if (story->nodes[i].is_told)
            complain(story, "node %u was told \"%s\", and all live", i, story->nodes[i].text);
}

/* Rows come of owners that live, and an evaluation goes on without the lost, unless these gave out
 * the shards. */
static void
judge_errors(struct story *story)
{
    enum fault fault = story->options->fault;
    bool is_over = story->nodes[0].is_gone || fault == FAULT_SPLIT;

    for (uint32_t i = 0; i < story->options->nodes; i++) {
        const struct node_of_story *node = &story->nodes[i];

        if (!node->is_gone && !is_over && node->status != TUNDISH_OK &&
            !(story->phase != PHASE_EVALUATE && node->status == TUNDISH_E_PEER_LOST))
            complain(story, "node %u fails in the phase %s: %s", i, phase_name(story->phase),
                     node->text);
    }
    if (story->phase == PHASE_EVALUATE && !is_over)
        evaluation_judge(story->evaluation, story->result->text, sizeof story->result->text);
}

void
fault_judge(struct story *story)
{
    enum fault fault = story->options->fault;
    bool is_of_rows = fault == FAULT_ERROR || (fault == FAULT_ORDER && story->options->are_known);

    if (fault_is_fatal(fault)) {
        judge_told(story);
        judge_errors(story);
        return;
    }
    if (!story_wait(story, story_is_through, 20 * DEADLINE))
        complain(story, "a node waits for ever in the phase %s", phase_name(story->phase));
    fibers_sleep(2 * DEADLINE);
    judge_alive(story);
    if (story->phase == PHASE_DEAL && is_of_rows)
        judge_error(story);
    else if (story->phase == PHASE_DEAL)
        steps_judge_ends(story);
    else
        judge_errors(story);
}

void
fault_end(struct story *story)
{
    for (uint32_t i = 0; i < story->options->nodes; i++) {
        story->nodes[i].is_gone = false;
        fibers_go_on(i);
    }
}
