/* widen_column.c - deliver.widen: floats made of a column on its way to where the trainer wants
 * them. */
#include "core/widen.h"

#include <inttypes.h>

#include "client/reader.h"
#include "core/dtype.h"
#include "core/status.h"

/* Lists run along the last dimension, so that must have as many indices; only the server's word
 * says so until now. */
static tundish_status
check_lists(const tundish_column_spec *spec, const tundish_tensor *tensor)
{
    int64_t last = tensor->rank == 0 ? 1 : tensor->shape[tensor->rank - 1];

    if ((spec->widen_scale_count == 1 || spec->widen_scale_count == last) &&
        (spec->widen_offset_count == 1 || spec->widen_offset_count == last))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_CORRUPT,
                    "column %s has a last dimension of %" PRId64
                    ", but lists of %u and %u numbers to widen it by",
                    spec->name, last, spec->widen_scale_count, spec->widen_offset_count);
}

tundish_status
tundish_tensor_widen(const tundish_batch *batch, uint32_t index, void *values, size_t capacity,
                     size_t *ret_bytes)
{
    const struct held *held = (const struct held *)(const void *)batch;
    const tundish_tensor *tensor;
    const tundish_column_spec *spec;
    struct tnd_widening widening;
    uint64_t bytes;
    tundish_status status = tundish_tensor_at(batch, index, &tensor);

    if (status != TUNDISH_OK)
        return status;
    spec = tundish_column_spec_at(&held->reader->spec.spec, index);
    if (spec->widen_dtype == 0)
        return tnd_fail(TUNDISH_E_ARGUMENT, "deliver.widen does not name column %s", spec->name);
    status = check_lists(spec, tensor);
    if (status != TUNDISH_OK)
        return status;
    bytes = tensor->element_count * tnd_dtype_bytes(spec->widen_dtype);
    *ret_bytes = bytes;
    if (bytes > capacity)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "column %s needs %" PRIu64 " bytes as %s, but capacity is %zu", spec->name,
                        bytes, tundish_dtype_name(spec->widen_dtype), capacity);
    widening = (struct tnd_widening){
        .dtype = spec->widen_dtype,
        .scale_count = spec->widen_scale_count,
        .offset_count = spec->widen_offset_count,
        .scale = spec->widen_scale,
        .offset = spec->widen_offset,
    };
    if (spec->widen_layout == TUNDISH_NCHW && tensor->element_count > 0) {
        widening.channels = (uint64_t)tensor->shape[3];
        widening.plane = (uint64_t)tensor->shape[1] * (uint64_t)tensor->shape[2];
    }
    return tnd_widen(&widening, tensor->dtype, tensor->data, tensor->element_count, values);
}
