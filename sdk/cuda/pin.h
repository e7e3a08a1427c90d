/* pin.h - the server's shared memory, registered with the driver, so that the device reads batches
 * out of it without a copy on the host.
 *
 * The reader's mapping comes and goes with servers, so the library registers one of its own of the
 * same pages. Most drivers take only memory that may be written to: there it may, if the server did
 * not seal it, until it is registered. Drivers were seen that never return from a registration: it
 * runs on a thread of its own, and when that takes too long batches are copied through the host,
 * and the thread takes back by itself what it did.
 */
#ifndef TND_CUDA_PIN_H
#define TND_CUDA_PIN_H

#include <stdbool.h>

#include "cuda/device.h"

struct trial;

struct pin {
    const struct device *device;
    tundish_cuda_mode asked;
    tundish_device_why why;
    uint64_t number;      /* the mapping that was last looked at */
    const uint8_t *bytes; /* where the reader has it */
    uint64_t byte_count;
    int descriptor;      /* of its memory */
    struct trial *trial; /* NULL: it is not registered */
};

void pin_open(struct pin *pin, const struct device *device, tundish_cuda_mode asked);
void pin_close(struct pin *pin); /* accepts zeros; the device's context is current */

/* Register the reader's mapping if it is another one than at the last call. The thread that uses
 * the reader; the device's context is current. Cannot fail: where it cannot be registered, `why`
 * says why not. */
void pin_follow(struct pin *pin, tundish_reader *reader);

tundish_device_mode pin_mode(const struct pin *pin);

/* The registered address of these bytes; NULL: they are not registered, or not in one piece. */
const void *pin_find(const struct pin *pin, const void *from, uint64_t bytes);

#endif
