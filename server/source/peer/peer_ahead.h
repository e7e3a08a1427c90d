/* peer_ahead.h - rows that were asked of other nodes ahead of need, for one step of the order after
 * the other.
 *
 * They are kept until their step is forgotten. A reader looks at all that are there, whichever step
 * they were asked for, and holds them meanwhile. Any thread.
 */
#ifndef SOURCE_PEER_PEER_AHEAD_H
#define SOURCE_PEER_PEER_AHEAD_H

#include "column/scratch.h"
#include "source/peer/peer.h"

struct peer_ahead;

struct peer_ahead *peer_ahead_open(void);
void peer_ahead_close(struct peer_ahead *ahead); /* nothing is held; accepts NULL */

/* The rows become its own. */
void peer_ahead_add(struct peer_ahead *ahead, uint64_t epoch, uint64_t step,
                    struct peer_rows *rows);
void peer_ahead_forget(struct peer_ahead *ahead, uint64_t epoch, uint64_t step);

/* The bytes of all rows that are there. */
uint64_t peer_ahead_bytes(struct peer_ahead *ahead);

/* The rows of a reader: of several steps, in the order in which they were asked for. */
struct peer_held {
    size_t count;
    struct peer_asked **asked; /* in the reader's scratch */
};
void peer_ahead_hold(struct peer_ahead *ahead, struct scratch *scratch, struct peer_held *ret_held);
void peer_ahead_release(struct peer_ahead *ahead, const struct peer_held *held);

/* Those that have the row, or NULL. */
struct peer_rows *peer_held_find(const struct peer_held *held, const struct peer_row *row);

#endif
