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
 * Ownership: tundish_open gives a reader that the caller closes. tundish_next lends a batch; it and
 *            its tensors are gone after tundish_release, or after tundish_close.
 * Threads:   readers are independent of each other. One thread at a time per reader, but
 *            tundish_release and the tundish_tensor_* calls may run in any thread at any time.
 * Fork:      a reader belongs to the process that opened it. In a forked child every call on it
 *            fails, except that tundish_close frees it.
 * Errors:    0 is success, > 0 an expected outcome, < 0 a failure. A failed call leaves its ret_
 *            arguments alone and explains in tundish_last_error(). The library never ends the
 *            process, never prints and installs no signal handler.
 * Stability: from 1.0, names, values and field offsets never change; structs grow at the end; new
 *            calls say "since".
 */
#ifndef TUNDISH_H
#define TUNDISH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNDISH_API __attribute__((visibility("default")))

/* Of this header. The library's own is tundish_version(). */
#define TUNDISH_VERSION_MAJOR 0
#define TUNDISH_VERSION_MINOR 1
#define TUNDISH_VERSION_PATCH 0

/* Grouped by what the caller can do about it. Values are fixed for good. */
typedef enum tundish_status {
    TUNDISH_OK = 0,
    TUNDISH_END = 1,             /* the epoch is over; the next tundish_next starts another */
    TUNDISH_END_OF_STREAM = 2,   /* deliver.epochs are over, for good */
    TUNDISH_NO_VALUE = 3,        /* tundish_next_optional: this replica's epoch is over */
    TUNDISH_STOPPED = 4,         /* the server drained and ended on request */
    TUNDISH_E_TIMEOUT = -1,      /* try again: nothing is broken */
    TUNDISH_E_SERVER_GONE = -20, /* reopen: the server died or restarted */
    TUNDISH_E_PEER_LOST = -21,   /* reopen at a place: another replica of the group died */
    TUNDISH_E_DETACHED = -22,    /* reopen: this group was too slow and was cut off */
    TUNDISH_E_DATA = -30,        /* fix the input: it is bad at this step */
    TUNDISH_E_ARGUMENT = -40,    /* fix the program */
    TUNDISH_E_LAYOUT = -41,      /* fix the install: SDK and server disagree on layout */
    TUNDISH_E_PIPELINE = -42,    /* fix the pipeline file */
    TUNDISH_E_PLACE = -43,       /* the place belongs to another pipeline, or other files */
    TUNDISH_E_SYSTEM = -60,      /* give up: the kernel refused; errno is in the text */
    TUNDISH_E_CORRUPT = -61,     /* give up: shared memory failed a check */
    TUNDISH_E_MEMORY = -62       /* give up: no memory, or more than the configured limit */
} tundish_status;

/* Numbers are stored in slots and places, so none is ever reused. */
typedef enum tundish_dtype {
    TUNDISH_BOOL = 1,
    TUNDISH_UINT8 = 2,
    TUNDISH_INT8 = 3,
    TUNDISH_UINT16 = 4,
    TUNDISH_INT16 = 5,
    TUNDISH_UINT32 = 6,
    TUNDISH_INT32 = 7,
    TUNDISH_UINT64 = 8,
    TUNDISH_INT64 = 9,
    TUNDISH_FLOAT16 = 10,
    TUNDISH_BFLOAT16 = 11,
    TUNDISH_FLOAT32 = 12,
    TUNDISH_FLOAT64 = 13,
    TUNDISH_STRING = 14
} tundish_dtype;

/* How a column's values are laid out. Stored in slots. */
typedef enum tundish_kind {
    TUNDISH_DENSE = 1,
    TUNDISH_RAGGED = 2,
    TUNDISH_SPARSE = 3
} tundish_kind;

/* At most this many dimensions. */
#define TUNDISH_RANK_MAX 8

/* One replica's view of a session. */
typedef struct tundish_reader tundish_reader;

