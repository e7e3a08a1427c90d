/* wires.h - the network between simulated servers, in the place of MPI: a channel (node_channel.h)
 * that links load as they load that of MPI.
 *
 * Messages between two nodes keep their order. Each node sends and receives one byte after the
 * other at its bandwidth. A message that must cross a partition comes when that has ended. Those of
 * a node that is down are lost.
 */
#ifndef SIMULATION_WIRES_H
#define SIMULATION_WIRES_H

#include <stdbool.h>
#include <stdint.h>

#include "cable.h"

struct wires_options {
    uint32_t nodes;
    struct network network;
};

/* What a node has sent and received so far; and of that sent, the messages with how far a node, or
 * all of them, are in an epoch. */
struct wires_traffic {
    uint64_t sent, sent_bytes, received, received_bytes;
    uint64_t sent_of_steps;
};

void wires_open(const struct wires_options *options);
void wires_close(void);

void wires_take_down(uint32_t node);

/* Nodes below `border` do not reach those from there on, and the other way round; 0: all do. */
void wires_part(uint32_t border);

/* These two do not reach each other any more. */
void wires_cut(uint32_t a, uint32_t b);

struct wires_traffic wires_traffic(uint32_t node);

#endif
