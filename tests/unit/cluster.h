/* cluster.h - a job of several nodes in one process.
 *
 * The links are those of a server, with their threads. Only the module that they load in place of
 * the one that uses MPI is another: cluster_channel.c, whose messages go through queues. */
#ifndef UNIT_CLUSTER_H
#define UNIT_CLUSTER_H

#include "link/link.h"

enum { CLUSTER_NODES = 4 };

/* Make this process look like a rank of a job of so many nodes; 0: like none. */
void cluster_pretend(uint32_t size);

/* Join as all nodes of a job: ret_links[i] is rank i's. Ends the test where that fails. */
void cluster_open(uint32_t size, struct link **ret_links);

/* Leave, all at once, and close. An entry may be NULL. */
void cluster_close(uint32_t size, struct link **links);

/* From now on nothing comes from this node of the last job, or gets there. */
void cluster_cut(uint32_t rank);

/* From now on no node of the last job returns from sending to this one; until it is let go. The
 * second waits until one is sending to it. */
void cluster_hold(uint32_t rank);
void cluster_await(uint32_t rank);
void cluster_let_go(uint32_t rank);

/* Time that goes on only in cluster_pass, for as long as the links are open. */
void cluster_stop_clock(void);
void cluster_start_clock(void);

/* Let so much time pass, in which every node whose link is not NULL does all that it has to. */
void cluster_pass(uint32_t size, struct link *const *links, int64_t ns);

#endif