/* What a column of every batch looks like: a line of tundish_element_spec. Made by whoever serves;
 * it may grow at the end, so walk it with tundish_column_spec_at. */
typedef struct tundish_column_spec {
    const char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    uint32_t rank;
    uint32_t ragged_rank;            /* RAGGED: dimensions 1 .. ragged_rank are ragged; else 0 */
    int64_t shape[TUNDISH_RANK_MAX]; /* -1: differs between batches, or is ragged */
    tundish_dtype splits_dtype;      /* RAGGED: that of TensorFlow's row_splits; ours are int64 */

    /* deliver.widen: what tundish_tensor_widen makes of each value, value * scale + offset. Scale
     * and offset have one entry, or one for each index of the last dimension. 0: not asked for. */
    tundish_dtype widen_dtype;
    uint32_t widen_scale_count;
    uint32_t widen_offset_count;
    const double *widen_scale;
    const double *widen_offset;
} tundish_column_spec;

typedef struct tundish_spec {
    uint32_t column_count;
    uint32_t column_bytes; /* sizeof(tundish_column_spec) in the library */
    const tundish_column_spec *columns;
} tundish_spec;

/* One column of one batch.
 *
 * dense   data has element_count values in row-major order.
 * ragged  row_splits[0 .. ragged_rank - 1], outermost first; row_splits[k] has
 *         row_split_counts[k] entries, from 0 upward, the last being the number of lists of the
 *         next level (of inner values for the innermost). Ragged dimensions are -1 in shape; what
 *         follows them is the shape of an inner value.
 * sparse  element_count values in data, rank coordinates for each in indices; shape is the dense
 *         shape.
 *
 * Strings of any kind: value i is the bytes string_offsets[i] .. string_offsets[i + 1] of data,
 * without a NUL. All offsets, splits and indices are int64 and in order. data is aligned to 64
 * bytes; it may not be written to. */
typedef struct tundish_tensor {
    const char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    uint32_t rank;
    uint32_t ragged_rank;
    const int64_t *shape;
    uint64_t element_count; /* values in data */
    uint64_t data_bytes;
    const void *data;                 /* never NULL */
    const int64_t *string_offsets;    /* element_count + 1, or NULL */
    const int64_t *const *row_splits; /* or NULL */
    const uint64_t *row_split_counts;
    const int64_t *indices; /* element_count * rank, or NULL */
} tundish_tensor;

#define TUNDISH_BATCH_SHARD_END 1u /* the last batch of an evaluation shard */

/* Made only by the library, so it may grow at the end. */
typedef struct tundish_batch {
    uint64_t sequence;     /* batches that this reader returned before: 0, 1, 2, ... */
    uint64_t epoch;        /* from 0 */
    uint64_t step;         /* in the epoch, from 0; the same in every replica */
    uint32_t tensor_count; /* that of the element spec */
    uint32_t flags;        /* TUNDISH_BATCH_... */
    int64_t shard;         /* distribute.evaluation_shards: which shard; else -1 */
    uint64_t visits;       /* distribute.delivery queue: readers that died holding it */
} tundish_batch;

/* Made by the caller, so it starts with its own size. Zero means "default". Strings are copied. */
typedef struct tundish_options {
    size_t size;
    const char *server;  /* the server's socket; default TUNDISH_SERVER, then
                          * $XDG_RUNTIME_DIR/tundish/server, /tmp/tundish-UID/server.
                          * It must be this user's, root's, or of the user whose number
                          * is in TUNDISH_SERVER_UID */
    const char *stream;  /* default TUNDISH_STREAM; needed if the server has several */
    const char *session; /* jobs that share a session see the same batches;
                          * default TUNDISH_SESSION, then the stream's name */
    const char *group;   /* the replicas of one job; default TUNDISH_GROUP, then
                          * "default" */
    int32_t replica;     /* on this node, from 0; -1: TUNDISH_REPLICA, else 0 */
    int32_t check;       /* not 0: verify each column's checksum on first use, where the
                          * server writes them (deliver.checksums) */
    const void *place;   /* resume here: bytes of tundish_place_save, or its token; */
    size_t place_bytes;  /* the server's own position if there is neither */
    const char *place_token;
    int64_t server_timeout_ns; /* silence after which the server counts as gone, and how long
                                * to wait for one that is not there; default 30 s */
    int64_t spin_ns;           /* look this long before sleeping; default 20 us, -1: never */
} tundish_options;

