/* tundish_cuda.h - batches in the memory of a GPU, ready in the order of the caller's stream.
 *
 *     tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
 *     tundish_cuda *cuda = NULL;
 *     const tundish_cuda_batch *batch;
 *     const tundish_cuda_tensor *images;
 *     tundish_status status = tundish_cuda_open(reader, &options, &cuda);
 *
 *     while (status == TUNDISH_OK &&
 *            (status = tundish_cuda_next(cuda, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
 *         status = tundish_cuda_wait(cuda, batch, stream);
 *         if (status == TUNDISH_OK)
 *             status = tundish_cuda_tensor_named(batch, "image", &images);
 *         if (status == TUNDISH_OK)
 *             train_step(stream, images->data);
 *         tundish_cuda_release(cuda, batch, stream);
 *     }
 *     tundish_cuda_close(cuda);
 *
 * A thread of the library reads ahead: it packs the columns of a batch as they are stored, copies
 * them to the device at once, gives the slot back, and starts a kernel that widens (deliver.widen)
 * and unpacks them. The bits are those that tundish.h makes on the host.
 *
 * The library needs no CUDA to link and none to run: it loads libcuda.so.1 when it is opened, and
 * works in the device's primary context, beside the CUDA runtime, PyTorch and JAX.
 *
 * Ownership: the caller closes what tundish_cuda_open returns, before the reader. Until then the
 *            reader belongs to the library: of tundish.h only tundish_element_spec,
 *            tundish_get_info and tundish_descriptor may be called with it.
 * Threads:   one thread at a time, but any thread may call tundish_cuda_wait, tundish_cuda_used,
 *            tundish_cuda_release and tundish_cuda_tensor_*.
 * Memory:    is allocated by tundish_cuda_open and with the first batches; again for a batch that
 *            is larger than all before, unless options.batch_bytes sets a limit.
 * Fork:      in a forked child every call fails; tundish_cuda_close frees nothing on the device.
 * Capture:   no batch is for a stream that is being captured into a graph: see
 *            tundish_cuda_next_into. The thread of the library breaks no capture, unless it has to
 *            wait for the whole device: after TUNDISH_CUDA_ANY_STREAM, and where more than four
 *            streams used a batch. tundish_cuda_close waits for it, too.
 * Errors:    as in tundish.h; the sentence is tundish_cuda_last_error().
 */
#ifndef TUNDISH_CUDA_H
#define TUNDISH_CUDA_H

#include "tundish/tundish_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tundish_cuda tundish_cuda;
typedef struct CUstream_st *tundish_cuda_stream; /* a CUstream or cudaStream_t; NULL: the default */
typedef uint64_t tundish_cuda_address;           /* a CUdeviceptr */

/* In the place of a stream, to tundish_cuda_used and tundish_cuda_release. No stream: all that used
 * the batch were told before. Any stream: it is not known which; before the batch's memory is used
 * again, the library waits for the whole device. */
#define TUNDISH_CUDA_NO_STREAM ((tundish_cuda_stream)(uintptr_t)-1)
#define TUNDISH_CUDA_ANY_STREAM ((tundish_cuda_stream)(uintptr_t)-2)

/* How batches get to the device. COPY: a thread of the library packs them into memory of its own.
 * PIN: the device reads large columns out of the server's shared memory, which is registered with
 * the driver once; where the driver refuses that, or takes longer than 5 s, it is as COPY. Most
 * drivers refuse memory that this process may not write: it may then, until it is registered, and
 * not at all where the server seals it (memory: memfd), which is as COPY. AUTO:
 * PIN where the device can read memory that this process may not write, else COPY. `tundish status`
 * says which one it became, and why. */
typedef enum tundish_cuda_mode {
    TUNDISH_CUDA_AUTO = 0,
    TUNDISH_CUDA_COPY = 1,
    TUNDISH_CUDA_PIN = 2
} tundish_cuda_mode;

/* Start from TUNDISH_CUDA_OPTIONS_INIT. Zero means "default". */
typedef struct tundish_cuda_options {
    size_t size;
    int32_t device;       /* as CUDA_VISIBLE_DEVICES leaves them, from 0 */
    uint32_t depth;       /* batches that are made ready ahead of the caller, 1 to 64; default 2 */
    uint64_t batch_bytes; /* most bytes of a batch on the device; 0: no limit */
    int32_t stream_priority; /* of the copies, as cuStreamCreateWithPriority has it */
    tundish_cuda_mode mode;
} tundish_cuda_options;

#ifdef __cplusplus
#define TUNDISH_CUDA_OPTIONS_INIT                                                                  \
    []() -> tundish_cuda_options {                                                                 \
        tundish_cuda_options options_ = {};                                                        \
        options_.size = sizeof options_;                                                           \
        return options_;                                                                           \
    }()
#else
#define TUNDISH_CUDA_OPTIONS_INIT                                                                  \
    {                                                                                              \
        .size = sizeof(tundish_cuda_options)                                                       \
    }
#endif

/* One column of a batch on the device. Members are those of tundish_tensor, but every address is
 * the device's and aligned to 256 bytes. A column that deliver.widen names has widen_dtype. */
