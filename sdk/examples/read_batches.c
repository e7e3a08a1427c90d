/* read_batches.c - print what one replica gets: read_batches [STREAM [STEPS]].
 *
 * The server's socket is taken from TUNDISH_SERVER, the replica from TUNDISH_REPLICA.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <tundish/tundish.h>

static void
print_tensor(const tundish_tensor *tensor)
{
    printf("  %s %s[", tensor->name, tundish_dtype_name(tensor->dtype));
    for (uint32_t i = 0; i < tensor->rank; i++)
        printf("%s%" PRId64, i > 0 ? "," : "", tensor->shape[i]);
    printf("] %" PRIu64 " values", tensor->element_count);
    if (tensor->element_count > 0 && tensor->dtype == TUNDISH_INT64)
        printf(", first %" PRId64, ((const int64_t *)tensor->data)[0]);
    if (tensor->element_count > 0 && tensor->dtype == TUNDISH_FLOAT32)
        printf(", first %g", (double)((const float *)tensor->data)[0]);
    if (tensor->element_count > 0 && tensor->dtype == TUNDISH_STRING)
        printf(", first \"%.*s\"", (int)tensor->string_offsets[1], (const char *)tensor->data);
    printf("\n");
}

static tundish_status
print_batch(const tundish_batch *batch)
{
    printf("epoch %" PRIu64 " step %" PRIu64 "\n", batch->epoch, batch->step);
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_tensor *tensor;
        tundish_status status = tundish_tensor_at(batch, i, &tensor);

        if (status != TUNDISH_OK)
            return status;
        print_tensor(tensor);
    }
    return TUNDISH_OK;
}

int
main(int argc, char **argv)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;
    long left = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
    tundish_status status;

    options.stream = argc > 1 ? argv[1] : NULL;
    status = tundish_open(&options, &reader);
    while (status == TUNDISH_OK && left-- > 0) {
        const tundish_batch *batch;

        status = tundish_next(reader, TUNDISH_FOREVER, &batch);
        if (status != TUNDISH_OK)
            break;
        status = print_batch(batch);
        tundish_release(reader, batch);
    }
    if (status > TUNDISH_OK)
        printf("%s\n", tundish_status_name(status));
    if (status < TUNDISH_OK)
        fprintf(stderr, "%s: %s\n", tundish_status_name(status), tundish_last_error());
    tundish_close(reader);
    return status < TUNDISH_OK ? 1 : 0;
}
