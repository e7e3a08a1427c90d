/* tensor.c - a column as the caller sees it: in the slot as it is, or decoded into scratch memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/reader.h"
#include "core/codec.h"
#include "core/crc32c.h"
#include "core/dtype.h"
#include "core/status.h"
#include "tundish/tundish_device.h"

enum { SCRATCH_ALIGN = 64 };

/* A tensor under construction. */
struct making {
    struct held *held;
    const struct tnd_column *column;
    const tundish_column_spec *spec;
    struct column_use *use;
    tundish_tensor *tensor;             /* of `use` */
    bool stays_packed;                  /* its values are left as they are stored */
    const void *data[TND_RANK_MAX + 2]; /* by buffer of the column */
    uint64_t bytes[TND_RANK_MAX + 2];
};

static tundish_status
damaged(const struct making *making, const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT,
                    "column %s of epoch %" PRIu64 ", step %" PRIu64 " is damaged: %s",
                    making->spec->name, making->held->batch.epoch, making->held->batch.step, what);
}

/* No batch is this large, so a slot that says so is damaged. */
#define DECODED_BYTES_MAX (UINT64_C(1) << 38)

static tundish_status
grow_scratch(struct scratch *scratch, uint64_t bytes)
{
    uint64_t capacity = (bytes / SCRATCH_ALIGN + 1) * SCRATCH_ALIGN;
    void *grown;

    if (scratch->capacity >= capacity && bytes <= DECODED_BYTES_MAX)
        return TUNDISH_OK;
    if (bytes > DECODED_BYTES_MAX)
        return tnd_fail(TUNDISH_E_CORRUPT, "a column cannot have %" PRIu64 " bytes", bytes);
    /* New memory rather than realloc: the old bytes belong to an earlier batch. */
    grown = aligned_alloc(SCRATCH_ALIGN, capacity);
    if (grown == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for %" PRIu64 " bytes of a decoded column",
                        bytes);
    free(scratch->bytes);
    scratch->bytes = grown;
    scratch->capacity = capacity;
    return TUNDISH_OK;
}

static tundish_status
decode_buffer(struct held *held, const struct tnd_buffer *buffer, struct scratch *scratch)
{
    tundish_status status = grow_scratch(scratch, buffer->decoded_bytes);

    if (status == TUNDISH_OK && buffer->codec.number == TND_CODEC_ZSTD && held->context == NULL)
        status = tnd_codec_context_open(0, &held->context);
    if (status == TUNDISH_OK)
        status =
            tnd_codec_decode(&buffer->codec, held->payload + buffer->offset, buffer->stored_bytes,
                             scratch->bytes, buffer->decoded_bytes, held->context);
    return status;
}

static bool
is_packed(const struct tnd_buffer *buffer)
{
    return buffer->codec.number == TND_CODEC_NARROW || buffer->codec.number == TND_CODEC_BITPACK;
}

/* Packed values that nobody here decodes: as many bytes as an encoder makes of them? */
static tundish_status
check_packed(const struct making *making, const struct tnd_buffer *buffer)
{
    uint64_t bytes;

    if (tnd_codec_bound(&buffer->codec, buffer->decoded_bytes, &bytes) != TUNDISH_OK ||
        bytes != buffer->stored_bytes ||
        buffer->codec.value_bytes != tnd_dtype_bytes(making->spec->dtype))
        return damaged(making, "its packed values");
    return TUNDISH_OK;
}

/* Find one buffer's bytes. Check its checksum if the reader asked for that, and decode it unless it
 * is stored as it is, or was decoded for the column's other tensor. */
static tundish_status
take_buffer(struct making *making, uint32_t index)
{
    struct held *held = making->held;
    uint32_t at = making->column->buffer_first + index;
    const struct tnd_buffer *buffer = &held->slot.buffers[at];
    bool is_left = index == making->column->buffer_count - 1 && is_packed(buffer);
    bool is_decoded =
        (making->stays_packed ? making->use->is_ready : making->use->is_framed) && !is_left;
    tundish_status status = TUNDISH_OK;

    if (held->reader->checks && buffer->has_checksum &&
        tnd_crc32c(0, held->payload + buffer->offset, buffer->stored_bytes) != buffer->checksum)
        return damaged(making, "its checksum does not match");
    making->bytes[index] = buffer->decoded_bytes;
    if (is_left && making->stays_packed)
        return check_packed(making, buffer);
    if (buffer->codec.number == TND_CODEC_RAW) {
        making->data[index] = held->payload + buffer->offset;
        return TUNDISH_OK;
    }
    if (!is_decoded)
        status = decode_buffer(held, buffer, &held->scratch[at]);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "decode column %s", making->spec->name);
    making->data[index] = held->scratch[at].bytes;
    return TUNDISH_OK;
}