/* (C++ before 20: zero it, then set size and replica = -1.) */
#define TUNDISH_OPTIONS_INIT                                                                       \
    {                                                                                              \
        .size = sizeof(tundish_options), .replica = -1                                             \
    }

#define TUNDISH_FOREVER INT64_C(-1)

/* Attach to a server. Waits for one that is starting, up to server_timeout_ns.
 * Returns OK, E_SERVER_GONE (no server listens), or why the server refused: E_ARGUMENT (no such
 * stream, replica out of range or taken), E_LAYOUT, E_PIPELINE, E_PLACE, E_SYSTEM, E_MEMORY. */
TUNDISH_API tundish_status tundish_open(const tundish_options *options,
                                        tundish_reader **ret_reader);

/* Leave the group in good order. Batches still held are gone. Accepts NULL. */
TUNDISH_API void tundish_close(tundish_reader *reader);

/* Borrow the next batch, waiting up to timeout_ns (0 polls, TUNDISH_FOREVER waits).
 *
 * END comes once at the end of an epoch, on the same step in every replica. END_OF_STREAM, STOPPED
 * and E_DATA stay. E_PEER_LOST is said once for each replica lost; batches follow if a successor
 * takes its place in time, else it stays. At most slots - 2 batches may be held: one more is
 * E_ARGUMENT at once, not a deadlock. One that is held also keeps its place in the ring: after as
 * many batches more as the lane has slots, the next waits for its release. E_SERVER_GONE comes once
 * what was published is drained; the next call attaches anew, waiting up to server_timeout_ns, and
 * goes on where this reader stood. */
TUNDISH_API tundish_status tundish_next(tundish_reader *reader, int64_t timeout_ns,
                                        const tundish_batch **ret_batch);

/* As tundish_next, but at the epoch's end returns NO_VALUE, again and again, until tundish_restart
 * begins the next epoch. */
TUNDISH_API tundish_status tundish_next_optional(tundish_reader *reader, int64_t timeout_ns,
                                                 const tundish_batch **ret_batch);

/* Begin the next epoch, as iter(dataset) anew: what is left of this one is passed over. It ends
 * early for the server too once every replica of the group has asked. Nothing happens where an
 * epoch is about to begin anyway. A reader that was opened without a place may follow one that
 * stopped in the midst of an epoch: call this first to have whole epochs. Batches held stay valid.
 *
 * In an evaluation (distribute.evaluation_shards) the readers that are still in the epoch get every
 * shard of it that this one was not given to its end, and the next epoch begins when they have done
 * them; at once if there are none, as after a reader that died. A reader that has returned nothing
 * yet stays in an epoch of which no shard is done, and shares it with the others. */
TUNDISH_API tundish_status tundish_restart(tundish_reader *reader);

/* Give a batch back, in any order, from any thread. Never blocks, cannot fail. Accepts NULL. */
TUNDISH_API void tundish_release(tundish_reader *reader, const tundish_batch *batch);

/* A column of a batch. As it lies in shared memory if possible; otherwise decoded on first use into
 * memory that the reader owns and uses again. The tensor lives as long as the batch.
 * Returns OK, E_ARGUMENT (no such column), E_CORRUPT, E_MEMORY. */
TUNDISH_API tundish_status tundish_tensor_at(const tundish_batch *batch, uint32_t index,
                                             const tundish_tensor **ret_tensor);
