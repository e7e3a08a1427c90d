/* arrow_rows.c - see arrow_rows.h.
 *
 * A few hundred rows at a time: first all columns are taken and the rows' lengths added up, then
 * each column is written to where its rows are. */
#include "arrow/arrow_rows.h"

#include <stdlib.h>

#include "core/status.h"

/* How many bytes are made at once, and how long a row may be (records.h). */
static const uint64_t CHUNK_BYTES = 1 << 20, ROW_BYTES_MAX = (uint64_t)1 << 31;
enum { ROWS_MAX = 4096 };

static tundish_status
stream_failed(struct arrow_rows *rows, int error)
{
    const char *text =
        rows->stream.get_last_error == NULL ? NULL : rows->stream.get_last_error(&rows->stream);

    if (text == NULL || text[0] == '\0')
        text = strerror(error);
    return tnd_fail(TUNDISH_E_DATA, "the Arrow stream failed: %s", text);
}

tundish_status
arrow_rows_open(struct arrow_rows *rows, struct ArrowArrayStream *stream)
{
    int error;

    if (stream->release == NULL)
        return tnd_fail(TUNDISH_E_DATA, "the Arrow stream has already been consumed");
    rows->stream = *stream;
    stream->release = NULL;
    if (rows->stream.get_schema == NULL || rows->stream.get_next == NULL)
        return tnd_fail(TUNDISH_E_DATA, "the Arrow stream has no functions");
    error = rows->stream.get_schema(&rows->stream, &rows->schema);
    if (error != 0) {
        rows->schema.release = NULL;
        return stream_failed(rows, error);
    }
    return arrow_fields_read(&rows->schema, &rows->fields, &rows->field_count);
}

const struct arrow_field *
arrow_rows_find(const struct arrow_rows *rows, const char *name)
{
    for (uint32_t i = 0; i < rows->field_count; i++)
        if (strcmp(rows->fields[i].name, name) == 0)
            return &rows->fields[i];
    return NULL;
}

tundish_status
arrow_rows_take(struct arrow_rows *rows, const struct arrow_field *field, const void *fallback)
{
    struct arrow_column *columns =
        realloc(rows->columns, ((size_t)rows->column_count + 1) * sizeof *columns);

    if (columns == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "there is no memory for the Arrow stream's columns");
    rows->columns = columns;
    columns[rows->column_count++] = (struct arrow_column){
        .field = field, .child = (uint32_t)(field - rows->fields), .fallback = fallback
    };
    return TUNDISH_OK;
}

static tundish_status
name_it(tundish_status status, const struct arrow_column *column)
{
    return tnd_fail_while(status, "column '%s' of the Arrow stream", column->field->name);
}

/* Nulls of the struct itself: a record batch has none. */
static bool
has_null_rows(const struct ArrowArray *batch)
{
    const uint8_t *bits = batch->n_buffers > 0 && batch->buffers != NULL ? batch->buffers[0] : NULL;

    if (batch->null_count == 0 || bits == NULL)
        return batch->null_count > 0;
    for (int64_t i = 0; i < batch->length; i++)
        if (!(bits[(batch->offset + i) >> 3] >> ((batch->offset + i) & 7) & 1))
            return true;
    return false;
}

static tundish_status
check_batch(struct arrow_rows *rows)
{
    const struct ArrowArray *batch = &rows->batch;
    int64_t end;
    tundish_status status = TUNDISH_OK;

    if (batch->length < 0 || batch->offset < 0 ||
        __builtin_add_overflow(batch->length, batch->offset, &end) || end > INT64_MAX / 64 ||
        batch->n_children != rows->schema.n_children ||
        (batch->n_children > 0 && batch->children == NULL))
        return tnd_fail(TUNDISH_E_DATA, "a batch of the Arrow stream is damaged");
    if (has_null_rows(batch))
        return tnd_fail(TUNDISH_E_DATA, "a batch of the Arrow stream has rows that are null");
    for (uint32_t i = 0; i < rows->column_count && status == TUNDISH_OK; i++) {
        struct arrow_column *column = &rows->columns[i];

        status =
            arrow_values_check(column->field, batch->children[column->child], end, &column->values);
        if (status != TUNDISH_OK)
            status = name_it(status, column);
    }
    return status;
}

static void
drop_batch(struct arrow_rows *rows)
{
    if (rows->batch.release != NULL)
        rows->batch.release(&rows->batch);
    rows->batch = (struct ArrowArray){ 0 };
    rows->at = 0;
}

