/* compare.c - copies each part of a device's column back. */
#include "cuda/compare.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must_work(const struct cuda_driver *driver, cu_result result, const char *what)
{
    const char *name = "?";

    if (result == CU_SUCCESS)
        return;
    driver->error_name(result, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    abort();
}

void *
trainer_device_symbol(const char *symbol)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), symbol);
}

void
trainer_device_open(struct trainer_device *ret_device)
{
    void *copy = trainer_device_symbol("cuMemcpyDtoH_v2");
    cu_context context;

    if (cuda_driver_open(&ret_device->driver) != TUNDISH_OK || copy == NULL)
        abort();
    memcpy(&ret_device->copy_to_host, &copy, sizeof copy);
    must_work(ret_device->driver, ret_device->driver->context_retain(&context, 0), "retain");
    must_work(ret_device->driver, ret_device->driver->context_push(context), "push");
    must_work(ret_device->driver,
              ret_device->driver->stream_create(&ret_device->stream, CU_STREAM_NON_BLOCKING, 0),
              "stream");
}

void
trainer_device_close(struct trainer_device *device)
{
    cu_context context;

    device->driver->stream_destroy(device->stream);
    device->driver->context_pop(&context);
    device->driver->context_release(0);
}

static bool
same_bytes(const struct trainer_device *device, const char *name, const char *part,
           const void *wanted, cu_address address, uint64_t bytes)
{
    uint8_t *found;
    bool is_same = true;

    if (bytes == 0)
        return true;
    found = malloc(bytes);
    must_work(device->driver, device->copy_to_host(found, address, bytes), "copy to the host");
    for (uint64_t i = 0; i < bytes && is_same; i++)
        if (found[i] != ((const uint8_t *)wanted)[i]) {
            fprintf(stderr, "column %s, %s: byte %" PRIu64 " of %" PRIu64 " is %02x, not %02x\n",
                    name, part, i, bytes, found[i], ((const uint8_t *)wanted)[i]);
            is_same = false;
        }
    free(found);
    return is_same && address % 256 == 0;
}

static bool
same_values(const struct trainer_device *device, const tundish_batch *host, uint32_t index,
            const tundish_column_spec *spec, const tundish_tensor *tensor,
            const tundish_cuda_tensor *made)
{
    size_t bytes = 0;
    void *widened;
    bool is_same;

    if (spec->widen_dtype == 0)
        return made->dtype == tensor->dtype && made->data_bytes == tensor->data_bytes &&
               same_bytes(device, spec->name, "values", tensor->data, made->data,
                          tensor->data_bytes);
    widened = malloc(tensor->element_count * 8 + 1);
    is_same = tundish_tensor_widen(host, index, widened, tensor->element_count * 8, &bytes) ==
                  TUNDISH_OK &&
              made->dtype == spec->widen_dtype && made->data_bytes == bytes &&
              same_bytes(device, spec->name, "widened values", widened, made->data, bytes);
    free(widened);
    return is_same;
}

/* As deliver.widen lays it out. */
static bool
same_shape(const tundish_column_spec *spec, const tundish_tensor *tensor,
           const tundish_cuda_tensor *made)
{
    const int64_t *shape = tensor->shape;

    if (spec->widen_layout == TUNDISH_NCHW)
        return made->shape[0] == shape[0] && made->shape[1] == shape[3] &&
               made->shape[2] == shape[1] && made->shape[3] == shape[2];
    return memcmp(made->shape, shape, tensor->rank * sizeof *shape) == 0;
}

static bool
same_column(const struct trainer_device *device, const tundish_batch *host, uint32_t index,
            const tundish_column_spec *spec, const tundish_cuda_tensor *made)
{
    const tundish_tensor *tensor = NULL;
    bool is_same;

    if (tundish_tensor_at(host, index, &tensor) != TUNDISH_OK)
        return false;
    is_same = made->kind == tensor->kind && made->rank == tensor->rank &&
              made->ragged_rank == tensor->ragged_rank &&
              made->element_count == tensor->element_count && same_shape(spec, tensor, made) &&
              strcmp(made->name, tensor->name) == 0 &&
              same_values(device, host, index, spec, tensor, made);
    for (uint32_t k = 0; k < tensor->ragged_rank && is_same; k++)
        is_same = made->row_split_counts[k] == tensor->row_split_counts[k] &&
                  same_bytes(device, spec->name, "splits", tensor->row_splits[k],
                             made->row_splits[k], tensor->row_split_counts[k] * 8);
    if (tensor->indices != NULL && is_same)
        is_same = same_bytes(device, spec->name, "indices", tensor->indices, made->indices,
                             tensor->element_count * tensor->rank * 8);
    if (tensor->string_offsets != NULL && is_same)
        is_same = same_bytes(device, spec->name, "offsets", tensor->string_offsets,
                             made->string_offsets, (tensor->element_count + 1) * 8);
    return is_same;
}

bool
compare_batches(const struct trainer_device *device, tundish_reader *reader,
                const tundish_batch *host, const tundish_cuda_batch *batch)
{
    const tundish_spec *spec = NULL;

    must_work(device->driver, device->driver->stream_synchronize(device->stream), "synchronize");
    if (tundish_element_spec(reader, &spec) != TUNDISH_OK || host->epoch != batch->epoch ||
        host->step != batch->step || host->tensor_count != batch->tensor_count) {
        fprintf(stderr, "epoch %" PRIu64 ", step %" PRIu64 " came, not %" PRIu64 ", %" PRIu64 "\n",
                batch->epoch, batch->step, host->epoch, host->step);
        return false;
    }
    for (uint32_t i = 0; i < spec->column_count; i++) {
        const tundish_cuda_tensor *made = NULL;
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);

        if (tundish_cuda_tensor_named(batch, column->name, &made) != TUNDISH_OK ||
            !same_column(device, host, i, column, made)) {
            fprintf(stderr, "column %s of epoch %" PRIu64 ", step %" PRIu64 " differs\n",
                    column->name, batch->epoch, batch->step);
            return false;
        }
    }
    return true;
}