TUNDISH_API tundish_status tundish_tensor_named(const tundish_batch *batch, const char *name,
                                                const tundish_tensor **ret_tensor);

/* deliver.widen: write a column as widen_dtype of its spec, value * widen_scale + widen_offset, to
 * memory of the caller's - on the way to a device, say - in one pass. The values of
 * tundish_tensor_at, in the same order; what else makes up the tensor is as there. They are made in
 * float32 (float64 if that is wanted), each operation rounded. Writes up to `capacity` bytes and
 * always the number needed; E_ARGUMENT if that is more, or the spec's widen_dtype is 0. */
TUNDISH_API tundish_status tundish_tensor_widen(const tundish_batch *batch, uint32_t index,
                                                void *values, size_t capacity, size_t *ret_bytes);

/* The columns of every batch. Lives as long as the reader. */
TUNDISH_API tundish_status tundish_element_spec(tundish_reader *reader,
                                                const tundish_spec **ret_spec);

/* A column by index, or NULL. Steps by the library's size of the struct, not the header's. */
static inline const tundish_column_spec *
tundish_column_spec_at(const tundish_spec *spec, uint32_t index)
{
    if (index >= spec->column_count)
        return NULL;
    return (const tundish_column_spec *)(const void *)((const char *)spec->columns +
                                                       (size_t)index * spec->column_bytes);
}

/* Who this reader is: its replica on this node, the replicas there, and the slots of its lane. */
typedef struct tundish_info {
    size_t size; /* set by the caller */
    uint32_t replica;
    uint32_t replica_count;       /* on this node */
    uint32_t first_replica;       /* of this node, counted over all nodes */
    uint32_t total_replica_count; /* over all nodes */
    uint32_t slot_count;
    uint32_t held_count;  /* batches not yet released */
    const char *stream;   /* lives as long as the reader */
    uint64_t first_epoch; /* where the server let this reader in: a group that comes to */
    uint64_t first_step;  /* a session under way begins at the oldest batch kept, or with
                           * the next epoch; UINT64_MAX: nothing was published yet. In
                           * an evaluation first_step is how many shards of that epoch
                           * were done already */
} tundish_info;
TUNDISH_API tundish_status tundish_get_info(tundish_reader *reader, tundish_info *ret_info);

/* Where this reader stands: what to put in a checkpoint. Opening at it gives the batch after the
 * last one returned. Writes up to `capacity` bytes and always the number needed; E_ARGUMENT if that
 * is more. Any replica's place will do for all of a group that has taken equal steps. */
TUNDISH_API tundish_status tundish_place_save(tundish_reader *reader, void *bytes, size_t capacity,
                                              size_t *ret_bytes);

/* The same as printable text, ended by a NUL that *ret_bytes includes. */
TUNDISH_API tundish_status tundish_place_token(tundish_reader *reader, char *token, size_t capacity,
                                               size_t *ret_bytes);

/* A descriptor that polls readable when tundish_next(reader, 0, ...) may have something to say; it
 * stays so until that call has nothing. Belongs to the reader: do not read or close it. */
TUNDISH_API tundish_status tundish_descriptor(tundish_reader *reader, int *ret_descriptor);

/* "E_SERVER_GONE" and so on; "?" for a number that is none. */
TUNDISH_API const char *tundish_status_name(tundish_status status);

/* What the caller can do about a status, as a sentence. */
TUNDISH_API const char *tundish_status_text(tundish_status status);

/* "int64" and so on, and the bytes of one value (0 for strings). */
TUNDISH_API const char *tundish_dtype_name(tundish_dtype dtype);
TUNDISH_API size_t tundish_dtype_bytes(tundish_dtype dtype);

/* This thread's explanation of the last call that failed; never NULL. */
TUNDISH_API const char *tundish_last_error(void);

/* "0.1.0", of the library. */
TUNDISH_API const char *tundish_version(void);

#ifdef __cplusplus
}
#endif

#endif
