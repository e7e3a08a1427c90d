/* tundish_device.h - for libraries that bring batches to a device, as tundish_cuda.h's does.
 *
 * Ownership, threads, forks and errors: as in tundish.h.
 */
#ifndef TUNDISH_DEVICE_H
#define TUNDISH_DEVICE_H

#include "tundish/tundish.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the values of a column lie in their slot. */
typedef struct tundish_stored {
    const void *bytes; /* aligned to 64, read-only */
    uint64_t byte_count;
    int32_t is_packed; /* 0: bytes are the tensor's data. Else value i is base plus bits i * bits ..
                        * (i + 1) * bits - 1 of them, least significant first, modulo 2^32 or 2^64
                        * as the dtype has 4 or 8 bytes */
    uint32_t bits;     /* 0 to 32 */
    int64_t base;
} tundish_stored;

/* As tundish_tensor_at, but values that are packed stay so: data is NULL then. Offsets,
 * splits and indices are decoded and checked. Lives as long as the batch. */
TUNDISH_API tundish_status tundish_tensor_stored(const tundish_batch *batch, uint32_t index,
                                                 const tundish_tensor **ret_tensor,
                                                 tundish_stored *ret_stored);

/* How batches get to the device: through memory of the reader's process, or out of the server's
 * shared memory, where that could be registered. */
typedef enum tundish_device_mode {
    TUNDISH_DEVICE_COPY = 1,
    TUNDISH_DEVICE_PIN = 2
} tundish_device_mode;

typedef enum tundish_device_why {
    TUNDISH_DEVICE_ASKED = 1,       /* the program asked for that mode */
    TUNDISH_DEVICE_REGISTERED = 2,  /* PIN: the driver took the server's memory */
    TUNDISH_DEVICE_UNSUPPORTED = 3, /* COPY: the device needs memory that may be written to */
    TUNDISH_DEVICE_REFUSED = 4,     /* COPY: the memory could not be registered */
    TUNDISH_DEVICE_SLOW = 5         /* COPY: the driver took too long to take it */
} tundish_device_why;

/* A device's work so far. */
typedef struct tundish_device_figures {
    size_t size; /* set by the caller */
    tundish_device_mode mode;
    tundish_device_why why;
    uint64_t copied_bytes; /* to the device */
    uint64_t copy_ns;      /* during which it copied */
    uint64_t kernel_ns;    /* during which it expanded what was copied */
    uint64_t waited_ns;    /* during which the program waited for a batch on the device */
} tundish_device_figures;

/* Tell the server, for its metrics. While a reader does so, the server packs its columns, since the
 * device expands them (deliver.compression: auto). Never blocks. */
TUNDISH_API tundish_status tundish_tell_device(tundish_reader *reader,
                                               const tundish_device_figures *figures);

/* The shared memory that the reader's batches lie in, but for those that are too large for it. The
 * `number` differs for each mapping that this process ever had; a reader that attaches to another
 * server has a new one. The memory stays mapped, and the descriptor open, until the next
 * tundish_next. */
typedef struct tundish_mapping {
    size_t size; /* set by the caller */
    const void *bytes;
    uint64_t byte_count;
    uint64_t number;
    int32_t descriptor; /* of the memory, the reader's own; -1: there is none */
} tundish_mapping;

TUNDISH_API tundish_status tundish_get_mapping(tundish_reader *reader,
                                               tundish_mapping *ret_mapping);

#ifdef __cplusplus
}
#endif
#endif
