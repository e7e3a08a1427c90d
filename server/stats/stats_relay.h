/* stats_relay.h - metrics of all nodes, gathered beside rank 0's own: PATH.stats.1, .2 ...
 *
 * Each node posts a copy of its metrics now and then, tracks left out; rank 0 keeps each in a file
 * that is written in place, values first and the header last, so that a reader sees the old entries
 * or the new.
 */
#ifndef STATS_STATS_RELAY_H
#define STATS_STATS_RELAY_H

#include "core/bytes.h"
#include "stats/stats_writer.h"

/* The bytes to post; valid until the next call. */
struct byte_view stats_relay_copy(const struct stats *stats);

/* Rank 0: keep the copy that another node has posted, which posts about that often. Bytes that are
 * not such a copy are dropped. */
void stats_relay_keep(struct stats *stats, uint32_t rank, struct byte_view copy, int64_t every_ns);

/* Remove the files of all nodes, before this node's own: without it there are none. */
void stats_relay_remove(const char *stats_path);

#endif
