/* row_codec.c - see row_codec.h. */
#include "source/rows/row_codec.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/scan/records.h"

/* Lists that hold nothing take memory and may take no bytes of a row. This many are allowed. */
enum { EMPTY_LISTS_MAX = 1 << 20 };

static size_t
value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(uint64_t) : tnd_dtype_bytes(dtype);
}

/* Does the row say the size of this dimension, for one list or for each? */
static bool
is_measured(const struct column_spec *column, int dimension)
{
    return column->shape[dimension] < 0 || column->kind == TUNDISH_SPARSE;
}

/* The fewest bytes that a row of the column can have: all of its unknown dimensions are 0. */
static bool
least_bytes(const struct column_spec *column, uint64_t *ret_bytes)
{
    uint64_t values = 1;
    uint64_t sizes = 0;

    if (column->kind == TUNDISH_SPARSE) { /* one list, that is empty, and the shape */
        *ret_bytes = (1 + (uint64_t)column->rank) * sizeof(uint64_t);
        return column->rank > 0;
    }
    for (int k = 0; k < column->rank; k++) {
        if (column->shape[k] < 0) {
            sizes += column->kind == TUNDISH_DENSE ? 1 : values;
            values = 0;
        } else if (__builtin_mul_overflow(values, (uint64_t)column->shape[k], &values)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(values, value_bytes(column->dtype), &values) &&
           !__builtin_add_overflow(values, sizes * sizeof(uint64_t), ret_bytes) &&
           *ret_bytes <= RECORD_BYTES_MAX;
}

const char *
row_codec_obstacle(const struct schema *schema, const char **ret_reason)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *column = &schema->columns[i];
        uint64_t bytes;

        if (column->rank == RANK_UNKNOWN)
            *ret_reason = "has an unknown number of dimensions (use reshape)";
        else if (!least_bytes(column, &bytes))
            *ret_reason = "has more than 2 GiB in a row";
        else
            continue;
        return column->name;
    }
    return NULL;
}

uint64_t
row_codec_least_bytes(const struct schema *schema)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < schema->count; i++) {
        uint64_t bytes = 0;

        must(least_bytes(&schema->columns[i], &bytes));
        all += bytes;
    }
    return all;
}

/* Where a row is measured. Nothing is allocated before the whole row is known to be there. */
struct measure {
    const uint8_t *data;
    size_t bytes;
    uint64_t at;     /* after the bytes that are understood; at most `bytes` */
    uint64_t needed; /* more than bytes: PARTIAL */
    enum row_fit fit;
};

static enum row_fit
too_large(const struct column_spec *column)
{
    tnd_fail(TUNDISH_E_DATA, "column '%s' of a row would take more than 2 GiB", column->name);
    return ROW_BAD;
}

/* Skip `count` things of `bytes` bytes each. */
static enum row_fit
pass_over(struct measure *measure, const struct column_spec *column, uint64_t count, uint64_t bytes)
{
    uint64_t all;

    if (__builtin_mul_overflow(count, bytes, &all) || all > RECORD_BYTES_MAX ||
        measure->at + all > RECORD_BYTES_MAX)
        return too_large(column);
    if (measure->at + all > measure->bytes) {
        measure->needed = measure->at + all;
        return ROW_PARTIAL;
    }
    measure->at += all;
    return ROW_WHOLE;
}

/* Skip the sizes of `list_count` lists, or the one size that they share. *ret_count is the sum. */
static enum row_fit
pass_sizes(struct measure *measure, const struct column_spec *column, uint64_t list_count,
           bool is_shared, uint64_t *ret_count)
{
    const uint8_t *sizes = measure->data + measure->at;
    uint64_t size_count = is_shared ? 1 : list_count;
    uint64_t count = 0;
    enum row_fit fit = pass_over(measure, column, size_count, sizeof(uint64_t));

    if (fit != ROW_WHOLE)
        return fit;
    for (uint64_t i = 0; i < size_count; i++) {
        uint64_t size = load_u64(sizes + 8 * i);

        /* Both are at most RECORD_BYTES_MAX here, so the sum cannot overflow. */
        if (size > RECORD_BYTES_MAX || count > RECORD_BYTES_MAX)
            return too_large(column);
        count += size;
    }
    if (is_shared && __builtin_mul_overflow(count, list_count, &count))
        return too_large(column);
    *ret_count = count;
    return ROW_WHOLE;
}

