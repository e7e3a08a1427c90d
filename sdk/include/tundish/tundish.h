/* tundish.h - read training batches from a feed server.
 *
 *     tundish_options options = TUNDISH_OPTIONS_INIT;
 *     tundish_reader *reader = NULL;
 *     const tundish_batch *batch;
 *     const tundish_tensor *labels;
 *     tundish_status status;
 *
 *     options.stream = "train";
 *     status = tundish_open(&options, &reader);
 *     while (status == TUNDISH_OK &&
 *            (status = tundish_next(reader, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
 *         status = tundish_tensor_named(batch, "label", &labels);
 *         if (status == TUNDISH_OK)
 *             train_step(labels->data, labels->element_count);
 *         tundish_release(reader, batch);
 *     }
 *     if (status != TUNDISH_END)
 *         fprintf(stderr, "%s: %s\n", tundish_status_name(status), tundish_last_error());
 *     tundish_close(reader);
 *
 * Ownership: the caller closes the reader that tundish_open returns. tundish_next lends a batch: it
 *            and its tensors are valid until tundish_release or tundish_close (tundish_keep: until
 *            tundish_release).
 * Threads:   readers are independent. A reader is used by one thread at a time, but any thread may
 *            call tundish_release and tundish_tensor_* at any time.
 * Fork:      in a forked child every call on the parent's reader fails; tundish_close frees it.
 * Errors:    0 is success, > 0 an expected outcome, < 0 a failure: tundish_last_error() explains
 *            it, and ret_ arguments are unchanged. The library never exits, prints or handles
 *            signals.
 * Stability: from 1.0, names, values and field offsets never change; structs grow at the end; new
 *            calls say "since".
 */
#ifndef TUNDISH_H
#define TUNDISH_H

#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNDISH_API __attribute__((visibility("default")))
#define TUNDISH_VERSION_MAJOR 0 /* of the header; tundish_version() returns the library's */
#define TUNDISH_VERSION_MINOR 1
#define TUNDISH_VERSION_PATCH 0

/* Grouped by the caller's remedy. Values never change. */
typedef enum tundish_status {
    TUNDISH_OK = 0,
    TUNDISH_END = 1,             /* end of the epoch; the next tundish_next starts another */
    TUNDISH_END_OF_STREAM = 2,   /* all deliver.epochs are over */
    TUNDISH_NO_VALUE = 3,        /* tundish_next_optional: this replica's epoch is over */
    TUNDISH_STOPPED = 4,         /* the server drained and stopped on request */
    TUNDISH_E_TIMEOUT = -1,      /* try again: nothing is broken */
    TUNDISH_E_SERVER_GONE = -20, /* call again: the server died or restarted */
    TUNDISH_E_PEER_LOST = -21,   /* call again: another replica of the group died. If it is said
                                  * again, reopen at a saved place */
    TUNDISH_E_DETACHED = -22,    /* reopen: the server detached this group, which was too slow */
    TUNDISH_E_DATA = -30,     /* fix the input, or the code that made it: this step's data is bad */
    TUNDISH_E_ARGUMENT = -40, /* fix the program */
    TUNDISH_E_LAYOUT = -41,   /* fix the installation: SDK and server differ in layout */
    TUNDISH_E_PIPELINE = -42, /* fix the pipeline file */
    TUNDISH_E_PLACE = -43,    /* the place is of other data, or not of the others' step */
    TUNDISH_E_SYSTEM = -60,   /* mend what failed, then open again: the system, or a store */
    TUNDISH_E_CORRUPT = -61,  /* give up: shared memory failed a check */
    TUNDISH_E_MEMORY = -62    /* give up: out of memory, or over the configured limit */
} tundish_status;

/* One replica's view of a session. */
typedef struct tundish_reader tundish_reader;

#define TUNDISH_BATCH_SHARD_END 1u /* the last batch of an evaluation shard */

