/* story_private.h - what the files of a story know of it: story.c leads it from phase to phase,
 * story_faults.c makes faults and judges what nodes make of them, story_steps.c deals steps.
 */
#ifndef SIMULATION_STORY_PRIVATE_H
#define SIMULATION_STORY_PRIVATE_H

#include <stdatomic.h>
#include <stdio.h>

#include "fibers.h"
#include "link/link.h"
#include "story.h"

static const int64_t MS = 1000000, SECOND = 1000000000;
static const int64_t DEADLINE = 5000000000; /* after which a silent node is lost */
enum { TEXT_BYTES = 400, EPOCHS = 2, MORE_STEPS = 10 };

struct node_of_story {
    struct story *story;
    uint32_t rank;
    struct link *link;
    struct session *stream;
    uint64_t ends[EPOCHS]; /* the steps of each epoch */
    uint32_t epochs;       /* that are over */
    bool is_through[PHASE_COUNT];
    bool is_gone, is_slow; /* by the fault */
    bool has_counted, is_told, is_over;
    tundish_status status;
    int64_t through_ns, told_ns;
    char text[TEXT_BYTES];
};

/* Of a step: how many nodes had it, and when the first and the last of them came to it. */
struct progress {
    uint32_t nodes;
    int64_t first_ns, last_ns;
};

struct story {
    const struct story_options *options;
    struct story_result *result;
    struct agree_part *parts;
    uint32_t part_count;
    struct shares *shares;
    struct rows *rows;
    struct evaluation *evaluation;
    struct node_of_story *nodes;
    uint32_t victim;
    enum phase phase; /* that nodes may begin */
    int64_t fault_ns;
    int64_t last_loss_ns;    /* of several */
    struct progress *steps;  /* of both epochs, one after the other */
    uint64_t waits, answers; /* of all nodes: times that a step was waited for, and steps */
    _Atomic int stop;
};

#define complain(story, ...)                                                                       \
    do {                                                                                           \
        if ((story)->result->text[0] == '\0')                                                      \
            snprintf((story)->result->text, sizeof(story)->result->text, __VA_ARGS__);             \
    } while (false)

typedef bool story_is(const struct node_of_story *node);

/* For the director: wait until it is so of all nodes that the fault has left. */
bool story_wait(struct story *story, story_is *is_so, int64_t patience_ns);
bool story_is_through(const struct node_of_story *node); /* the present phase */

/* Whether a fault is one that every node must be told of. */
bool fault_is_fatal(enum fault fault);
void fault_make(struct story *story);
void fault_judge(struct story *story); /* all have heard, went on, or said why not */
void fault_end(struct story *story);   /* those that stand still go on */

tundish_status steps_deal(struct node_of_story *node);
void steps_judge_ends(struct story *story);

#endif