static enum row_fit
pass_strings(struct measure *measure, const struct column_spec *column, uint64_t count)
{
    enum row_fit fit = ROW_WHOLE;

    /* Each has a length of 8 bytes at least, so an impossible count is refused before it is looped
     * over. */
    if (count > (RECORD_BYTES_MAX - measure->at) / sizeof(uint64_t))
        return too_large(column);
    for (uint64_t i = 0; i < count && fit == ROW_WHOLE; i++) {
        uint64_t length = 0;

        fit = pass_over(measure, column, 1, sizeof length);
        if (fit == ROW_WHOLE) {
            length = load_u64(measure->data + measure->at - sizeof length);
            fit = pass_over(measure, column, 1, length);
        }
    }
    return fit;
}

/* TensorFlow's kernels take a bool for a byte of 0 or 1, and so do the loops of the stages. */
static enum row_fit
pass_bools(struct measure *measure, const struct column_spec *column, uint64_t count)
{
    const uint8_t *values = measure->data + measure->at;
    enum row_fit fit = pass_over(measure, column, count, 1);

    for (uint64_t i = 0; fit == ROW_WHOLE && i < count; i++)
        if (values[i] > 1) {
            tnd_fail(TUNDISH_E_DATA, "column '%s' of a row has the byte %u as a bool: 0 or 1",
                     column->name, values[i]);
            return ROW_BAD;
        }
    return fit;
}

/* A dimension of 0 allows any size in the dimensions before it. Those lists of nothing take no
 * bytes in the row, but would take memory, so their number is bounded. */
static enum row_fit
check_lists(const struct column_spec *column, uint64_t list_count, uint64_t value_count)
{
    if (value_count >= list_count || list_count <= EMPTY_LISTS_MAX)
        return ROW_WHOLE;
    tnd_fail(TUNDISH_E_DATA, "column '%s' of a row has %llu empty lists, more than %d",
             column->name, (unsigned long long)list_count, EMPTY_LISTS_MAX);
    return ROW_BAD;
}

/* Check the coordinates of a sparse column. A stage that makes the column dense writes to the cells
 * that they name, so each must lie inside the shape. */
static enum row_fit
pass_coordinates(struct measure *measure, const struct column_spec *column, uint64_t count)
{
    uint64_t rank = (uint64_t)column->rank;
    const uint8_t *shape = measure->data + measure->at, *at = shape + rank * sizeof(uint64_t);
    enum row_fit fit = pass_over(measure, column, rank, sizeof(uint64_t));

    if (fit == ROW_WHOLE)
        fit = pass_over(measure, column, count * rank, sizeof(uint64_t));
    for (uint64_t k = 0; fit == ROW_WHOLE && k < rank; k++)
        if (load_u64(shape + 8 * k) > RECORD_BYTES_MAX)
            return too_large(column);
    for (uint64_t i = 0; fit == ROW_WHOLE && i < count * rank; i++)
        if (load_u64(at + 8 * i) >= load_u64(shape + 8 * (i % rank))) {
            tnd_fail(TUNDISH_E_DATA, "column '%s' of a row has a value outside of its shape",
                     column->name);
            return ROW_BAD;
        }
    return fit;
}

