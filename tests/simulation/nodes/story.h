/* story.h - a job of simulated servers from its start to its end, and what went wrong on the way.
 *
 * Each node runs the link of the server as it is, and calls it as the server does.
 */
#ifndef SIMULATION_STORY_H
#define SIMULATION_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum fault {
    FAULT_NONE,
    FAULT_KILLED,  /* a node is gone */
    FAULT_STOPPED, /* a node stands still for a while that is not too long */
    FAULT_HUNG,    /* a node stands still for too long, and goes on */
    FAULT_SLOW,    /* a node stands still again and again */
    FAULT_PARTED,  /* some nodes do not reach the others for a while */
    FAULT_SPLIT,   /* they do not reach them any more */
    FAULT_OTHER,   /* a node has another file */
    FAULT_ABSENT,  /* a node does not begin */
    FAULT_ERROR,   /* a node has a bad row */
    FAULT_ORDER,   /* a node deals other rows */
    FAULT_COUNT
};

struct story_options {
    uint64_t seed;
    uint32_t nodes, files, vocabularies;
    int64_t latency_ns, jitter_ns;
    double bytes_per_ns;
    int64_t serves_ns; /* for so long, after the agreement, before steps are dealt */
    int64_t step_ns;
    uint64_t steps;       /* an epoch, of a node; some have a few more */
    bool are_known;       /* all have as many, as under DATA */
    bool ends_with_first; /* an epoch is over where the first node has no more */
    enum fault fault;
};

struct story_result {
    int64_t agreed_ns, agreed_cpu_ns;     /* the last node */
    int64_t noticed_ns, told_ns;          /* since the fault: the first node and the last */
    uint64_t agree_messages, agree_bytes; /* sent, of all nodes */
    uint64_t agree_first_messages, agree_first_bytes; /* rank 0's, sent and received */
    uint64_t agree_most_messages;                     /* of one node, sent and received */
    uint64_t messages, bytes;                         /* a second, a node; while serving */
    uint64_t first_messages, first_bytes;             /* received a second by rank 0 */
    uint64_t first_memory_bytes;                      /* that it held at most */
    double first_cpu;                                 /* of a core, while serving */
    double step_messages;                             /* a node and step */
    double steps_waited;                              /* of a node, of all steps */
    double steps_late; /* at most: from when the last node concerned was there, to the answer */
    bool failed;
    char text[1024]; /* what is wrong: empty, if nothing is */
};

const char *fault_name(enum fault fault);

/* Play it. The result's text says which promise was broken, if one was: that all nodes agree or are
 * told the same, that none is lost which lives, that every loss is told to all, that none waits for
 * ever. */
void story_play(const struct story_options *options, struct story_result *ret_result);

#endif
