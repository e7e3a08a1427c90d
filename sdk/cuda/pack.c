/* pack.c - first the layout, then one pass over the bytes. */
#include "cuda/pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

enum { PLANE_MAX = INT32_MAX / 2 }; /* the kernel counts pixels and channels in 32 bits */

tundish_status
pack_open(const tundish_spec *spec, const struct pack_numbers *numbers, struct pack *ret_pack)
{
    uint32_t count = spec->column_count;

    *ret_pack = (struct pack){ .spec = spec, .numbers = numbers };
    /* Splits, indices, offsets, values. */
    ret_pack->parts = calloc(count * (TUNDISH_RANK_MAX + 3) + 1, sizeof *ret_pack->parts);
    ret_pack->jobs = calloc(count + 1, sizeof *ret_pack->jobs);
    ret_pack->columns = calloc(count + 1, sizeof *ret_pack->columns);
    if (ret_pack->parts != NULL && ret_pack->jobs != NULL && ret_pack->columns != NULL)
        return TUNDISH_OK;
    pack_close(ret_pack);
    return tnd_fail(TUNDISH_E_MEMORY, "no memory for the layout of %u columns", count);
}

void
pack_close(struct pack *pack)
{
    free(pack->parts);
    free(pack->jobs);
    free(pack->columns);
    *pack = (struct pack){ 0 };
}

