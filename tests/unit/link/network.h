/* network.h - nodes of a job on a made-up network with a made-up clock: every delay, silence and
 * death follows from a seed. */
#ifndef TEST_NETWORK_H
#define TEST_NETWORK_H

#include "link/node.h"

enum { NETWORK_NODES = 6 };

struct network;

struct network *network_open(uint32_t size, uint64_t seed);
void network_close(struct network *network);

struct node *network_node(struct network *network, uint32_t rank);
uint64_t network_draw(struct network *network, uint64_t below);
int64_t network_now_ns(const struct network *network);

/* Let one node take a step, chosen by the seed, after some time has passed. */
void network_step(struct network *network);

/* Let the time go on by at least so much. */
void network_run(struct network *network, int64_t ns);

void network_kill(struct network *network, uint32_t rank);  /* it never steps again */
void network_pause(struct network *network, uint32_t rank); /* until network_resume */
void network_resume(struct network *network, uint32_t rank);
void network_cut(struct network *network, uint32_t a, uint32_t b); /* messages between them stay */
bool network_is_alive(const struct network *network, uint32_t rank);

/* Posts of others that the node was told of. */
uint64_t network_arrivals(const struct network *network, uint32_t rank);

/* Letters that came, which must count themselves by sender (key.epoch; their bytes count on from
 * it). */
uint64_t network_messages(const struct network *network, uint32_t rank, bool *ret_in_order);

#endif