static enum row_fit
pass_column(struct measure *measure, const struct column_spec *column)
{
    /* The largest number of lists at any level is kept for check_lists. */
    uint64_t count = 1, most = 1;
    enum row_fit fit = ROW_WHOLE;

    for (int k = 0; k < column->rank && fit == ROW_WHOLE; k++) {
        if (is_measured(column, k))
            fit = pass_sizes(measure, column, count, column->kind == TUNDISH_DENSE, &count);
        else if (__builtin_mul_overflow(count, (uint64_t)column->shape[k], &count))
            fit = too_large(column);
        if (count > RECORD_BYTES_MAX)
            fit = too_large(column);
        most = count > most ? count : most;
    }
    if (fit == ROW_WHOLE)
        fit = check_lists(column, most, count);
    if (fit == ROW_WHOLE && column->kind == TUNDISH_SPARSE)
        fit = pass_coordinates(measure, column, count);
    if (fit != ROW_WHOLE)
        return fit;
    if (column->dtype == TUNDISH_STRING)
        return pass_strings(measure, column, count);
    if (column->dtype == TUNDISH_BOOL)
        return pass_bools(measure, column, count);
    return pass_over(measure, column, count, tnd_dtype_bytes(column->dtype));
}

enum row_fit
row_codec_measure(const struct schema *schema, const uint8_t *data, size_t bytes, size_t *ret_bytes)
{
    struct measure measure = { .data = data, .bytes = bytes };
    enum row_fit fit = ROW_WHOLE;

    for (uint32_t i = 0; i < schema->count && fit == ROW_WHOLE; i++)
        fit = pass_column(&measure, &schema->columns[i]);
    *ret_bytes = (size_t)(fit == ROW_WHOLE ? measure.at : measure.needed);
    return fit;
}

/* Where each row is read next, and how many lists it has at the level at hand; after the last
 * level, how many values. */
struct cursor {
    const uint8_t *at;
    int64_t count;
};

static int64_t
take_size(struct cursor *cursor)
{
    int64_t size = (int64_t)load_u64(cursor->at);

    cursor->at += sizeof(uint64_t);
    return size;
}

/* The lengths of all lists of a level, as splits. */
static void
read_level(const struct column_spec *spec, struct cursor *cursors, int64_t count,
           int64_t list_count, struct frame *output, struct level *ret_level)
{
    int64_t *splits = scratch_array(output->scratch, (size_t)list_count + 1, sizeof *splits);
    int64_t at = 0, uniform = -1;
    bool is_uniform = spec->kind == TUNDISH_DENSE;

    splits[0] = 0;
    for (int64_t row = 0; row < count; row++) {
        struct cursor *cursor = &cursors[row];
        bool is_shared = spec->kind == TUNDISH_DENSE;
        int64_t shared = is_shared ? take_size(cursor) : 0;
        int64_t held = 0;

        is_uniform &= is_shared && (row == 0 || shared == uniform);
        uniform = shared;
        for (int64_t i = 0; i < cursor->count; i++, at++) {
            int64_t length = is_shared ? shared : take_size(cursor);

            splits[at + 1] = splits[at] + length;
            held += length;
        }
        cursor->count = held;
    }
    /* Without rows there is no size: it stays unknown, as for rows of different sizes. */
    *ret_level = is_uniform && count > 0 ? (struct level){ .uniform = uniform }
                                         : (struct level){ .uniform = -1, .splits = splits };
}

/* The columns of a frame lie level by level and rows one after the other, so all rows are read at
 * one level before the next begins. The rows have been measured: nothing is checked any more. */
static int64_t
read_levels(const struct column_spec *spec, struct cursor *cursors, int64_t count,
            struct frame *output, struct column *column)
{
    int64_t list_count = count;

    column->count = count;
    column->level_count = (uint32_t)spec->rank;
    for (int64_t row = 0; row < count; row++)
        cursors[row].count = 1;
    for (int k = 0; k < spec->rank; k++) {
        if (is_measured(spec, k)) {
            read_level(spec, cursors, count, list_count, output, &column->levels[k]);
            list_count = level_begin(&column->levels[k], list_count);
            continue;
        }
        column->levels[k] = (struct level){ .uniform = spec->shape[k] };
        list_count *= spec->shape[k];
        for (int64_t row = 0; row < count; row++)
            cursors[row].count *= spec->shape[k];
    }
    return list_count;
}