/* See to it that the batch has a row to come. */
static tundish_status
need_batch(struct arrow_rows *rows)
{
    while (rows->batch.release == NULL || rows->at == rows->batch.length) {
        int error;
        tundish_status status;

        drop_batch(rows);
        error = rows->stream.get_next(&rows->stream, &rows->batch);
        if (error != 0) {
            rows->batch.release = NULL;
            return stream_failed(rows, error);
        }
        if (rows->batch.release == NULL)
            return TUNDISH_END;
        status = check_batch(rows);
        if (status != TUNDISH_OK) {
            drop_batch(rows);
            return status;
        }
    }
    return TUNDISH_OK;
}

/* The values of row `row` of those that were taken. */
static void
range_of(const struct arrow_column *column, int64_t row, int64_t *ret_begin, int64_t *ret_end)
{
    const int64_t *splits = (const int64_t *)(const void *)column->values.splits.data;

    switch (column->field->shape) {
    case ARROW_SCALARS:
        *ret_begin = row;
        *ret_end = row + 1;
        break;
    case ARROW_FIXED_LISTS:
        *ret_begin = row * column->field->list_size;
        *ret_end = *ret_begin + column->field->list_size;
        break;
    default:
        *ret_begin = splits[row];
        *ret_end = splits[row + 1];
    }
}

static bool
is_measured(const struct arrow_column *column)
{
    return column->field->shape == ARROW_LISTS || column->field->shape == ARROW_LARGE_LISTS;
}

/* Add what the column takes in each row. */
static void
add_lengths(const struct arrow_column *column, int64_t count, uint64_t *lengths)
{
    const struct byte_view *texts =
        (const struct byte_view *)(const void *)column->values.values.data;
    size_t width = tnd_dtype_bytes(column->field->dtype);
    uint64_t head = is_measured(column) ? 8 : 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t begin, end;

        range_of(column, i, &begin, &end);
        lengths[i] += head + (uint64_t)(end - begin) * (width > 0 ? width : 8);
        /* A text that is too long counts as one that is just too long: sums stay true. */
        for (int64_t k = begin; k < end && width == 0; k++)
            lengths[i] += texts[k].size <= ROW_BYTES_MAX ? texts[k].size : ROW_BYTES_MAX + 1;
    }
}

static inline __attribute__((always_inline)) void
put_width(const uint8_t *from, int64_t count, size_t width, uint8_t **cursors)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(cursors[i], from + (uint64_t)i * width, width);
        cursors[i] += width;
    }
}

static void
put_numbers(const uint8_t *from, int64_t count, size_t width, uint8_t **cursors)
{
    if (width == 1)
        put_width(from, count, 1, cursors);
    else if (width == 2)
        put_width(from, count, 2, cursors);
    else if (width == 4)
        put_width(from, count, 4, cursors);
    else
        put_width(from, count, 8, cursors);
}

static uint8_t *
put_text(const struct byte_view *text, uint8_t *to)
{
    memcpy(to, &text->size, sizeof text->size);
    if (text->size > 0)
        memcpy(to + 8, text->data, text->size);
    return to + 8 + text->size;
}

static void
put_column(const struct arrow_column *column, int64_t count, uint8_t **cursors)
{
    const uint8_t *values = column->values.values.data;
    const struct byte_view *texts = (const struct byte_view *)(const void *)values;
    size_t width = tnd_dtype_bytes(column->field->dtype);

    if (column->field->shape == ARROW_SCALARS && width > 0) {
        put_numbers(values, count, width, cursors);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t begin, end;
        uint64_t length;

        range_of(column, i, &begin, &end);
        length = (uint64_t)(end - begin);
        if (is_measured(column)) {
            memcpy(cursors[i], &length, sizeof length);
            cursors[i] += 8;
        }
        if (width > 0 && length > 0)
            memcpy(cursors[i], values + (uint64_t)begin * width, length * width);
        cursors[i] += length * width;
        for (int64_t k = begin; k < end && width == 0; k++)
            cursors[i] = put_text(&texts[k], cursors[i]);
    }
}

static void
note_nulls(const struct arrow_column *column, uint32_t number, int64_t count, uint32_t *nulls)
{
    if (column->values.null_count == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin, end;

        range_of(column, i, &begin, &end);
        while (begin < end && column->values.nulls.data[begin] == 0)
            begin++;
        if (begin < end && nulls[i] == 0)
            nulls[i] = number + 1;
    }
}

/* Take all columns of some rows. */
static tundish_status
take_columns(struct arrow_rows *rows, int64_t count, bool *ret_is_much)
{
    tundish_status status = TUNDISH_OK;

    *ret_is_much = false;
    for (uint32_t i = 0; i < rows->column_count && status == TUNDISH_OK && !*ret_is_much; i++) {
        struct arrow_column *column = &rows->columns[i];

        status = arrow_values_take(column->field, rows->batch.children[column->child],
                                   rows->batch.offset + rows->at, count, column->fallback,
                                   &column->values);
        if (status != TUNDISH_OK)
            status = name_it(status, column);
        *ret_is_much = column->values.is_much;
    }
    return status;
}