typedef struct tundish_cuda_tensor {
    const char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    uint32_t rank, ragged_rank;
    const int64_t *shape; /* in host memory; sparse: of the dense tensor */
    uint64_t element_count;
    uint64_t data_bytes;
    tundish_cuda_address data;
    tundish_cuda_address string_offsets;    /* or 0 */
    const tundish_cuda_address *row_splits; /* ragged_rank addresses in host memory, or NULL */
    const uint64_t *row_split_counts;
    tundish_cuda_address indices; /* or 0 */
} tundish_cuda_tensor;

/* Allocated only by the library; may grow at the end. Members are those of tundish_batch. */
typedef struct tundish_cuda_batch {
    uint64_t sequence;
    uint64_t epoch;
    uint64_t step;
    uint32_t tensor_count;
    uint32_t flags;
    int64_t shard;
    uint64_t visits;
} tundish_cuda_batch;

/* Begin to read ahead. E_SYSTEM: there is no usable driver or device, which the sentence explains:
 * the reader is as it was and reads to the host. E_ARGUMENT, E_MEMORY. */
TUNDISH_API tundish_status tundish_cuda_open(tundish_reader *reader,
                                             const tundish_cuda_options *options,
                                             tundish_cuda **ret_cuda);

/* Ends the reading ahead. Batches that are ready and were not returned are given back to the server
 * as read; the place is that of the last batch returned. Waits for the device. Batches that are
 * held become invalid, those that are kept do not. Accepts NULL. */
TUNDISH_API void tundish_cuda_close(tundish_cuda *cuda);

/* Lend the next batch; the statuses are those of tundish_next. At most `depth` batches may be held:
 * one more is E_ARGUMENT. The batch may still be on its way: call tundish_cuda_wait. */
TUNDISH_API tundish_status tundish_cuda_next(tundish_cuda *cuda, int64_t timeout_ns,
                                             const tundish_cuda_batch **ret_batch);

/* Make the stream wait until the batch is on the device. Does not wait itself. E_ARGUMENT: the
 * stream is of another device or context, or is being captured, which goes on. */
TUNDISH_API tundish_status tundish_cuda_wait(tundish_cuda *cuda, const tundish_cuda_batch *batch,
                                             tundish_cuda_stream stream);

/* For a batch that several streams use: its memory is used again once this stream, too, has done
 * what was put into it before this call. Never blocks, cannot fail. */
TUNDISH_API void tundish_cuda_used(tundish_cuda *cuda, const tundish_cuda_batch *batch,
                                   tundish_cuda_stream stream);

/* As tundish_keep, for those who hold a batch longer than the depth allows: it stays where it is,
 * no longer counts as held, and is valid until tundish_cuda_release, also after tundish_cuda_close
 * (then without its columns' names). The device's memory for another batch takes its place; it
 * serves again for batches that are kept after this one was returned. Called by the thread that
 * uses `cuda`, and not while another thread releases the batch. Keeping twice is keeping once.
 * E_ARGUMENT, E_MEMORY, E_SYSTEM: the batch is held as before. */
TUNDISH_API tundish_status tundish_cuda_keep(tundish_cuda *cuda, const tundish_cuda_batch *batch);

/* Return a batch: its memory is used again once the stream has done what was put into it before
 * this call. Never blocks, cannot fail. Accepts a NULL batch. The last batch that is returned after
 * tundish_cuda_close waits for the device. While the stream is being captured nothing is put into
 * it: the memory is not used again before tundish_cuda_close, and other memory takes its place. */
TUNDISH_API void tundish_cuda_release(tundish_cuda *cuda, const tundish_cuda_batch *batch,
                                      tundish_cuda_stream stream);

/* For a captured CUDA graph, which reads fixed addresses: copy the values of the next batch to
 * `columns` (one address a column, 0: leave it out; capacities in bytes) in the order of the
 * stream, and release it there. Strings' offsets, splits and indices are not copied. ret_batch and
 * its tensors may be looked at until the next call, for their shapes; their addresses are not to be
 * used. E_ARGUMENT: a column is larger than its capacity, or the stream is being captured (the call
 * belongs before each launch of the graph); the batch is then still to come. */
TUNDISH_API tundish_status tundish_cuda_next_into(tundish_cuda *cuda, int64_t timeout_ns,
                                                  const tundish_cuda_address *columns,
                                                  const uint64_t *capacities,
                                                  tundish_cuda_stream stream,
                                                  const tundish_cuda_batch **ret_batch);

/* A column of a batch. Lives as long as the batch. E_ARGUMENT: no such column. */
TUNDISH_API tundish_status tundish_cuda_tensor_at(const tundish_cuda_batch *batch, uint32_t index,
                                                  const tundish_cuda_tensor **ret_tensor);
TUNDISH_API tundish_status tundish_cuda_tensor_named(const tundish_cuda_batch *batch,
                                                     const char *name,
                                                     const tundish_cuda_tensor **ret_tensor);

/* As tundish_restart: what was read ahead is dropped. Batches that are held stay valid. */
TUNDISH_API tundish_status tundish_cuda_restart(tundish_cuda *cuda);

/* As tundish_place_token: after the last batch that tundish_cuda_next
 * returned, not after the last that was read ahead. */
TUNDISH_API tundish_status tundish_cuda_place_token(tundish_cuda *cuda, char *token,
                                                    size_t capacity, size_t *ret_bytes);

/* Explains the last failed call of this thread to this library; never NULL. */
TUNDISH_API const char *tundish_cuda_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