/* Allocated only by the library; may grow at the end. */
typedef struct tundish_batch {
    uint64_t sequence;     /* number of batches this reader returned before */
    uint64_t epoch;        /* from 0 */
    uint64_t step;         /* in the epoch, from 0; the same in every replica */
    uint32_t tensor_count; /* equals column_count of the element spec */
    uint32_t flags;        /* TUNDISH_BATCH_... */
    int64_t shard;         /* index of the shard (distribute.evaluation_shards), or -1 */
    uint64_t visits;       /* distribute.delivery queue: readers that died while they held it */
} tundish_batch;

/* Start from TUNDISH_OPTIONS_INIT. Zero means "default". Strings are copied. */
typedef struct tundish_options {
    size_t size;
    const char *server;  /* socket; default TUNDISH_SERVER, $XDG_RUNTIME_DIR/tundish/server, then
                          * /tmp/tundish-UID/server. Must belong to this user, to root, or to the
                          * user whose number is in TUNDISH_SERVER_UID */
    const char *stream;  /* default TUNDISH_STREAM; required if the server has several streams */
    const char *session; /* jobs with the same session get the same batches; default
                          * TUNDISH_SESSION, then the stream's name */
    const char *group;   /* the replicas of one job; default TUNDISH_GROUP, then "default" */
    int32_t replica;     /* on this node, from 0; -1: TUNDISH_REPLICA, else LOCAL_RANK if neither
                          * session nor group is named, else 0 */
    int32_t check;       /* not 0: verify a column's deliver.checksums on first use */
    const void *place;   /* resume here: the bytes of tundish_place_save, or a token; */
    size_t place_bytes;  /* default: see tundish_open */
    const char *place_token;
    int64_t server_timeout_ns; /* how long to wait for a server to start, and after how long a
                                * silence it counts as dead; default 30 s */
    int64_t spin_ns;           /* busy-wait this long before sleeping; -1: never; default 20 us,
                                * and rarely where batches have long taken longer */
    int64_t open_timeout_ns;   /* how long tundish_open waits for a server that is starting; default
                                * server_timeout_ns. A trainer that tells what it waits for opens
                                * again and again, with a short one, while it gets E_SERVER_GONE */
} tundish_options;

#ifdef __cplusplus
#define TUNDISH_OPTIONS_INIT                                                                       \
    []() -> tundish_options {                                                                      \
        tundish_options options_ = {};                                                             \
        options_.size = sizeof options_;                                                           \
        options_.replica = -1;                                                                     \
        return options_;                                                                           \
    }()
#else
#define TUNDISH_OPTIONS_INIT                                                                       \
    {                                                                                              \
        .size = sizeof(tundish_options), .replica = -1                                             \
    }
#endif
#define TUNDISH_FOREVER INT64_C(-1)

/* Attach to a server. Waits up to open_timeout_ns for a server that is starting.
 * A reader without a place begins an epoch, as a new iter(dataset) does, if the readers of this
 * replica's group before it were closed: the first epoch that none of them had begun. It goes on
 * where they stood if one of them died, was told that the server stops, or was closed while other
 * replicas of its group go on; but never with the end of an epoch. A queue goes on in any case.
 * Returns OK, E_SERVER_GONE (no server listens), or the server's refusal:
 * E_ARGUMENT (unknown stream; replica out of range or in use), E_LAYOUT, E_PIPELINE, E_PLACE,
 * E_SYSTEM, E_MEMORY. */
TUNDISH_API tundish_status tundish_open(const tundish_options *options,
                                        tundish_reader **ret_reader);

/* Leave the group. Batches still held become invalid. Accepts NULL. */
TUNDISH_API void tundish_close(tundish_reader *reader);

/* Borrow the next batch; wait up to timeout_ns (0: do not wait, TUNDISH_FOREVER: no limit).
 * Only OK sets *ret_batch.
 * Returns END once at the end of an epoch, on the same step in every replica; of a queue, when no
 * batch of the epoch is left for this reader. END_OF_STREAM, STOPPED and E_DATA are final.
 * E_PEER_LOST is returned once for each lost replica; batches continue if a replacement attaches in
 * time, otherwise the status is final. E_SERVER_GONE comes after all published batches are read;
 * the next call attaches again, waits up to server_timeout_ns, and continues where this reader
 * stopped.
 * At most slot_count - 2 batches may be held: one more is E_ARGUMENT at once, not a deadlock. A
 * held batch keeps its slot; slot_count batches later the next one needs this slot and waits for
 * the release. Readers of a queue share its slots. */