static void
read_strings(struct cursor *cursors, int64_t count, struct byte_view *values)
{
    /* The views point into the row, which lives as long as the frame. */
    for (int64_t row = 0; row < count; row++)
        for (int64_t i = 0; i < cursors[row].count; i++, values++) {
            values->size = (uint64_t)take_size(&cursors[row]);
            values->data = cursors[row].at;
            cursors[row].at += values->size;
        }
}

static void
read_coordinates(struct cursor *cursors, int64_t count, struct frame *output, struct column *column)
{
    size_t rank = column->level_count;
    int64_t *shape = scratch_array(output->scratch, (size_t)count * rank + 1, sizeof *shape);
    int64_t *index =
        scratch_array(output->scratch, (size_t)column->value_count * rank + 1, sizeof *index);

    column->dense_shape = shape;
    column->indices = index;
    for (int64_t row = 0; row < count; row++) {
        for (size_t k = 0; k < rank; k++)
            *shape++ = take_size(&cursors[row]);
        for (size_t i = 0; i < (size_t)cursors[row].count * rank; i++)
            *index++ = take_size(&cursors[row]);
    }
}

static void
read_column(uint32_t index, struct cursor *cursors, int64_t count, struct frame *output)
{
    const struct column_spec *spec = &output->schema->columns[index];
    struct column *column = &output->columns[index];
    bool is_text = spec->dtype == TUNDISH_STRING;
    size_t bytes = is_text ? sizeof(struct byte_view) : tnd_dtype_bytes(spec->dtype);
    uint8_t *values;

    *column = (struct column){ 0 };
    column->value_count = read_levels(spec, cursors, count, output, column);
    if (spec->kind == TUNDISH_SPARSE)
        read_coordinates(cursors, count, output, column);
    values = frame_values(output, index, (size_t)column->value_count * bytes);
    column->values = values;
    if (is_text) {
        read_strings(cursors, count, (struct byte_view *)values);
        return;
    }
    for (int64_t row = 0; row < count; row++) {
        size_t row_bytes = (size_t)cursors[row].count * bytes;

        if (row_bytes > 0)
            memcpy(values, cursors[row].at, row_bytes);
        values += row_bytes;
        cursors[row].at += row_bytes;
    }
}

/* A row to decode in place of a bad one: zeros, as many as the schema needs. The frame drops it
 * later, but has to be well formed until then. */
static struct byte_view
blank_row(const struct schema *schema, struct scratch *scratch)
{
    uint64_t bytes = row_codec_least_bytes(schema);
    uint8_t *zeros = scratch_alloc(scratch, (size_t)bytes);

    memset(zeros, 0, (size_t)bytes);
    return (struct byte_view){ zeros, bytes };
}

tundish_status
row_codec_decode(const struct byte_view *rows, int64_t count, struct frame *output,
                 void (*where)(const void *context, int64_t row, char *text, size_t bytes),
                 const void *context)
{
    struct cursor *cursors = scratch_array(output->scratch, (size_t)count + 1, sizeof *cursors);

    for (int64_t row = 0; row < count; row++) {
        size_t bytes;
        enum row_fit fit =
            row_codec_measure(output->schema, rows[row].data, rows[row].size, &bytes);

        cursors[row].at = rows[row].data;
        if (fit != ROW_WHOLE || bytes != rows[row].size) {
            char position[512];

            where(context, row, position, sizeof position);
            frame_reject(output, row, "%s: %s", position,
                         fit == ROW_BAD ? tnd_error_text() : "the row does not have its columns");
            cursors[row].at = blank_row(output->schema, output->scratch).data;
        }
    }
    for (uint32_t i = 0; i < output->schema->count; i++)
        read_column(i, cursors, count, output);
    return TUNDISH_OK;
}

