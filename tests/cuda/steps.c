/* steps.c - a trainer with a device, for tests of what stays when it is killed.
 *
 *     cuda_steps [--mode N] [--batches N] [--hold]
 *
 * Prints, and flushes, a line for each thing that comes, before the next is asked for:
 *     batch EPOCH STEP SUM PLACE     SUM: of the column "value", read back from the device
 *     status NAME
 * Where there is no device it says why, and counts what it reads on the host.
 * $PLACE  begin there
 * --hold  waits for a line on its input after each batch
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/compare.h"

#define PATIENCE (INT64_C(300) * 1000000000)

static struct trainer_device device;

static int64_t
sum_of(const tundish_cuda_batch *batch)
{
    const tundish_cuda_tensor *tensor;
    int64_t *values, sum = 0;

    if (tundish_cuda_tensor_named(batch, "value", &tensor) != TUNDISH_OK)
        abort();
    values = malloc(tensor->data_bytes + 1);
    if (device.driver->stream_synchronize(device.stream) != CU_SUCCESS ||
        device.copy_to_host(values, tensor->data, tensor->data_bytes) != CU_SUCCESS)
        abort();
    for (uint64_t i = 0; i < tensor->element_count; i++)
        sum += values[i];
    free(values);
    return sum;
}

static void
tell_batch(tundish_cuda *cuda, const tundish_cuda_batch *batch)
{
    static char place[1 << 16];
    size_t bytes;

    if (tundish_cuda_place_token(cuda, place, sizeof place, &bytes) != TUNDISH_OK)
        strcpy(place, "-");
    printf("batch %" PRIu64 " %" PRIu64 " %" PRId64 " %s\n", batch->epoch, batch->step,
           sum_of(batch), place);
}

/* Returns what ended it. */
static tundish_status
read_all(tundish_cuda *cuda, long batches, bool holds)
{
    tundish_status status = TUNDISH_OK;
    char line[16];

    while (status >= TUNDISH_OK && status != TUNDISH_END_OF_STREAM && batches != 0) {
        const tundish_cuda_batch *batch;

        status = tundish_cuda_next(cuda, PATIENCE, &batch);
        if (status == TUNDISH_OK && tundish_cuda_wait(cuda, batch, device.stream) == TUNDISH_OK) {
            tell_batch(cuda, batch);
            tundish_cuda_release(cuda, batch, device.stream);
            batches--;
        } else {
            printf("status %s\n", tundish_status_name(status));
        }
        fflush(stdout);
        if (holds && fgets(line, sizeof line, stdin) == NULL)
            break;
    }
    return status;
}

/* Where there is no device. */
static void
read_on_the_host(tundish_reader *reader)
{
    const tundish_batch *batch;
    uint64_t count = 0;
    tundish_status status;

    while ((status = tundish_next(reader, PATIENCE, &batch)) >= TUNDISH_OK &&
           status != TUNDISH_END_OF_STREAM)
        if (status == TUNDISH_OK) {
            count++;
            tundish_release(reader, batch);
        }
    printf("host %" PRIu64 " batches, then %s\n", count, tundish_status_name(status));
}

int
main(int argc, char **argv)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_cuda_options cuda_options = TUNDISH_CUDA_OPTIONS_INIT;
    tundish_reader *reader;
    tundish_cuda *cuda;
    long batches = -1;
    bool holds = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--hold") == 0)
            holds = true;
        else if (strcmp(argv[i], "--mode") == 0)
            cuda_options.mode = (tundish_cuda_mode)atoi(argv[++i]);
        else if (strcmp(argv[i], "--batches") == 0)
            batches = atol(argv[++i]);
    }
    options.place_token = getenv("PLACE");
    if (tundish_open(&options, &reader) != TUNDISH_OK) {
        printf("status %s\n", tundish_last_error());
        return 1;
    }
    if (tundish_cuda_open(reader, &cuda_options, &cuda) != TUNDISH_OK) {
        printf("no device: %s\n", tundish_cuda_last_error());
        read_on_the_host(reader);
        tundish_close(reader);
        return 2;
    }
    trainer_device_open(&device);
    (void)read_all(cuda, batches, holds);
    trainer_device_close(&device);
    tundish_cuda_close(cuda);
    tundish_close(reader);
    return 0;
}
