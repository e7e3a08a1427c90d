/* shares.h - files of which each node has some, and indexes that each node makes for all.
 *
 * The functions of session/nodes are the server's; files, their hashes and the folders that keep
 * indexes are made up.
 */
#ifndef SIMULATION_SHARES_H
#define SIMULATION_SHARES_H

#include <stddef.h>

#include "link/link.h"

struct shares;

struct shares *shares_open(uint32_t nodes, uint32_t files);
void shares_close(struct shares *shares);

/* A node's part in both, in a fiber of its. E_DATA: it has not come to know the files of all. */
tundish_status shares_run(struct shares *shares, struct link *link, const _Atomic int *stop);

/* All have gone through it: each file was read at most once, and each node keeps its index. What is
 * wrong is said in ret_text, if nothing is said there yet. */
void shares_judge(const struct shares *shares, char *ret_text, size_t text_bytes);

#endif