void
row_bytes_add(struct row_bytes *bytes, const void *data, size_t count)
{
    if (bytes->room - bytes->used < count) {
        bytes->room = 2 * (bytes->used + count);
        bytes->data = tnd_realloc(bytes->data, bytes->room, 1);
    }
    if (count > 0)
        memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
}

static void
add_size(struct row_bytes *bytes, int64_t size)
{
    row_bytes_add(bytes, &size, sizeof size);
}

/* Write the coordinates of the values of the lists below `level`, in order. `at` has the
 * coordinates of the dimensions before it. */
static void
encode_positions(const struct column *column, uint32_t level, int64_t list, int64_t *at,
                 struct row_bytes *bytes)
{
    int64_t begin = level_begin(&column->levels[level], list);
    int64_t count = level_length(&column->levels[level], list);

    for (at[level] = 0; at[level] < count; at[level]++)
        if (level + 1 < column->level_count)
            encode_positions(column, level + 1, begin + at[level], at, bytes);
        else
            row_bytes_add(bytes, at, column->level_count * sizeof *at);
}

/* Write the dense shape: the column's own, or else the longest list of each level. */
static void
encode_shape(const struct column *column, int64_t element, struct row_bytes *bytes)
{
    int64_t begin = element, end = element + 1;

    for (uint32_t k = 0; k < column->level_count; k++) {
        int64_t longest = 0;

        for (int64_t i = begin; i < end; i++)
            if (level_length(&column->levels[k], i) > longest)
                longest = level_length(&column->levels[k], i);
        add_size(bytes, column->dense_shape != NULL
                            ? column->dense_shape[element * column->level_count + k]
                            : longest);
        begin = level_begin(&column->levels[k], begin);
        end = level_begin(&column->levels[k], end);
    }
}

/* Values `begin` to `end` are the element's. */
static void
encode_coordinates(const struct column *column, int64_t element, int64_t begin, int64_t end,
                   struct row_bytes *bytes)
{
    int64_t at[RANK_MAX];

    encode_shape(column, element, bytes);
    if (column->indices != NULL)
        row_bytes_add(bytes, column->indices + begin * column->level_count,
                      (size_t)(end - begin) * column->level_count * sizeof *column->indices);
    else
        encode_positions(column, 0, element, at, bytes);
}

static void
encode_column(const struct column_spec *spec, const struct column *column, int64_t element,
              struct row_bytes *bytes)
{
    int64_t begin = element;
    int64_t end = element + 1;
    size_t each = tnd_dtype_bytes(spec->dtype);

    /* Columns of unknown rank are refused before anything is cached (row_codec_obstacle). */
    must(column->level_count == (uint32_t)spec->rank);
    for (uint32_t k = 0; k < column->level_count; k++) {
        const struct level *level = &column->levels[k];
        bool is_shared = spec->kind == TUNDISH_DENSE;

        if (is_measured(spec, (int)k) && is_shared)
            add_size(bytes, begin < end ? level_length(level, begin) : 0);
        for (int64_t i = begin; is_measured(spec, (int)k) && !is_shared && i < end; i++)
            add_size(bytes, level_length(level, i));
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
    if (spec->kind == TUNDISH_SPARSE)
        encode_coordinates(column, element, begin, end, bytes);
    if (spec->dtype != TUNDISH_STRING) {
        row_bytes_add(bytes, (const uint8_t *)column->values + (size_t)begin * each,
                      (size_t)(end - begin) * each);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        struct byte_view text = ((const struct byte_view *)column->values)[i];

        add_size(bytes, (int64_t)text.size);
        row_bytes_add(bytes, text.data, text.size);
    }
}

void
row_codec_encode(const struct frame *frame, int64_t element, struct row_bytes *bytes)
{
    for (uint32_t i = 0; i < frame->column_count; i++)
        encode_column(&frame->schema->columns[i], &frame->columns[i], element, bytes);
}
