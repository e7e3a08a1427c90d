/* lease.h - a lent batch, and how many use it.
 *
 * A batch, each array made of it and each capsule of an array hold one count of its lease. The drop
 * of the last one gives the slot back. Holding and dropping call nothing of Python: they are safe
 * in any thread, without the GIL, and after the interpreter has ended. In a child after fork they
 * do nothing, because the batch is the parent's.
 */
#ifndef PYTHON_LEASE_H
#define PYTHON_LEASE_H

#include <stdbool.h>

#include "tundish/tundish.h"

/* A reader of the SDK, which lives until it is closed and its last lease is gone. */
struct source;

struct lease;

/* A line of a program. The file's name lives as long as the source. */
struct line {
    const char *file;
    int number;
};

/* Takes the reader over. NULL: no memory; the reader is still the caller's. */
struct source *source_open(tundish_reader *reader);
/* The reader, for the thread that uses it. */
tundish_reader *source_reader(const struct source *source);
/* Does it belong to this process? */
bool source_is_ours(const struct source *source);
/* Close the SDK's reader, after keeping (tundish_keep) all batches that are in use. On failure it
 * stays open. Blocks while it copies. */
tundish_status source_shut(struct source *source);
/* Give the caller's reference up. A reader that is still open is closed with the last lease. */
void source_drop(struct source *source);

/* The oldest batch that is in use in its slot: where it was taken, and how many there are. False:
 * there is none. */
bool source_oldest(struct source *source, struct line *ret_taken, uint32_t *ret_count);
/* Make the oldest the program's own, so that its slot goes back. OK also if there is none now. By
 * the thread that uses the reader. */
tundish_status source_keep_oldest(struct source *source);
/* Wait until a lease is given back, at most so long. */
void source_wait_release(struct source *source, int64_t timeout_ns);

/* The lease of a batch just returned, with one count. NULL: no memory; the batch was released. */
struct lease *lease_open(struct source *source, const tundish_batch *batch,
                         const struct line *taken);
void lease_hold(struct lease *lease);
void lease_drop(struct lease *lease); /* accepts NULL */
const tundish_batch *lease_batch(const struct lease *lease);
bool lease_is_ours(const struct lease *lease);

#endif
