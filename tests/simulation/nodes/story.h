/* story.h - a job of simulated servers from its start to its end, and what went wrong on the way.
 *
 * Each node runs the link of the server as it is, and calls it as the server does. All nodes go
 * through the same phases, one after the other, so that each has its own figures.
 */
#ifndef SIMULATION_STORY_H
#define SIMULATION_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum phase {
    PHASE_AGREE,    /* join, and compare parts */
    PHASE_SHARE,    /* files that only some have, and indexes of those that all have */
    PHASE_SERVE,    /* nothing but metrics */
    PHASE_ROWS,     /* records of files that others have */
    PHASE_EVALUATE, /* shards of an evaluation */
    PHASE_DEAL,     /* steps of some epochs */
    PHASE_COUNT
};

enum fault {
    FAULT_NONE,
    FAULT_KILLED,        /* a node is gone */
    FAULT_SEVERAL,       /* one after the other: some nodes, two of them next to each other */
    FAULT_KILLED_PARTED, /* a node is gone, and some do not reach the others for a while */
    FAULT_KILLED_SLOW,   /* a node is gone, and some stand still again and again */
    FAULT_STOPPED,       /* a node stands still for a while that is not too long */
    FAULT_HUNG,          /* a node stands still for too long, and goes on */
    FAULT_SLOW,          /* a node stands still again and again */
    FAULT_PARTED,        /* some nodes do not reach the others for a while */
    FAULT_SPLIT,         /* they do not reach them any more */
    FAULT_OTHER,         /* a node has another file */
    FAULT_ABSENT,        /* a node does not begin */
    FAULT_ERROR,         /* a node has a bad row */
    FAULT_ORDER,         /* a node deals other rows */
    FAULT_COUNT
};

struct story_options {
    uint64_t seed;
    uint32_t nodes, files, vocabularies;
    uint32_t shared_files; /* of the catalogue, and as many indexes */
    int64_t latency_ns, jitter_ns;
    double bytes_per_ns;
    int64_t serves_ns;
    int64_t step_ns;
    uint64_t steps;       /* an epoch, of a node; some have a few more */
    bool are_known;       /* all have as many, as under DATA */
    bool ends_with_first; /* an epoch is over where the first node has no more */
    bool is_cut;          /* the first epoch ends early, as all trainers want */
    bool places_differ;   /* each node's random stages stand elsewhere */
    enum fault fault;
    enum phase fault_phase; /* PHASE_ROWS or later */
};

/* Of a phase: sent by a node on average, and what came to rank 0. */
struct phase_cost {
    double seconds; /* until the last node was through */
    double messages, bytes;
    double first_messages, first_bytes;
    double first_cpu_seconds; /* of a core of this machine */
};

struct story_result {
    struct phase_cost costs[PHASE_COUNT];
    int64_t noticed_ns, told_ns; /* since the fault: the first node and the last */
    uint64_t first_memory_bytes; /* that the link of rank 0 held at most */
    double step_messages;        /* a node and step; metrics, places and ends among them */
    double step_words;           /* of these, the messages with how far nodes are */
    double steps_waited;         /* of a node, of all steps */
    double steps_late; /* at most: from when the last node concerned was there, to the answer */
    bool failed;
    char text[1024]; /* what is wrong: empty, if nothing is */
};

const char *phase_name(enum phase phase);
const char *fault_name(enum fault fault);

/* Play it. The result's text says which promise was broken, if one was: that all nodes agree or are
 * told the same, that none is lost which lives, that every loss is told to all, that none waits for
 * ever. */
void story_play(const struct story_options *options, struct story_result *ret_result);

#endif