/* `count` entries from 0 to `last`, never falling: then every pair is a range of what they cut. */
static bool
are_offsets(const int64_t *offsets, uint64_t count, uint64_t last)
{
    bool falls = false; /* collected without a branch, so that the loop is vectorised */

    if (count == 0 || offsets[0] != 0 || (uint64_t)offsets[count - 1] != last)
        return false;
    for (uint64_t i = 1; i < count; i++)
        falls |= offsets[i] < offsets[i - 1];
    return !falls;
}

/* Values (or strings) that a column has, by the bytes of its last buffers. */
static tundish_status
take_values(struct making *making)
{
    tundish_tensor *tensor = making->tensor;
    uint32_t values = making->column->buffer_count - 1;
    size_t value_bytes = tnd_dtype_bytes(making->spec->dtype);
    uint64_t count;

    tensor->data = making->data[values];
    tensor->data_bytes = making->bytes[values];
    if (making->spec->dtype != TUNDISH_STRING) {
        if (tensor->data_bytes % value_bytes != 0)
            return damaged(making, "the size of its values");
        tensor->element_count = tensor->data_bytes / value_bytes;
        return TUNDISH_OK;
    }
    count = making->bytes[values - 1] / sizeof(int64_t);
    if (making->bytes[values - 1] % sizeof(int64_t) != 0 ||
        !are_offsets(making->data[values - 1], count, tensor->data_bytes))
        return damaged(making, "the offsets of its strings");
    tensor->string_offsets = making->data[values - 1];
    tensor->element_count = count - 1;
    return TUNDISH_OK;
}

static tundish_status
take_splits(struct making *making)
{
    struct column_use *use = making->use;
    const struct tnd_column *column = making->column;
    uint64_t lists = (uint64_t)column->shape[0], inner = 1;

    for (uint32_t k = 0; k < column->ragged_rank; k++) {
        uint64_t count = making->bytes[k] / sizeof(int64_t);
        const int64_t *splits = making->data[k];

        if (making->bytes[k] % sizeof(int64_t) != 0 || count != lists + 1 ||
            !are_offsets(splits, count, (uint64_t)splits[count - 1]))
            return damaged(making, "its row splits");
        lists = (uint64_t)splits[count - 1];
        use->splits[k] = splits;
        use->split_counts[k] = count;
    }
    for (uint32_t i = column->ragged_rank + 1; i < column->rank; i++)
        if (__builtin_mul_overflow(inner, (uint64_t)column->shape[i], &inner))
            return damaged(making, "its shape");
    if (__builtin_mul_overflow(inner, lists, &inner) || inner != making->tensor->element_count)
        return damaged(making, "its row splits and values do not agree");
    making->tensor->row_splits = use->splits;
    making->tensor->row_split_counts = use->split_counts;
    return TUNDISH_OK;
}

static tundish_status
take_indices(struct making *making)
{
    tundish_tensor *tensor = making->tensor;
    const struct tnd_column *column = making->column;
    const int64_t *indices = making->data[0];
    bool outside = false;
    uint64_t bytes;

    if (__builtin_mul_overflow(tensor->element_count, column->rank * sizeof(int64_t), &bytes) ||
        bytes != making->bytes[0])
        return damaged(making, "its indices and values do not agree");
    for (uint64_t i = 0; i < tensor->element_count; i++)
        for (uint32_t k = 0; k < column->rank; k++) {
            int64_t index = indices[i * column->rank + k];

            outside |= index < 0 || index >= column->shape[k];
        }
    if (outside)
        return damaged(making, "an index is outside of its shape");
    tensor->indices = indices;
    return TUNDISH_OK;
}