/* Lengths of the rows in `ends`, and the null columns. */
static void
measure(struct arrow_rows *rows, int64_t count)
{
    uint64_t *lengths = (uint64_t *)(void *)rows->ends.data;
    uint32_t *nulls = (uint32_t *)(void *)rows->nulls.data;

    for (int64_t i = 0; i < count; i++)
        lengths[i] = rows->head_bytes;
    memset(nulls, 0, (size_t)count * sizeof *nulls);
    for (uint32_t i = 0; i < rows->column_count; i++) {
        add_lengths(&rows->columns[i], count, lengths);
        note_nulls(&rows->columns[i], i, count, nulls);
    }
}

static tundish_status
write_rows(struct arrow_rows *rows, int64_t count, uint64_t bytes)
{
    uint64_t *ends = (uint64_t *)(void *)rows->ends.data, at = 0;
    uint8_t **cursors = (uint8_t **)(void *)rows->cursors.data;
    /* Rows may have no bytes; cursors need a place all the same. */
    tundish_status status = arrow_room_need(&rows->bytes, bytes + 1, 1);

    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        cursors[i] = rows->bytes.data + at;
        if (rows->head_bytes > 0)
            memcpy(cursors[i], rows->nulls.data + 4 * i, 4);
        cursors[i] += rows->head_bytes;
        at += ends[i];
        ends[i] = at;
    }
    for (uint32_t i = 0; i < rows->column_count; i++)
        put_column(&rows->columns[i], count, cursors);
    rows->byte_count = bytes;
    rows->row_count = count;
    rows->at += count;
    return TUNDISH_OK;
}

/* Rows as long as the last ones make about a chunk. */
static int64_t
guess_count(const struct arrow_rows *rows, int64_t rows_max)
{
    int64_t left = rows->batch.length - rows->at, count = 16;

    if (rows->row_count > 0)
        count = (int64_t)(CHUNK_BYTES / (rows->byte_count / (uint64_t)rows->row_count + 1)) + 1;
    count = count < ROWS_MAX ? count : ROWS_MAX;
    count = count < rows_max ? count : rows_max;
    return count < left ? count : left;
}

static tundish_status
make_rows(struct arrow_rows *rows, int64_t count)
{
    for (;; count = (count + 1) / 2) {
        const uint64_t *lengths = (const uint64_t *)(const void *)rows->ends.data;
        bool is_much;
        uint64_t bytes = 0, longest = 0;
        tundish_status status = take_columns(rows, count, &is_much);

        if (status != TUNDISH_OK)
            return status;
        if (is_much)
            continue;
        measure(rows, count);
        for (int64_t i = 0; i < count; i++) {
            longest = lengths[i] > longest ? lengths[i] : longest;
            bytes += lengths[i];
        }
        if (longest > ROW_BYTES_MAX)
            return tnd_fail(TUNDISH_E_DATA, "a row of the Arrow stream would take more than 2 GiB");
        if (count == 1 || bytes <= 16 * CHUNK_BYTES)
            return write_rows(rows, count, bytes);
    }
}

tundish_status
arrow_rows_next(struct arrow_rows *rows, int64_t rows_max)
{
    int64_t count;
    tundish_status status = need_batch(rows);

    if (status != TUNDISH_OK)
        return status;
    count = guess_count(rows, rows_max);
    rows->given += (uint64_t)rows->row_count;
    status = arrow_room_need(&rows->ends, (uint64_t)count, sizeof(uint64_t));
    if (status == TUNDISH_OK)
        status = arrow_room_need(&rows->nulls, (uint64_t)count, sizeof(uint32_t));
    if (status == TUNDISH_OK)
        status = arrow_room_need(&rows->cursors, (uint64_t)count, sizeof(uint8_t *));
    return status == TUNDISH_OK ? make_rows(rows, count) : status;
}

void
arrow_rows_close(struct arrow_rows *rows)
{
    drop_batch(rows);
    if (rows->schema.release != NULL)
        rows->schema.release(&rows->schema);
    if (rows->stream.release != NULL)
        rows->stream.release(&rows->stream);
    for (uint32_t i = 0; i < rows->column_count; i++)
        arrow_values_close(&rows->columns[i].values);
    free(rows->columns);
    free(rows->fields);
    free(rows->bytes.data);
    free(rows->ends.data);
    free(rows->nulls.data);
    free(rows->cursors.data);
    *rows = (struct arrow_rows){ 0 };
}