TUNDISH_API tundish_status tundish_next(tundish_reader *reader, int64_t timeout_ns,
                                        const tundish_batch **ret_batch);

/* As tundish_next, but after the epoch's end every call returns NO_VALUE until tundish_restart. */
TUNDISH_API tundish_status tundish_next_optional(tundish_reader *reader, int64_t timeout_ns,
                                                 const tundish_batch **ret_batch);

/* Begin the next epoch, as a new iter(dataset) does, and skip the rest of this one. The server ends
 * the epoch early once every replica of the group has called this. The call does nothing if an
 * epoch is about to begin. The successor of a reader that died may be in the midst of one: call
 * this first to get whole epochs. Held batches stay valid. In an evaluation
 * (distribute.evaluation_shards) the readers still in the epoch get every shard that this reader
 * did not receive completely; the next epoch begins after they finish. A shard is finished when its
 * last batch is released. */
TUNDISH_API tundish_status tundish_restart(tundish_reader *reader);

/* Return a batch, in any order, from any thread. Never blocks, cannot fail. Accepts NULL. */
TUNDISH_API void tundish_release(tundish_reader *reader, const tundish_batch *batch);

/* Make a held batch the caller's own: a private copy replaces its pages in place, so that it and
 * its tensors stay where they are, also while other threads read them. The slot goes back to the
 * server. The batch no longer counts as held, and is valid until tundish_release, also after
 * tundish_close. Called by the thread that uses the reader, and not while another thread releases
 * the batch. A copy costs a pass over the batch and, for the next batches, the mapping of the lane
 * again. Returns OK (also if it was kept before), E_ARGUMENT (not held), E_MEMORY, or E_SYSTEM (the
 * kernel cannot replace the pages); on failure the batch is held as before. */
TUNDISH_API tundish_status tundish_keep(tundish_reader *reader, const tundish_batch *batch);

/* A column of a batch: in shared memory if possible, else decoded on first use into memory that the
 * reader owns and reuses. Lives as long as the batch. Returns OK, E_ARGUMENT (no such column),
 * E_CORRUPT or E_MEMORY. */
TUNDISH_API tundish_status tundish_tensor_at(const tundish_batch *batch, uint32_t index,
                                             const tundish_tensor **ret_tensor);
TUNDISH_API tundish_status tundish_tensor_named(const tundish_batch *batch, const char *name,
                                                const tundish_tensor **ret_tensor);

/* deliver.widen: write value * widen_scale + widen_offset as widen_dtype to the caller's memory (on
 * the way to a device, say), in the order of tundish_tensor_at, or with widen_layout NCHW as an
 * array of batch, channels, height, width. Computes in float32 (in float64 if widen_dtype is
 * float64) and rounds after each operation. Sets *ret_bytes to the size needed. E_ARGUMENT:
 * capacity is smaller, or the spec's widen_dtype is 0. */
TUNDISH_API tundish_status tundish_tensor_widen(const tundish_batch *batch, uint32_t index,
                                                void *values, size_t capacity, size_t *ret_bytes);

/* The columns of every batch. Lives as long as the reader. */
TUNDISH_API tundish_status tundish_element_spec(tundish_reader *reader,
                                                const tundish_spec **ret_spec);

