/* spec.c - the element spec as bytes: a count, fixed-size records, then numbers and names. */
#include "shm/spec.h"

#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/must.h"
#include "core/status.h"
#include "core/widen.h"

/* As stored. Offsets count from the first byte of the spec. */
struct stored_column {
    uint32_t name_offset;
    uint32_t name_bytes; /* without a NUL, which follows */
    uint32_t dtype;
    uint32_t kind;
    uint32_t rank;
    uint32_t ragged_rank;
    int64_t shape[TND_RANK_MAX];
    uint32_t splits_dtype;
    uint16_t widen_dtype;
    uint16_t widen_layout;
    uint32_t widen_scale_count;
    uint32_t widen_offset_count;
    uint32_t widen_scale_offset; /* double */
    uint32_t widen_offset_offset;
};

struct stored_spec {
    uint32_t column_count;
    uint32_t reserved;
};

_Static_assert(sizeof(struct stored_spec) == 8 && sizeof(struct stored_column) == 112,
               "the element spec's layout moved");
_Static_assert(TUNDISH_RANK_MAX == TND_RANK_MAX, "one limit for ranks");

enum { NAME_BYTES_MAX = 4096, SPEC_BYTES_MAX = 64 << 20 };

/* The order of a column's buffers: splits of each ragged dimension, indices, offsets, values. */
uint32_t
tnd_spec_buffer_count(const tundish_column_spec *column)
{
    return column->ragged_rank + (column->kind == TUNDISH_SPARSE) +
           (column->dtype == TUNDISH_STRING) + 1;
}

uint32_t
tnd_spec_buffer_role(const tundish_column_spec *column, uint32_t index)
{
    uint32_t left = tnd_spec_buffer_count(column) - 1 - index;

    must_in_debug(index < tnd_spec_buffer_count(column));
    if (index < column->ragged_rank)
        return TND_ROLE_SPLITS;
    if (left == 0)
        return TND_ROLE_VALUES;
    if (left == 1 && column->dtype == TUNDISH_STRING)
        return TND_ROLE_OFFSETS;
    return TND_ROLE_INDICES;
}

static uint64_t
names_and_numbers_bytes(const tundish_spec *spec)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < spec->column_count; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);

        bytes +=
            sizeof(double) * ((uint64_t)column->widen_scale_count + column->widen_offset_count);
        bytes += strlen(column->name) + 1;
    }
    return bytes;
}

uint64_t
tnd_spec_bytes(const tundish_spec *spec)
{
    return sizeof(struct stored_spec) + spec->column_count * sizeof(struct stored_column) +
           names_and_numbers_bytes(spec);
}

/* Append to the tail and return where it went. */
static uint32_t
put(uint8_t *bytes, uint64_t *tail, const void *data, uint64_t data_bytes)
{
    uint64_t at = *tail;

    must_in_debug(at + data_bytes <= UINT32_MAX);
    if (data_bytes != 0)
        memcpy(bytes + at, data, data_bytes);
    *tail += data_bytes;
    return (uint32_t)at;
}

void
tnd_spec_write(const tundish_spec *spec, uint8_t *bytes)
{
    struct stored_spec head = { .column_count = spec->column_count };
    uint64_t tail = sizeof head + spec->column_count * sizeof(struct stored_column);

    memcpy(bytes, &head, sizeof head);
    for (uint32_t i = 0; i < spec->column_count; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);
        struct stored_column stored = {
            .name_bytes = (uint32_t)strlen(column->name),
            .dtype = (uint32_t)column->dtype,
            .kind = (uint32_t)column->kind,
            .rank = column->rank,
            .ragged_rank = column->ragged_rank,
            .splits_dtype = (uint32_t)column->splits_dtype,
            .widen_dtype = (uint16_t)column->widen_dtype,
            .widen_layout = (uint16_t)column->widen_layout,
            .widen_scale_count = column->widen_scale_count,
            .widen_offset_count = column->widen_offset_count,
        };

        memcpy(stored.shape, column->shape, sizeof stored.shape);
        stored.widen_scale_offset =
            put(bytes, &tail, column->widen_scale, column->widen_scale_count * sizeof(double));
        stored.widen_offset_offset =
            put(bytes, &tail, column->widen_offset, column->widen_offset_count * sizeof(double));
        stored.name_offset = put(bytes, &tail, column->name, stored.name_bytes + 1);
        memcpy(bytes + sizeof head + i * sizeof stored, &stored, sizeof stored);
    }
    must_in_debug(tail == tnd_spec_bytes(spec));
}

