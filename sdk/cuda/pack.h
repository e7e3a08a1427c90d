/* pack.h - a batch's columns side by side in one piece of memory, as they are copied to a device.
 *
 * The piece begins with the kernel's table, one struct expansion a column that it makes. After it
 * lies each buffer as it is stored; after all of these, on the device only, the columns that the
 * kernel makes. Every part begins at a multiple of PACK_ALIGN bytes.
 */
#ifndef TND_CUDA_PACK_H
#define TND_CUDA_PACK_H

#include <stdbool.h>

#include "cuda/driver.h"
#include "cuda/expand.h"

enum { PACK_ALIGN = 256 };

/* Where the factors and addends of a column's deliver.widen lie on the device. */
struct pack_numbers {
    cu_address address;
    uint32_t period;
    bool are_finite; /* as floats */
};

/* One buffer to copy. */
struct pack_part {
    const void *from;
    const void *pinned; /* from where the device can read it; NULL: it goes with the piece */
    uint64_t bytes, offset;
};

/* The memory that a column's tensor points to. */
struct pack_column {
    tundish_cuda_tensor tensor;
    int64_t shape[TUNDISH_RANK_MAX];
    tundish_cuda_address splits[TUNDISH_RANK_MAX];
    uint64_t split_counts[TUNDISH_RANK_MAX];
};

/* Room for the plan of a batch; used for many, one after the other. */
struct pack {
    const tundish_spec *spec;
    const struct pack_numbers *numbers; /* one a column */
    struct pack_part *parts;
    struct expansion *jobs;
    struct pack_column *columns;
    uint32_t part_count, job_count;
    uint64_t blocks;       /* of the kernel */
    uint64_t table_bytes;  /* of the piece, before the first part */
    uint64_t copied_bytes; /* of the piece, from the host */
    uint64_t device_bytes; /* of the piece, on the device */
};

/* Both pointers must outlive the pack. Close accepts zeros. */
tundish_status pack_open(const tundish_spec *spec, const struct pack_numbers *numbers,
                         struct pack *ret_pack);
void pack_close(struct pack *pack);

/* Lay out a batch. Addresses are offsets in the piece until pack_place. The batch must stay until
 * pack_write. */
tundish_status pack_plan(struct pack *pack, const tundish_batch *batch);

/* The piece begins at this address of the device. */
void pack_place(struct pack *pack, cu_address address);

/* Write the first copied_bytes of the piece, but not parts that are pinned. */
void pack_write(const struct pack *pack, uint8_t *piece);

#endif