/* All parts begin at PACK_ALIGN, which consumers of the columns may rely on. */
static uint64_t
take_room(uint64_t *end, uint64_t bytes)
{
    uint64_t offset = *end;

    *end += (bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    return offset;
}

/* Returns where the bytes will be. */
static uint64_t
add_part(struct pack *pack, const void *from, uint64_t bytes)
{
    uint64_t offset = take_room(&pack->copied_bytes, bytes);

    pack->parts[pack->part_count++] =
        (struct pack_part){ .from = from, .bytes = bytes, .offset = offset };
    return offset;
}

/* The parts of a column beside its values, and all of its tensor that is known without them. */
static void
add_frame(struct pack *pack, struct pack_column *column, const tundish_tensor *tensor)
{
    tundish_cuda_tensor *made = &column->tensor;

    *made = (tundish_cuda_tensor){
        .name = tensor->name,
        .dtype = tensor->dtype,
        .kind = tensor->kind,
        .rank = tensor->rank,
        .ragged_rank = tensor->ragged_rank,
        .shape = column->shape,
        .element_count = tensor->element_count,
    };
    memcpy(column->shape, tensor->shape, tensor->rank * sizeof *column->shape);
    for (uint32_t k = 0; k < tensor->ragged_rank; k++) {
        column->split_counts[k] = tensor->row_split_counts[k];
        column->splits[k] =
            add_part(pack, tensor->row_splits[k], tensor->row_split_counts[k] * sizeof(int64_t));
    }
    if (tensor->ragged_rank > 0) {
        made->row_splits = column->splits;
        made->row_split_counts = column->split_counts;
    }
    if (tensor->indices != NULL)
        made->indices =
            add_part(pack, tensor->indices, tensor->element_count * tensor->rank * sizeof(int64_t));
    if (tensor->string_offsets != NULL)
        made->string_offsets =
            add_part(pack, tensor->string_offsets, (tensor->element_count + 1) * sizeof(int64_t));
}

/* Dimensions 1 and 2 go after dimension 3, in the shape as in the values. */
static tundish_status
put_channels_first(struct pack_column *column, struct expansion *job)
{
    int64_t *shape = column->shape, channels = shape[3];
    uint64_t plane = (uint64_t)shape[1] * (uint64_t)shape[2];

    if (plane > PLANE_MAX || channels > PLANE_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "column %s: images of %" PRId64 " x %" PRId64 " x %" PRId64
                        " are too large for layout NCHW on a device: leave layout out",
                        column->tensor.name, shape[1], shape[2], channels);
    memmove(&shape[2], &shape[1], 2 * sizeof *shape);
    shape[1] = channels;
    job->channels = (uint32_t)channels;
    job->plane = (uint32_t)plane;
    return TUNDISH_OK;
}

/* Values that the kernel makes of what is copied. `to` is given a place later. */
static tundish_status
add_job(struct pack *pack, struct pack_column *column, const tundish_column_spec *spec,
        const struct pack_numbers *numbers, const tundish_stored *stored)
{
    tundish_cuda_tensor *made = &column->tensor;
    tundish_dtype dtype = made->dtype;
    struct expansion *job = &pack->jobs[pack->job_count++];
    tundish_status status = TUNDISH_OK;

    if (spec->widen_dtype != 0)
        made->dtype = spec->widen_dtype;
    made->data_bytes = made->element_count * tundish_dtype_bytes(made->dtype);
    *job = (struct expansion){
        .from = made->data,
        .to = (uint64_t)(column - pack->columns),
        .count = made->element_count,
        .first_block = pack->blocks,
        .numbers = numbers->address,
        .base = stored->base,
        .period = numbers->period,
        .is_finite = numbers->are_finite,
        .is_packed = stored->is_packed != 0,
        .bits = (uint8_t)stored->bits,
        .value_bytes = (uint8_t)tundish_dtype_bytes(dtype),
        .from_dtype = (uint8_t)dtype,
        .to_dtype = (uint8_t)spec->widen_dtype,
    };
    if (spec->widen_layout == TUNDISH_NCHW)
        status = put_channels_first(column, job);
    pack->blocks += (job->count + expand_block_values(job) - 1) / expand_block_values(job);
    return status;
}

/* Stored, not decoded: what the kernel can expand crosses the bus as small as it lies in its slot.
 */
static tundish_status
add_column(struct pack *pack, const tundish_batch *batch, uint32_t index)
{
    const tundish_column_spec *spec = tundish_column_spec_at(pack->spec, index);
    struct pack_column *column = &pack->columns[index];
    const tundish_tensor *tensor = NULL;
    tundish_stored stored = { 0 };
    tundish_status status = tundish_tensor_stored(batch, index, &tensor, &stored);

    if (status != TUNDISH_OK)
        return tnd_fail(status, "%s", tundish_last_error());
    add_frame(pack, column, tensor);
    column->tensor.data = add_part(pack, stored.bytes, stored.byte_count);
    column->tensor.data_bytes = stored.byte_count;
    /* A column without values needs no block of the kernel, but its dtype all the same. */
    if (stored.is_packed || spec->widen_dtype != 0)
        return add_job(pack, column, spec, &pack->numbers[index], &stored);
    return TUNDISH_OK;
}

tundish_status
pack_plan(struct pack *pack, const tundish_batch *batch)
{
    tundish_status status = TUNDISH_OK;

    pack->part_count = pack->job_count = 0;
    pack->blocks = pack->copied_bytes = 0;
    take_room(&pack->copied_bytes, pack->spec->column_count * sizeof *pack->jobs);
    pack->table_bytes = pack->copied_bytes;
    for (uint32_t i = 0; i < batch->tensor_count && status == TUNDISH_OK; i++)
        status = add_column(pack, batch, i);
    if (status != TUNDISH_OK)
        return status;
    /* After everything that is copied, so that the copy has no holes. */
    pack->device_bytes = pack->copied_bytes;
    for (uint32_t i = 0; i < pack->job_count; i++) {
        struct expansion *job = &pack->jobs[i];
        tundish_cuda_tensor *made = &pack->columns[job->to].tensor;

        job->to = made->data = take_room(&pack->device_bytes, made->data_bytes);
    }
    return TUNDISH_OK;
}

/* Late, because a batch's layout tells how much memory it needs, and only that memory's address
 * tells the kernel where its columns lie. */
void
pack_place(struct pack *pack, cu_address address)
{
    for (uint32_t i = 0; i < pack->job_count; i++) {
        pack->jobs[i].from += address;
        pack->jobs[i].to += address;
    }
    for (uint32_t i = 0; i < pack->spec->column_count; i++) {
        tundish_cuda_tensor *made = &pack->columns[i].tensor;

        made->data += address;
        made->indices += made->indices != 0 ? address : 0;
        made->string_offsets += made->string_offsets != 0 ? address : 0;
        for (uint32_t k = 0; k < made->ragged_rank; k++)
            pack->columns[i].splits[k] += address;
    }
}

void
pack_write(const struct pack *pack, uint8_t *piece)
{
    memcpy(piece, pack->jobs, pack->job_count * sizeof *pack->jobs);
    for (uint32_t i = 0; i < pack->part_count; i++)
        if (pack->parts[i].pinned == NULL && pack->parts[i].bytes > 0)
            memcpy(piece + pack->parts[i].offset, pack->parts[i].from, pack->parts[i].bytes);
}
