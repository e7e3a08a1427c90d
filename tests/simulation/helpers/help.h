/* help.h - a job of servers whose trainers want more than their threads make, and of helpers that
 * make parts for them, in made-up time.
 *
 * Each server runs the ring of steps, the workers and the helpers' threads as they are
 * (server/session). What stands for something else: content is a time that it takes, a lane is
 * counted, and a connection is a network with latency and bandwidth (helper_hosts.c).
 */
#ifndef SIMULATION_HELP_H
#define SIMULATION_HELP_H

#include <stdint.h>

#include "nodes/cable.h"

enum help_fault {
    HELP_NO_FAULT,
    HELP_KILLED,  /* every other helper is killed, and comes back */
    HELP_GONE,    /* every other helper is gone without a word: nothing is answered any more */
    HELP_STALLED, /* every other helper stands still for too long, and goes on */
    HELP_LATE,    /* all helpers come late */
    HELP_OTHER,   /* every other helper makes other bytes */
    HELP_FAULT_COUNT
};

struct help_options {
    uint64_t seed;
    uint32_t nodes, cores;     /* of a node: its threads */
    uint32_t helpers, threads; /* of a helper */
    uint32_t rows, part_rows;  /* of a step; of a part that a thread makes */
    int64_t row_ns;            /* that a row takes */
    uint64_t row_bytes;
    int64_t step_ns; /* that a trainer takes for a step */
    int64_t lasts_ns;
    struct network network;
    enum help_fault fault; /* in the midst of it */
};

/* Of all nodes together, but for what is said. Rates leave the first second out. */
struct help_result {
    double rows_a_second;
    uint64_t steps, waits; /* and steps that a trainer waited for; the first second left out */
    uint64_t asked, asked_later; /* parts of a helper; after the first second */
    uint64_t made, compared,
        remade;              /* in the slots by helpers; on both sides; here, as they failed */
    uint64_t overtaken;      /* here, as a trainer waited */
    uint64_t in_vain;        /* made by a helper for nobody */
    uint64_t lost, barred;   /* helpers, as servers saw it */
    uint64_t bytes;          /* over the network */
    uint64_t most_under_way; /* bytes, of one node */
    char text[512];          /* the promise that was broken: empty, if none was */
};

const char *help_fault_name(enum help_fault fault);

/* Play it. Promised is that each step comes to its trainer once and in order, with each of its rows
 * made once and right; that no trainer waits for ever; and that a node has no more bytes under way
 * than those of a part for each connection. */
void help_play(const struct help_options *options, struct help_result *ret_result);

#endif
