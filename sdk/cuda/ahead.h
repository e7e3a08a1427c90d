/* ahead.h - the thread that reads ahead, and the queue of what it has made ready. */
#ifndef TND_CUDA_AHEAD_H
#define TND_CUDA_AHEAD_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda/region.h"

/* A batch out of whose slot the device copies; NULL: none. */
struct copying {
    const tundish_batch *batch;
    struct region *region;
};

struct ahead {
    tundish_reader *reader;
    struct way way;
    struct region *regions; /* all, linked as siblings */
    bool may_hold;          /* the lane has a slot to spare for a batch that is being copied */
    struct copying now, before;
    _Atomic uint64_t waited_ns; /* of the caller, for what is not ready */

    pthread_t thread;
    bool is_running;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    bool stops;
    struct region *free;
    struct region *head, **tail; /* of what is ready, oldest first */
    struct region *spare;        /* given back after they were kept */
};

/* Zeros and a failed open may be closed. Close ends the thread, and frees all regions but those
 * that are kept; no other may be in use on the device any more. */
tundish_status ahead_open(struct ahead *ahead, const struct device *device, tundish_reader *reader,
                          const tundish_cuda_options *options);
void ahead_close(struct ahead *ahead);

/* Start and end the thread. Regions that are ready stay. */
tundish_status ahead_start(struct ahead *ahead);
void ahead_stop(struct ahead *ahead);

/* The oldest that is ready, which stays in the queue. E_TIMEOUT. */
tundish_status ahead_peek(struct ahead *ahead, int64_t timeout_ns, struct region **ret_region);

/* Take the one that was peeked out of the queue. False: it is an outcome after which nothing comes,
 * and stays. */
bool ahead_take(struct ahead *ahead);

/* A region that was taken may be filled again. Any thread. */
void ahead_give(struct ahead *ahead, struct region *region);

/* A region is away for long: let the thread have another. The device's context is current. Any
 * thread. */
tundish_status ahead_replace(struct ahead *ahead);

/* One that was lent for long came back: it serves for the next such loan. Any thread. */
void ahead_spare(struct ahead *ahead, struct region *region);

/* The thread does not run. Drop what is ready of the present epoch. False: the queue does not reach
 * the next one. */
bool ahead_drop_epoch(struct ahead *ahead);

#endif
