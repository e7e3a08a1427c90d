/* device.h - one GPU as this library uses it: its primary context, a stream for copies, the kernel,
 * and the constants of deliver.widen. */
#ifndef TND_CUDA_DEVICE_H
#define TND_CUDA_DEVICE_H

#include <stdbool.h>

#include "cuda/driver.h"
#include "cuda/pack.h"

struct device {
    const struct cuda_driver *driver;
    cu_device number;
    cu_context context; /* NULL: not retained */
    cu_stream stream;
    cu_module module;
    cu_function expand;
    cu_address constants;
    struct pack_numbers *numbers; /* one a column */
};

tundish_status device_open(const tundish_cuda_options *options, const tundish_spec *spec,
                           struct device *ret_device);
void device_close(struct device *device); /* accepts zeros, and what was half opened */

/* Between these the context is this thread's current one. Leave is to be called only after an enter
 * that succeeded. */
tundish_status device_enter(const struct device *device);
void device_leave(const struct device *device);

/* Do calls on this stream go into a graph, or would they break one? The context is current. */
bool device_is_capturing(const struct device *device, cu_stream stream);

#endif
