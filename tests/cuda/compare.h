/* compare.h - a batch on the device against the same batch on the host, bit by bit. */
#ifndef CUDA_COMPARE_H
#define CUDA_COMPARE_H

#include <stdbool.h>

#include "cuda/driver.h"

/* What a test needs of the driver beside the library's own calls. The context is current after
 * this. */
struct trainer_device {
    const struct cuda_driver *driver;
    cu_stream stream;
    cu_result (*copy_to_host)(void *, cu_address, size_t);
};
void trainer_device_open(struct trainer_device *ret_device);
void trainer_device_close(struct trainer_device *device);

/* A symbol of libcuda.so.1, or NULL. */
void *trainer_device_symbol(const char *symbol);

/* Columns as the host has them; deliver.widen applied where the spec names it. False and a line on
 * stderr if one differs. The stream has waited for the batch. */
bool compare_batches(const struct trainer_device *device, tundish_reader *reader,
                     const tundish_batch *host, const tundish_cuda_batch *batch);

#endif
