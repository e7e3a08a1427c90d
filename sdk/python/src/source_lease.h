/* source_lease.h - a lent batch, and how many use it.
 *
 * A batch, each array made of it and each capsule of an array hold one count of its lease. The drop
 * of the last one gives the slot back. Holding and dropping call nothing of Python: they are safe
 * in any thread, without the GIL, and after the interpreter has ended. In a child after fork they
 * do nothing, because the batch is the parent's.
 */
#ifndef PYTHON_SOURCE_LEASE_H
#define PYTHON_SOURCE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "supply.h"

/* A reader of the SDK, which lives until it is closed and its last lease is gone. */
struct source;

struct lease;

/* A column of a batch that is in use, found by an address in it. */
struct written {
    const char *column;
    uint64_t epoch, step;
};

/* A line of a program. The file's name lives as long as the source. */
struct source_line {
    const char *file;
    int number;
    bool was_left; /* of a batch: see source_note_left */
};

/* Takes the reader over; device: -1, or the number of the GPU to which its batches go. On failure
 * the reader is still the caller's, and *ret_text says why. */
tundish_status source_open(tundish_reader *reader, int device, struct source **ret_source,
                           const char **ret_text);
/* For the thread that uses the reader: itself, its device or -1, and the calls of its supply. */
tundish_reader *source_reader(const struct source *source);
int source_device(const struct source *source);
tundish_status source_next(struct source *source, int64_t timeout_ns, struct lent *ret_lent);
tundish_status source_restart(struct source *source);
tundish_status source_place(struct source *source, char *token, size_t capacity, size_t *ret_bytes);
bool source_has_room(struct source *source);
/* The sentence of this thread's last call that failed; "" of a status that is an outcome. */
const char *source_text(const struct source *source, tundish_status status);
/* How many batches are in use, and count as held. */
uint32_t source_held(struct source *source);
/* Does it belong to this process? */
bool source_is_ours(const struct source *source);
/* Close the SDK's reader, after keeping (tundish_keep) all batches that are in use. On failure it
 * stays open. Blocks while it copies. */
tundish_status source_shut(struct source *source);
/* Give the caller's reference up. A reader that is still open is closed with the last lease. */
void source_drop(struct source *source);

/* The oldest batch that is in use in its slot: where it was taken, and how many there are. False:
 * there is none. */
bool source_oldest(struct source *source, struct source_line *ret_taken, uint32_t *ret_count);
/* A loop was left early. Its variable may hold the newest batch until the next one is taken, for
 * which the program is not to blame. */
void source_note_left(struct source *source);
/* Make the oldest the program's own, so that its slot goes back. OK also if there is none now. By
 * the thread that uses the reader. */
tundish_status source_keep_oldest(struct source *source);
/* Does a library use a batch that is in its slot, which may let it go in a thread of its own? */
bool source_is_lent_on(struct source *source);
/* Wait until a lease is given back, at most so long. */
void source_wait_release(struct source *source, int64_t timeout_ns);

/* The lease of a batch just returned, with one count. NULL: no memory; the batch was released. */
struct lease *lease_open(struct source *source, const struct lent *lent,
                         const struct source_line *taken);
void lease_hold(struct lease *lease);
/* As lease_hold, for a library that is not Python's. */
void lease_lend_on(struct lease *lease);
void lease_drop(struct lease *lease); /* accepts NULL */
const tundish_batch *lease_facts(const struct lease *lease);
/* The SDK's batch. Only for the host's memory. */
const tundish_batch *lease_batch(const struct lease *lease);
tundish_status lease_tensor(struct lease *lease, uint32_t index, tundish_tensor *ret_tensor);
/* For a handler of signals: the column whose values, as lease_tensor told them, lie there. False
 * also if another thread holds a lock. */
bool lease_find_column(uintptr_t address, struct written *ret_written);
const struct source *lease_source(const struct lease *lease);
/* Only for a device's memory. Wait: the stream waits for the batch. Used: its memory serves again
 * only after what the stream has been given; as safe as a drop. */
tundish_status lease_wait(struct lease *lease, tundish_cuda_stream stream);
void lease_used(struct lease *lease, tundish_cuda_stream stream);
bool lease_is_ours(const struct lease *lease);

/* written.c: name the column that a program wrote to, before the signal ends it. Batches are
 * read-only, and libraries that ignore that (torch) end the process by SIGSEGV. From now on one
 * line on stderr says so, and the signal goes its usual way: to the handler that was there before,
 * or to the end of the process. Once for a process. */
void lease_watch_written(void);

#endif
