/* cuda_prefetch.c - train on batches that are on the GPU before they are asked for:
 * cuda_prefetch [STREAM [DEVICE]].
 *
 * Where there is no GPU, or no driver for it, it says so and reads to the host. The server's socket
 * is taken from TUNDISH_SERVER, the replica from TUNDISH_REPLICA.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tundish/tundish_cuda.h>

struct totals {
    uint64_t batches, values;
    double waited_s;
};

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Where kernels are launched: all that they need is the stream, and the columns' addresses. */
static tundish_status
train_on_device(tundish_cuda_stream stream, const tundish_cuda_batch *batch, struct totals *totals)
{
    (void)stream;
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_cuda_tensor *tensor;
        tundish_status status = tundish_cuda_tensor_at(batch, i, &tensor);

        if (status != TUNDISH_OK)
            return status;
        /* step<<<..., stream>>>(tensor->data, tensor->element_count) */
        totals->values += tensor->element_count;
    }
    return TUNDISH_OK;
}

static tundish_status
read_to_device(tundish_cuda *cuda, struct totals *totals)
{
    tundish_cuda_stream stream = NULL; /* the default stream of the device */
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK) {
        const tundish_cuda_batch *batch;
        double begun_s = now_s();

        status = tundish_cuda_next(cuda, TUNDISH_FOREVER, &batch);
        if (status != TUNDISH_OK)
            break;
        status =
            tundish_cuda_wait(cuda, batch, stream); /* the stream waits, this thread does not */
        totals->waited_s += now_s() - begun_s;
        if (status == TUNDISH_OK)
            status = train_on_device(stream, batch, totals);
        /* Its memory is used again after what the stream was given until now. */
        tundish_cuda_release(cuda, batch, stream);
        totals->batches++;
    }
    if (status < TUNDISH_OK)
        fprintf(stderr, "%s: %s\n", tundish_status_name(status), tundish_cuda_last_error());
    return status;
}

static tundish_status
read_to_host(tundish_reader *reader, struct totals *totals)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK) {
        const tundish_batch *batch;
        double begun_s = now_s();

        status = tundish_next(reader, TUNDISH_FOREVER, &batch);
        if (status != TUNDISH_OK)
            break;
        totals->waited_s += now_s() - begun_s;
        for (uint32_t i = 0; i < batch->tensor_count && status == TUNDISH_OK; i++) {
            const tundish_tensor *tensor;

            status = tundish_tensor_at(batch, i, &tensor);
            if (status == TUNDISH_OK)
                totals->values += tensor->element_count;
        }
        tundish_release(reader, batch);
        totals->batches++;
    }
    if (status < TUNDISH_OK)
        fprintf(stderr, "%s: %s\n", tundish_status_name(status), tundish_last_error());
    return status;
}

int
main(int argc, char **argv)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_cuda_options cuda_options = TUNDISH_CUDA_OPTIONS_INIT;
    tundish_reader *reader = NULL;
    tundish_cuda *cuda = NULL;
    struct totals totals = { 0 };
    tundish_status status;

    options.stream = argc > 1 ? argv[1] : NULL;
    cuda_options.device = argc > 2 ? atoi(argv[2]) : 0;
    status = tundish_open(&options, &reader);
    if (status != TUNDISH_OK) {
        fprintf(stderr, "%s: %s\n", tundish_status_name(status), tundish_last_error());
        return 1;
    }
    if (tundish_cuda_open(reader, &cuda_options, &cuda) == TUNDISH_OK) {
        status = read_to_device(cuda, &totals);
    } else {
        printf("reading to the host: %s\n", tundish_cuda_last_error());
        status = read_to_host(reader, &totals);
    }
    printf("%" PRIu64 " batches of %" PRIu64 " values, %.1f us for each to be there\n",
           totals.batches, totals.values,
           totals.batches == 0 ? 0 : totals.waited_s * 1e6 / (double)totals.batches);
    tundish_cuda_close(cuda);
    tundish_close(reader);
    return status < TUNDISH_OK ? 1 : 0;
}
