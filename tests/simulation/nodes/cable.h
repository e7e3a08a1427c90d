/* cable.h - when bytes come over a network in which each node sends, and receives, one byte after
 * the other at its bandwidth. */
#ifndef SIMULATION_CABLE_H
#define SIMULATION_CABLE_H

#include <stddef.h>
#include <stdint.h>

struct network {
    int64_t latency_ns, jitter_ns; /* at most so much more */
    double bytes_per_ns;           /* of each node, each way */
};

/* A node's, in made-up time. */
struct cable {
    int64_t sends_from_ns, receives_from_ns; /* when it is free */
};

/* The moment at which bytes have come that are sent now, but not before `earliest_ns`. */
int64_t cable_arrival(const struct network *network, struct cable *from, struct cable *to,
                      size_t byte_count, int64_t earliest_ns);

#endif
