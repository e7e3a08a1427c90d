/* region.h - one batch's memory: pinned on the host, where its columns are packed, and on the
 * device. Also an entry of the queue between the reading thread and the caller, for batches and for
 * other outcomes of tundish_next.
 */
#ifndef TND_CUDA_REGION_H
#define TND_CUDA_REGION_H

#include <stdbool.h>

#include "cuda/pin.h"

enum { REGION_STREAMS = 4 };

/* How batches get to the device, and what that took so far. The thread that fills regions owns it.
 */
struct way {
    const struct device *device;
    uint64_t limit; /* most bytes of a batch on the device, 0: none */
    struct pin pin;
    uint64_t copied_bytes, copy_ns, kernel_ns;
};

struct region {
    tundish_cuda_batch batch; /* first: the caller's pointer is ours */
    struct region *next;      /* in the queue, or among the free ones */
    struct region *sibling;   /* among all */
    bool is_kept;             /* the caller's, by tundish_cuda_keep */
    struct pack pack;
    uint8_t *host; /* host_bytes of pinned memory */
    cu_address memory;
    uint64_t host_bytes, device_bytes;
    cu_event begun, copied;          /* the memory is free; the copies are made */
    cu_event ready;                  /* the batch is on the device */
    cu_event done[REGION_STREAMS];   /* a stream of the caller's needs it no more */
    cu_stream users[REGION_STREAMS]; /* these streams */
    uint32_t user_count;
    bool was_filled;       /* begun, copied and ready were recorded */
    bool reads_slot;       /* the device copies out of the batch's slot */
    bool must_synchronize; /* done could not be recorded: wait for the whole device */
    bool was_in_capture;   /* so it was, since a stream was being captured */
    tundish_status status; /* OK: a batch; else what tundish_next said */
    char text[1024];       /* of the status */
    char *token;           /* the place after it; "" where there is none */
    size_t token_capacity;
};

tundish_status region_open(const struct device *device, const tundish_spec *spec,
                           struct region *ret_region);
void region_close(const struct device *device, struct region *region); /* accepts zeros */

/* Pack the batch, and start its way to the device. The batch may be released after this call, or,
 * if the region then reads its slot, after region_await_copy. The device's context is current. */
tundish_status region_fill(struct way *way, struct region *region, const tundish_batch *batch);
void region_await_copy(const struct device *device, const struct region *region);

/* Put the kernel that makes the columns of what was copied into the device's stream. region_fill
 * did so; doing it again makes the same columns. */
tundish_status region_expand(const struct device *device, const struct region *region);

/* The caller has put its use of the batch into `stream`, or what stands for streams. Cannot fail.
 * One thread at a time. */
void region_end_use(const struct device *device, struct region *region, cu_stream stream);

#endif
