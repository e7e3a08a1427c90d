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

/* Takes the reader over. NULL: no memory; the reader is still the caller's. */
struct source *source_open(tundish_reader *reader);
/* The reader, for the thread that uses it. */
tundish_reader *source_reader(const struct source *source);
/* Does it belong to this process? */
bool source_is_ours(const struct source *source);
void source_close(struct source *source);

/* The lease of a batch just returned, with one count. NULL: no memory; the batch was released. */
struct lease *lease_open(struct source *source, const tundish_batch *batch);
void lease_hold(struct lease *lease);
void lease_drop(struct lease *lease); /* accepts NULL */
const tundish_batch *lease_batch(const struct lease *lease);

#endif