/* One entry, or one for each index of the last dimension as far as that is known. */
static bool
is_list_of_last(const tundish_column_spec *column, uint32_t count)
{
    int64_t last = column->rank == 0 ? 1 : column->shape[column->rank - 1];

    return count == 1 || (count > 1 && (last < 0 || last == count));
}

static bool
can_be_widened(const tundish_column_spec *column)
{
    if (column->widen_dtype == 0)
        return column->widen_scale_count == 0 && column->widen_offset_count == 0 &&
               column->widen_layout == TUNDISH_AS_STORED;
    return tnd_widen_allowed(column->dtype, column->widen_dtype) &&
           (column->widen_layout == TUNDISH_AS_STORED ||
            (column->widen_layout == TUNDISH_NCHW && column->kind == TUNDISH_DENSE &&
             column->rank == 4)) &&
           is_list_of_last(column, column->widen_scale_count) &&
           is_list_of_last(column, column->widen_offset_count);
}

static tundish_status
check_column(const tundish_column_spec *column)
{
    if (strcmp(tnd_dtype_name(column->dtype), "?") == 0)
        return tnd_fail(TUNDISH_E_ARGUMENT, "column %s: unknown dtype %d", column->name,
                        (int)column->dtype);
    if (column->kind < TUNDISH_DENSE || column->kind > TUNDISH_SPARSE)
        return tnd_fail(TUNDISH_E_ARGUMENT, "column %s: unknown kind %d", column->name,
                        (int)column->kind);
    if (column->rank > TND_RANK_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "column %s: rank %u is greater than %d", column->name,
                        column->rank, TND_RANK_MAX);
    if (column->kind == TUNDISH_RAGGED
            ? column->ragged_rank == 0 || column->ragged_rank >= column->rank
            : column->ragged_rank != 0)
        return tnd_fail(TUNDISH_E_ARGUMENT, "column %s: ragged rank %u does not fit rank %u",
                        column->name, column->ragged_rank, column->rank);
    if (!can_be_widened(column))
        return tnd_fail(TUNDISH_E_ARGUMENT, "column %s: invalid widen parameters", column->name);
    return TUNDISH_OK;
}

tundish_status
tnd_spec_check(const tundish_spec *spec)
{
    tundish_status status = TUNDISH_OK;

    if (spec->column_count > TND_COLUMNS_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "%u columns are more than %d", spec->column_count,
                        TND_COLUMNS_MAX);
    for (uint32_t i = 0; i < spec->column_count && status == TUNDISH_OK; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);

        status = strlen(column->name) > NAME_BYTES_MAX
                     ? tnd_fail(TUNDISH_E_ARGUMENT, "the name of column %u is too long", i)
                     : check_column(column);
    }
    if (status == TUNDISH_OK && tnd_spec_bytes(spec) > SPEC_BYTES_MAX)
        return tnd_fail(TUNDISH_E_ARGUMENT, "the element spec is larger than %d bytes",
                        SPEC_BYTES_MAX);
    return status;
}

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "the element spec in shared memory is damaged: %s", what);
}

/* Copy `count` doubles from `offset`, which need not be aligned, to aligned memory. */
static bool
take_numbers(const struct tnd_spec *spec, uint64_t spec_bytes, uint32_t offset, uint32_t count,
             double **numbers, const double **ret_numbers)
{
    uint64_t bytes = (uint64_t)count * sizeof(double);

    /* Subtracted, not added: a sum of hostile numbers could overflow. */
    if (offset > spec_bytes || bytes > spec_bytes - offset)
        return false;
    must_in_debug((const uint8_t *)*numbers + bytes <= spec->storage);
    *ret_numbers = count == 0 ? NULL : *numbers;
    memcpy(*numbers, spec->storage + offset, bytes);
    *numbers += count;
    return true;
}

