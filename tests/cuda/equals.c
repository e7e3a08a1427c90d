/* equals.c - reads a stream twice, to the host and to a device, and compares all of it.
 *
 * Two groups of one server ($TUNDISH_SERVER), "host" and "device". Prints how many batches were
 * alike, and how many of their columns were stored packed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/compare.h"

#define PATIENCE (INT64_C(300) * 1000000000)

static int
fail(const char *what, const char *why)
{
    fprintf(stderr, "equals: %s: %s\n", what, why);
    return 1;
}

static uint64_t
count_packed(const tundish_batch *batch)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_tensor *tensor;
        tundish_stored stored;

        if (tundish_tensor_stored(batch, i, &tensor, &stored) == TUNDISH_OK)
            count += stored.is_packed != 0;
    }
    return count;
}

int
main(void)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_cuda_options cuda_options = TUNDISH_CUDA_OPTIONS_INIT;
    struct trainer_device device;
    tundish_reader *host, *ahead;
    tundish_cuda *cuda;
    tundish_status status, other;
    uint64_t batches = 0, packed = 0, ends = 0;

    options.group = "host";
    if (tundish_open(&options, &host) != TUNDISH_OK)
        return fail("host", tundish_last_error());
    options.group = "device";
    if (tundish_open(&options, &ahead) != TUNDISH_OK)
        return fail("device", tundish_last_error());
    if (tundish_cuda_open(ahead, &cuda_options, &cuda) != TUNDISH_OK)
        return fail("device", tundish_cuda_last_error());
    trainer_device_open(&device);
    for (;;) {
        const tundish_batch *batch;
        const tundish_cuda_batch *made;

        status = tundish_next(host, PATIENCE, &batch);
        other = tundish_cuda_next(cuda, PATIENCE, &made);
        if (status != other)
            return fail("a status differs", tundish_status_name(other));
        if (status == TUNDISH_END) {
            ends++;
            continue;
        }
        if (status != TUNDISH_OK)
            break;
        if (tundish_cuda_wait(cuda, made, device.stream) != TUNDISH_OK)
            return fail("wait", tundish_cuda_last_error());
        if (!compare_batches(&device, host, batch, made))
            return 1;
        packed += count_packed(batch);
        batches++;
        tundish_release(host, batch);
        tundish_cuda_release(cuda, made, device.stream);
    }
    printf("%" PRIu64 " batches, %" PRIu64 " epochs, %" PRIu64 " packed columns, then %s\n",
           batches, ends, packed, tundish_status_name(status));
    trainer_device_close(&device);
    tundish_cuda_close(cuda);
    tundish_close(ahead);
    tundish_close(host);
    return 0;
}