/* A reader's replica on its node, the replicas there, and the slots of its lane. */
typedef struct tundish_info {
    size_t size; /* set by the caller */
    uint32_t replica;
    uint32_t replica_count;       /* on this node */
    uint32_t first_replica;       /* number of this node's first replica among all nodes' */
    uint32_t total_replica_count; /* over all nodes */
    uint32_t slot_count;
    uint32_t held_count;  /* batches not yet released */
    const char *stream;   /* lives as long as the reader */
    uint64_t first_epoch; /* where this reader started: a group that joins a running session */
    uint64_t first_step;  /* starts at the oldest batch kept, or at the next epoch. UINT64_MAX:
                           * nothing was published yet. In an evaluation first_step is the
                           * number of shards of that epoch that were already finished */
    int64_t epoch_steps;  /* steps of a whole epoch, where the stages tell it before
                           * data is read, as tf.data's cardinality does; else -1 */
    uint32_t ahead_count; /* slots of the lane that the server can fill before it needs
                           * one that this reader holds. 0: tundish_next waits for a release, of
                           * this reader or, in a queue that has no free slot, of any */
} tundish_info;
TUNDISH_API tundish_status tundish_get_info(tundish_reader *reader, tundish_info *ret_info);

/* This reader's position, for a checkpoint. Opening at it returns the batch after the last one
 * returned. Sets *ret_bytes to the size needed; E_ARGUMENT if capacity is smaller. If all replicas
 * of a group have taken the same number of steps (tundish_get_standing), any one's place serves all
 * of them; those that no collective keeps together save one each, also on SIGTERM. With another
 * number of nodes or replicas, all must have: tundish_open answers E_PLACE to a place of another
 * step. Where each node has batches of its own (FILE; queues and broadcasts of several nodes),
 * another number of nodes is E_PLACE. So is a replica without a place beside one that opened at its
 * own, at its next tundish_next. */
TUNDISH_API tundish_status tundish_place_save(tundish_reader *reader, void *bytes, size_t capacity,
                                              size_t *ret_bytes);

/* The same as printable text with a final NUL, which *ret_bytes counts. */
TUNDISH_API tundish_status tundish_place_token(tundish_reader *reader, char *token, size_t capacity,
                                               size_t *ret_bytes);

/* Does this reader's place serve its whole group? `epoch` and `step` are of the batch that a reader
 * at its place gets next, and of those that the replicas want next, lowest_... is the first and
 * highest_... the last. */
typedef struct tundish_standing {
    size_t size;         /* set by the caller */
    int32_t is_together; /* 1: each replica of the group has taken the same steps as this one, and
                          * no more, when it was asked: its place is that of all */
    int32_t is_known;    /* 0: where all stand is not known, and lowest_... and highest_... are 0 */
    uint64_t epoch, step;
    uint64_t lowest_epoch, lowest_step;
    uint64_t highest_epoch, highest_step;
} tundish_standing;

/* Ask the server, which asks those of the other nodes; wait for their answers up to timeout_ns. The
 * answer holds after a collective, or as long as all wait. is_known is 0 where a replica has no
 * trainer, or is read ahead of its program for a device, where nodes take no steps together
 * (broadcast, from_function), in evaluations, of an older server, or if the time is over. Called by
 * the thread that uses the reader. Returns OK, E_TIMEOUT (nothing came before), E_ARGUMENT (a
 * queue), E_SERVER_GONE or E_CORRUPT. */
TUNDISH_API tundish_status tundish_get_standing(tundish_reader *reader, int64_t timeout_ns,
                                                tundish_standing *ret_standing);

/* A descriptor for poll: readable when tundish_next(reader, 0, ...) may return something else than
 * E_TIMEOUT, until that call times out. The reader owns it: do not read or close it. */
TUNDISH_API tundish_status tundish_descriptor(tundish_reader *reader, int *ret_descriptor);

/* A status as "E_SERVER_GONE" ("?": unknown number), and as a sentence with its remedy. */
TUNDISH_API const char *tundish_status_name(tundish_status status);
TUNDISH_API const char *tundish_status_text(tundish_status status);

/* A dtype as "int64", and the size of one value in bytes (0 for strings). */
TUNDISH_API const char *tundish_dtype_name(tundish_dtype dtype);
TUNDISH_API size_t tundish_dtype_bytes(tundish_dtype dtype);

/* Explains the last failed call of this thread; never NULL. */
TUNDISH_API const char *tundish_last_error(void);
/* The library's version, "0.1.0". */
TUNDISH_API const char *tundish_version(void);

#ifdef __cplusplus
}
#endif
#endif