static tundish_status
read_column(struct tnd_spec *spec, uint64_t spec_bytes, uint32_t index, double **numbers,
            tundish_column_spec *column)
{
    struct stored_column stored;

    memcpy(&stored, spec->storage + sizeof(struct stored_spec) + index * sizeof stored,
           sizeof stored);
    /* The NUL is checked too, since programs print names as C strings. */
    if (stored.name_bytes > NAME_BYTES_MAX || stored.name_offset > spec_bytes ||
        stored.name_bytes >= spec_bytes - stored.name_offset ||
        spec->storage[stored.name_offset + stored.name_bytes] != '\0')
        return damaged("a column's name");
    *column = (tundish_column_spec){
        .name = (const char *)spec->storage + stored.name_offset,
        .dtype = (tundish_dtype)stored.dtype,
        .kind = (tundish_kind)stored.kind,
        .rank = stored.rank,
        .ragged_rank = stored.ragged_rank,
        .splits_dtype = (tundish_dtype)stored.splits_dtype,
        .widen_dtype = (tundish_dtype)stored.widen_dtype,
        .widen_layout = (tundish_layout)stored.widen_layout,
        .widen_scale_count = stored.widen_scale_count,
        .widen_offset_count = stored.widen_offset_count,
    };
    memcpy(column->shape, stored.shape, sizeof stored.shape);
    if (!take_numbers(spec, spec_bytes, stored.widen_scale_offset, stored.widen_scale_count,
                      numbers, &column->widen_scale) ||
        !take_numbers(spec, spec_bytes, stored.widen_offset_offset, stored.widen_offset_count,
                      numbers, &column->widen_offset))
        return damaged("a column's numbers");
    if (check_column(column) != TUNDISH_OK)
        return damaged("a column's type");
    return TUNDISH_OK;
}

/* Count the doubles of all columns. False: the bytes cannot hold them all. */
static bool
count_numbers(const uint8_t *storage, uint64_t spec_bytes, uint32_t column_count,
              uint64_t *ret_count)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < column_count; i++) {
        struct stored_column stored;

        memcpy(&stored, storage + sizeof(struct stored_spec) + i * sizeof stored, sizeof stored);
        count += (uint64_t)stored.widen_scale_count + stored.widen_offset_count;
    }
    *ret_count = count;
    return count <= spec_bytes / sizeof(double);
}

/* The result is one allocation: columns, doubles, then the bytes as they were. */
tundish_status
tnd_spec_read(const uint8_t *bytes, uint64_t spec_bytes, struct tnd_spec *ret_spec)
{
    struct tnd_spec spec = { 0 };
    struct stored_spec head;
    uint64_t number_count = 0, columns_bytes;
    tundish_column_spec *columns;
    double *numbers;
    uint8_t *memory, *copy;
    tundish_status status = TUNDISH_OK;

    if (spec_bytes < sizeof head || spec_bytes > SPEC_BYTES_MAX)
        return damaged("its size");
    copy = malloc(spec_bytes);
    if (copy == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the element spec");
    /* Checked and used only as copied: a hostile server may change the original at any time. */
    memcpy(copy, bytes, spec_bytes);
    memcpy(&head, copy, sizeof head);
    if (head.column_count > TND_COLUMNS_MAX ||
        head.column_count * sizeof(struct stored_column) > spec_bytes - sizeof head ||
        !count_numbers(copy, spec_bytes, head.column_count, &number_count)) {
        free(copy);
        return damaged("its column count");
    }
    columns_bytes = head.column_count * sizeof *columns;
    /* All parts are multiples of 8 bytes but the last, so the doubles are aligned. */
    memory = malloc(columns_bytes + number_count * sizeof(double) + spec_bytes);
    if (memory == NULL) {
        free(copy);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the element spec");
    }
    columns = (tundish_column_spec *)(void *)memory;
    numbers = (double *)(void *)(memory + columns_bytes);
    spec.storage = memory + columns_bytes + number_count * sizeof(double);
    memcpy(spec.storage, copy, spec_bytes);
    free(copy);
    for (uint32_t i = 0; i < head.column_count && status == TUNDISH_OK; i++)
        status = read_column(&spec, spec_bytes, i, &numbers, &columns[i]);
    must_in_debug(status != TUNDISH_OK || (uint8_t *)numbers == spec.storage);
    if (status != TUNDISH_OK) {
        free(memory);
        return status;
    }
    spec.storage = memory;
    spec.spec = (tundish_spec){ .column_count = head.column_count,
                                .column_bytes = sizeof *columns,
                                .columns = columns };
    *ret_spec = spec;
    return TUNDISH_OK;
}

tundish_status
tnd_spec_copy(const tundish_spec *spec, struct tnd_spec *ret_spec)
{
    uint64_t bytes = tnd_spec_bytes(spec);
    uint8_t *stored = malloc(bytes);
    tundish_status status;

    if (stored == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the element spec");
    /* The copy goes through the stored form, which is checked: one way to build a spec. */
    tnd_spec_write(spec, stored);
    status = tnd_spec_read(stored, bytes, ret_spec);
    free(stored);
    return status;
}

void
tnd_spec_close(struct tnd_spec *spec)
{
    free(spec->storage);
    *spec = (struct tnd_spec){ 0 };
}