/* Into the column's tensor or, where packed values stay so, its framed one. */
static tundish_status
make_tensor(struct held *held, uint32_t index, bool stays_packed)
{
    struct column_use *use = &held->columns[index];
    struct making making = {
        .held = held,
        .column = &held->slot.columns[index],
        .spec = tundish_column_spec_at(&held->reader->spec.spec, index),
        .use = use,
        .tensor = stays_packed ? &use->framed : &use->tensor,
        .stays_packed = stays_packed,
    };
    tundish_status status = TUNDISH_OK;

    *making.tensor = (tundish_tensor){
        .name = making.spec->name,
        .dtype = making.spec->dtype,
        .kind = making.spec->kind,
        .rank = making.column->rank,
        .ragged_rank = making.column->ragged_rank,
        .shape = making.column->shape,
    };
    for (uint32_t i = 0; i < making.column->buffer_count && status == TUNDISH_OK; i++)
        status = take_buffer(&making, i);
    if (status == TUNDISH_OK)
        status = take_values(&making);
    if (status == TUNDISH_OK && making.spec->kind == TUNDISH_RAGGED)
        status = take_splits(&making);
    if (status == TUNDISH_OK && making.spec->kind == TUNDISH_SPARSE)
        status = take_indices(&making);
    *(stays_packed ? &use->is_framed : &use->is_ready) = status == TUNDISH_OK;
    return status;
}

/* A batch may outlive its server, but not its reader, nor may a child of the process use it. */
static tundish_status
check_batch(const tundish_batch *batch)
{
    const struct held *held = (const struct held *)(const void *)batch;

    if (batch == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the batch is NULL");
    return tnd_reader_check(held->reader);
}

/* Several threads may ask for the same column: one makes it, the others wait for that. */
static tundish_status
find_tensor(const tundish_batch *batch, uint32_t index, bool stays_packed,
            const struct column_use **ret_use)
{
    struct held *held = (struct held *)(uintptr_t)batch;
    tundish_status status = check_batch(batch);
    const struct column_use *use = NULL;

    if (status != TUNDISH_OK)
        return status;
    if (index >= batch->tensor_count)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there is no column %u: the stream has %u", index,
                        batch->tensor_count);
    use = &held->columns[index];
    pthread_mutex_lock(&held->lock);
    if (!(stays_packed ? use->is_framed : use->is_ready))
        status = make_tensor(held, index, stays_packed);
    pthread_mutex_unlock(&held->lock);
    if (status == TUNDISH_OK)
        *ret_use = use;
    return status;
}

tundish_status
tundish_tensor_at(const tundish_batch *batch, uint32_t index, const tundish_tensor **ret_tensor)
{
    const struct column_use *use = NULL;
    tundish_status status = find_tensor(batch, index, false, &use);

    if (status == TUNDISH_OK)
        *ret_tensor = &use->tensor;
    return status;
}

tundish_status
tundish_tensor_stored(const tundish_batch *batch, uint32_t index, const tundish_tensor **ret_tensor,
                      tundish_stored *ret_stored)
{
    const struct held *held = (const struct held *)(const void *)batch;
    const struct column_use *use = NULL;
    const struct tnd_column *column;
    const struct tnd_buffer *values;
    tundish_status status = find_tensor(batch, index, true, &use);

    if (status != TUNDISH_OK)
        return status;
    column = &held->slot.columns[index];
    values = &held->slot.buffers[column->buffer_first + column->buffer_count - 1];
    *ret_tensor = &use->framed;
    *ret_stored =
        (tundish_stored){ .bytes = use->framed.data, .byte_count = use->framed.data_bytes };
    if (is_packed(values))
        *ret_stored = (tundish_stored){
            .bytes = held->payload + values->offset,
            .byte_count = values->stored_bytes,
            .is_packed = 1,
            .bits = values->codec.number == TND_CODEC_NARROW ? 8u * values->codec.width
                                                             : values->codec.width,
            .base = values->codec.base,
        };
    return TUNDISH_OK;
}

tundish_status
tundish_tensor_named(const tundish_batch *batch, const char *name,
                     const tundish_tensor **ret_tensor)
{
    const struct held *held = (const struct held *)(const void *)batch;
    const tundish_spec *spec;
    tundish_status status = check_batch(batch);

    if (status != TUNDISH_OK)
        return status;
    if (name == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the name is NULL");
    spec = &held->reader->spec.spec;
    for (uint32_t i = 0; i < batch->tensor_count; i++)
        if (strcmp(tundish_column_spec_at(spec, i)->name, name) == 0)
            return tundish_tensor_at(batch, i, ret_tensor);
    return tnd_fail(TUNDISH_E_ARGUMENT, "the stream has no column \"%.100s\"", name);
}
