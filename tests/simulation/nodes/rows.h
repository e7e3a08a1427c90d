/* rows.h - records of files that other nodes have (files: local, fetch: once): asked of their
 * owners over the link, and read there.
 *
 * Asking and answering are the server's (source/peer), and so is reading: the files are in a
 * folder.
 */
#ifndef SIMULATION_ROWS_H
#define SIMULATION_ROWS_H

#include <stddef.h>

#include "link/link.h"

struct rows;

struct rows *rows_open(uint32_t nodes);
void rows_close(struct rows *rows);

/* A node's part, in a fiber of its: it answers others from rows_join on, until rows_leave, which
 * comes after link_leave; and asks for some. E_PEER_LOST: an owner was lost. E_DATA: other bytes
 * came. */
tundish_status rows_join(struct rows *rows, struct link *link);
tundish_status rows_ask(struct rows *rows, struct link *link, const _Atomic int *stop);
void rows_leave(struct rows *rows, uint32_t rank);

#endif
