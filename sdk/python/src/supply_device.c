/* supply_device.c - batches in a GPU's memory: tundish_cuda.h, with tensors as tundish.h has them.
 */
#include "supply.h"

#include <stdlib.h>

/* How many batches a program may hold before more memory is taken for them: the one of the loop,
 * one that a name still has, one that is taken ahead. */
enum { DEPTH = 3 };

struct device_supply {
    tundish_reader *reader;
    tundish_cuda *cuda;
};

/* Addresses of the device go where pointers of the host do: nothing here follows them. */
_Static_assert(sizeof(void *) == sizeof(tundish_cuda_address), "addresses fit into pointers");

static tundish_cuda *
cuda_of(void *from)
{
    return ((struct device_supply *)from)->cuda;
}

static tundish_status
device_next(void *from, int64_t timeout_ns, struct lent *ret_lent)
{
    const tundish_cuda_batch *batch;
    tundish_status status = tundish_cuda_next(cuda_of(from), timeout_ns, &batch);

    if (status != TUNDISH_OK)
        return status;
    *ret_lent = (struct lent){
        .lent = batch,
        .facts = {
            .sequence = batch->sequence,
            .epoch = batch->epoch,
            .step = batch->step,
            .tensor_count = batch->tensor_count,
            .flags = batch->flags,
            .shard = batch->shard,
            .visits = batch->visits,
        },
    };
    return TUNDISH_OK;
}

static tundish_status
device_tensor(const void *lent, uint32_t index, tundish_tensor *ret_tensor)
{
    const tundish_cuda_tensor *tensor;
    tundish_status status = tundish_cuda_tensor_at(lent, index, &tensor);

    if (status != TUNDISH_OK)
        return status;
    *ret_tensor = (tundish_tensor){
        .name = tensor->name,
        .dtype = tensor->dtype,
        .kind = tensor->kind,
        .rank = tensor->rank,
        .ragged_rank = tensor->ragged_rank,
        .shape = tensor->shape,
        .element_count = tensor->element_count,
        .data_bytes = tensor->data_bytes,
        .data = (const void *)tensor->data,
        .string_offsets = (const int64_t *)tensor->string_offsets,
        .row_splits = (const int64_t *const *)(const void *)tensor->row_splits,
        .row_split_counts = tensor->row_split_counts,
        .indices = (const int64_t *)tensor->indices,
    };
    return TUNDISH_OK;
}

static tundish_status
device_keep(void *from, const void *lent)
{
    return tundish_cuda_keep(cuda_of(from), lent);
}

/* Each array has told which stream used it. */
static void
device_release(void *from, const void *lent)
{
    tundish_cuda_release(cuda_of(from), lent, TUNDISH_CUDA_NO_STREAM);
}

static tundish_status
device_restart(void *from)
{
    return tundish_cuda_restart(cuda_of(from));
}

static tundish_status
device_place(void *from, char *token, size_t capacity, size_t *ret_bytes)
{
    return tundish_cuda_place_token(cuda_of(from), token, capacity, ret_bytes);
}

static bool
device_has_room(void *from, uint32_t held)
{
    (void)from;
    return held < DEPTH;
}

static void
device_close(void *from)
{
    struct device_supply *supply = from;

    tundish_cuda_close(supply->cuda);
    tundish_close(supply->reader);
}

static tundish_status
device_wait(void *from, const void *lent, tundish_cuda_stream stream)
{
    return tundish_cuda_wait(cuda_of(from), lent, stream);
}

static void
device_used(void *from, const void *lent, tundish_cuda_stream stream)
{
    tundish_cuda_used(cuda_of(from), lent, stream);
}

static const struct supply supply_cuda = {
    .next = device_next,
    .tensor = device_tensor,
    .keep = device_keep,
    .release = device_release,
    .restart = device_restart,
    .place = device_place,
    .has_room = device_has_room,
    .close = device_close,
    .free = free,
    .last_error = tundish_cuda_last_error,
    .wait = device_wait,
    .used = device_used,
};

tundish_status
supply_device(tundish_reader *reader, int device, const struct supply **ret_supply, void **ret_from,
              const char **ret_text)
{
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    struct device_supply *supply = calloc(1, sizeof *supply);
    tundish_status status;

    *ret_text = "no memory for a reader";
    if (supply == NULL)
        return TUNDISH_E_MEMORY;
    options.device = device;
    options.depth = DEPTH;
    supply->reader = reader;
    status = tundish_cuda_open(reader, &options, &supply->cuda);
    if (status != TUNDISH_OK) {
        *ret_text = tundish_cuda_last_error();
        free(supply);
        return status;
    }
    *ret_supply = &supply_cuda;
    *ret_from = supply;
    return TUNDISH_OK;
}
