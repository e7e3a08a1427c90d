/* arrow_values.c - see arrow_values.h. */
#include "arrow/arrow_values.h"

#include <stdlib.h>

#include "core/status.h"

/* A row may be this long (as records.h says); of more values than a chunk may have, fewer rows are
 * taken. */
static const int64_t ROW_BYTES_MAX = INT64_C(1) << 31, CHUNK_VALUES = INT64_C(1) << 20;

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_DATA, "%s", what);
}

tundish_status
arrow_room_need(struct arrow_room *room, uint64_t count, size_t bytes)
{
    uint64_t needed;
    uint8_t *data;

    if (__builtin_mul_overflow(count, bytes, &needed) ||
        __builtin_add_overflow(needed, needed / 2 + 64, &needed) || needed > SIZE_MAX / 2)
        return tnd_fail(TUNDISH_E_MEMORY, "there is no memory for its values");
    if (room->bytes >= count * bytes)
        return TUNDISH_OK;
    data = realloc(room->data, needed);
    if (data == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "there is no memory for its values");
    room->data = data;
    room->bytes = needed;
    return TUNDISH_OK;
}

static const uint8_t *
buffer_of(const struct ArrowArray *array, int64_t index)
{
    return array->buffers[index];
}

static int64_t
load_i64(const uint8_t *from)
{
    return (int64_t)load_u64(from);
}

static int64_t
offset_at(const uint8_t *offsets, bool is_large, int64_t at)
{
    return is_large ? load_i64(offsets + 8 * at) : (int32_t)load_u32(offsets + 4 * at);
}

/* Mark nulls among elements [begin, begin + count); *ret_count is how many there are, and the marks
 * are set only if there are some. */
static tundish_status
mark_nulls(const struct ArrowArray *array, int64_t begin, int64_t count, struct arrow_room *marks,
           int64_t *ret_count)
{
    const uint8_t *bits = array->null_count == 0 ? NULL : buffer_of(array, 0);
    int64_t nulls = 0;
    tundish_status status;

    *ret_count = 0;
    if (bits == NULL)
        return TUNDISH_OK;
    status = arrow_room_need(marks, (uint64_t)count, 1);
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = array->offset + begin + i;
        uint8_t is_null = !(bits[at >> 3] >> (at & 7) & 1);

        marks->data[i] = is_null;
        nulls += is_null;
    }
    *ret_count = nulls;
    return TUNDISH_OK;
}

static tundish_status
check_head(const struct ArrowArray *array, int64_t needed, int64_t buffer_count)
{
    int64_t end;

    if (array == NULL || array->release == NULL)
        return damaged("its array is missing");
    if (array->length < needed)
        return damaged("its array is shorter than it should be");
    if (array->offset < 0 || __builtin_add_overflow(array->offset, array->length, &end) ||
        end > INT64_MAX / 64)
        return damaged("its array has a damaged offset");
    if (array->null_count < -1 || array->null_count > array->length)
        return damaged("its array has more nulls than values");
    if (array->n_buffers < buffer_count || array->buffers == NULL)
        return damaged("buffers of its array are missing");
    if (array->null_count > 0 && buffer_of(array, 0) == NULL)
        return damaged("its array has nulls and does not say which");
    return TUNDISH_OK;
}

/* Views: validity, views, any number of buffers, and the lengths of those. */
static tundish_status
check_values(const struct arrow_field *field, const struct ArrowArray *array, int64_t needed)
{
    static const int64_t counts[] = {
        [ARROW_BITS] = 2,        [ARROW_NUMBERS] = 2,    [ARROW_DECIMALS] = 2,   [ARROW_TEXTS] = 3,
        [ARROW_LARGE_TEXTS] = 3, [ARROW_TEXT_VIEWS] = 3, [ARROW_FIXED_TEXTS] = 2
    };
    int64_t count = field->index_width > 0 ? 2 : counts[field->layout];
    bool has_width = field->layout != ARROW_FIXED_TEXTS || field->width > 0;
    tundish_status status = check_head(array, needed, count);

    if (status != TUNDISH_OK)
        return status;
    if (array->n_buffers != count && (field->index_width > 0 || field->layout != ARROW_TEXT_VIEWS))
        return damaged("its array has too many buffers");
    if (array->length > 0 && (has_width || field->index_width > 0) && buffer_of(array, 1) == NULL)
        return damaged("buffers of its array are missing");
    if (field->index_width == 0 && field->layout == ARROW_TEXT_VIEWS && array->n_buffers > 3 &&
        buffer_of(array, array->n_buffers - 1) == NULL)
        return damaged("buffers of its array are missing");
    return TUNDISH_OK;
}

static tundish_status
take_bits(const struct ArrowArray *array, int64_t begin, int64_t count, uint8_t *to)
{
    const uint8_t *bits = buffer_of(array, 1);

    for (int64_t i = 0, at = array->offset + begin; i < count; i++, at++)
        to[i] = bits[at >> 3] >> (at & 7) & 1;
    return TUNDISH_OK;
}

/* The bytes above the lowest eight only repeat the sign. */
static tundish_status
take_decimals(const struct ArrowArray *array, size_t width, int64_t begin, int64_t count,
              const uint8_t *nulls, int64_t *to)
{
    const uint8_t *from = buffer_of(array, 1) + (uint64_t)(array->offset + begin) * width;

    for (int64_t i = 0; i < count; i++, from += width) {
        int64_t value = width == 4 ? (int32_t)load_u32(from) : load_i64(from);

        for (size_t k = 8; k < width; k += 8)
            if (load_i64(from + k) != (value < 0 ? -1 : 0) && (nulls == NULL || nulls[i] == 0))
                return damaged("a decimal does not fit an int64");
        to[i] = value;
    }
    return TUNDISH_OK;
}

static tundish_status
take_texts(const struct ArrowArray *array, bool is_large, int64_t begin, int64_t count,
           const uint8_t *nulls, struct byte_view *to)
{
    const uint8_t *offsets = buffer_of(array, 1), *data = buffer_of(array, 2);

    for (int64_t i = 0; i < count; i++) {
        int64_t at = array->offset + begin + i;
        int64_t from = offset_at(offsets, is_large, at), end = offset_at(offsets, is_large, at + 1);

        to[i] = (struct byte_view){ 0 };
        if (from == end || (nulls != NULL && nulls[i] != 0))
            continue;
        if (from < 0 || from > end || data == NULL)
            return damaged("offsets of its texts are damaged");
        to[i] = (struct byte_view){ data + from, (uint64_t)(end - from) };
    }
    return TUNDISH_OK;
}

/* 16 bytes each: a length, then up to 12 bytes of text, or the first four, a buffer's number and an
 * offset in it. */
static tundish_status
take_view(const struct ArrowArray *array, const uint8_t *view, struct byte_view *ret_text)
{
    int64_t bytes = (int32_t)load_u32(view), buffer = (int32_t)load_u32(view + 8),
            offset = (int32_t)load_u32(view + 12);
    int64_t buffer_count = array->n_buffers - 3;
    const uint8_t *data;

    if (bytes >= 0 && bytes <= 12) {
        *ret_text = (struct byte_view){ view + 4, (uint64_t)bytes };
        return TUNDISH_OK;
    }
    if (bytes < 0 || buffer < 0 || buffer >= buffer_count || offset < 0)
        return damaged("a view of its texts is damaged");
    data = buffer_of(array, 2 + buffer);
    if (data == NULL ||
        offset + bytes > load_i64(buffer_of(array, array->n_buffers - 1) + 8 * buffer))
        return damaged("a view of its texts is damaged");
    *ret_text = (struct byte_view){ data + offset, (uint64_t)bytes };
    return TUNDISH_OK;
}

static tundish_status
take_views(const struct ArrowArray *array, int64_t begin, int64_t count, const uint8_t *nulls,
           struct byte_view *to)
{
    const uint8_t *views = buffer_of(array, 1) + 16 * (array->offset + begin);
    tundish_status status = TUNDISH_OK;

    for (int64_t i = 0; i < count && status == TUNDISH_OK; i++, views += 16)
        if (nulls != NULL && nulls[i] != 0)
            to[i] = (struct byte_view){ 0 };
        else
            status = take_view(array, views, &to[i]);
    return status;
}

static tundish_status
take_fixed(const struct ArrowArray *array, size_t width, int64_t begin, int64_t count,
           struct byte_view *to)
{
    const uint8_t *from = buffer_of(array, 1);

    for (int64_t i = 0; i < count; i++)
        to[i] =
            width == 0
                ? (struct byte_view){ 0 }
                : (struct byte_view){ from + (uint64_t)(array->offset + begin + i) * width, width };
    return TUNDISH_OK;
}

/* Values without a dictionary; those of nulls are anything. */
static tundish_status
take_plain(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
           int64_t count, const uint8_t *nulls, void *to)
{
    switch (field->layout) {
    case ARROW_BITS:
        return take_bits(array, begin, count, to);
    case ARROW_NUMBERS:
        memcpy(to, buffer_of(array, 1) + (uint64_t)(array->offset + begin) * field->width,
               (size_t)count * field->width);
        return TUNDISH_OK;
    case ARROW_DECIMALS:
        return take_decimals(array, field->width, begin, count, nulls, to);
    case ARROW_TEXTS:
    case ARROW_LARGE_TEXTS:
        return take_texts(array, field->layout == ARROW_LARGE_TEXTS, begin, count, nulls, to);
    case ARROW_TEXT_VIEWS:
        return take_views(array, begin, count, nulls, to);
    case ARROW_FIXED_TEXTS:
        return take_fixed(array, field->width, begin, count, to);
    }
    return TUNDISH_OK;
}

static uint64_t
index_at(const struct arrow_field *field, const uint8_t *from)
{
    switch (field->index_width) {
    case 1:
        return field->index_is_signed ? (uint64_t)(int8_t)*from : *from;
    case 2:
        return field->index_is_signed ? (uint64_t)(int16_t)load_u16(from) : load_u16(from);
    case 4:
        return field->index_is_signed ? (uint64_t)(int32_t)load_u32(from) : load_u32(from);
    default:
        return load_u64(from);
    }
}

/* Values by their numbers in the dictionary, whose nulls are theirs. */
static tundish_status
take_indexed(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
             int64_t count, struct arrow_values *values)
{
    size_t width = arrow_value_bytes(field->dtype), step = field->index_width;
    const uint8_t *indices = buffer_of(array, 1) + (uint64_t)(array->offset + begin) * step;
    bool has_nulls = values->null_count > 0;
    tundish_status status = arrow_room_need(&values->nulls, (uint64_t)count, 1);

    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        uint64_t index = index_at(field, indices + (uint64_t)i * step);
        uint8_t *to = values->values.data + (uint64_t)i * width;
        bool is_null = has_nulls && values->nulls.data[i] != 0;

        if (!is_null && index >= (uint64_t)values->word_count)
            return damaged("an index is not in its dictionary");
        if (!is_null && values->word_null_count > 0 && values->word_nulls.data[index] != 0)
            is_null = true;
        else if (!is_null)
            memcpy(to, values->words.data + index * width, width);
        values->null_count += is_null && (!has_nulls || values->nulls.data[i] == 0);
        values->nulls.data[i] = is_null;
    }
    return TUNDISH_OK;
}

/* Put the fallback, or zeros, where nulls are. With a fallback nothing is null any more. */
static void
fill_nulls(const uint8_t *marks, int64_t count, size_t width, const void *fallback, uint8_t *to)
{
    static const uint8_t zeros[16];

    for (int64_t i = 0; i < count; i++)
        if (marks[i] != 0)
            memcpy(to + (uint64_t)i * width, fallback != NULL ? fallback : zeros, width);
}

static tundish_status
take_flat(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
          int64_t count, const void *fallback, struct arrow_values *values)
{
    size_t width = arrow_value_bytes(field->dtype);
    tundish_status status = arrow_room_need(&values->values, (uint64_t)count, width);

    values->value_count = count;
    if (status == TUNDISH_OK)
        status = mark_nulls(array, begin, count, &values->nulls, &values->null_count);
    if (status != TUNDISH_OK || count == 0)
        return status;
    status = field->index_width > 0 ? take_indexed(field, array, begin, count, values)
                                    : take_plain(field, array, begin, count,
                                                 values->null_count > 0 ? values->nulls.data : NULL,
                                                 values->values.data);
    if (status != TUNDISH_OK || values->null_count == 0)
        return status;
    fill_nulls(values->nulls.data, count, width, fallback, values->values.data);
    if (fallback != NULL)
        values->null_count = 0;
    return TUNDISH_OK;
}

static tundish_status
check_dictionary(const struct arrow_field *field, const struct ArrowArray *array,
                 struct arrow_values *values)
{
    struct arrow_field plain = *field;
    struct arrow_values words = { .values = values->words, .nulls = values->word_nulls };
    tundish_status status;

    plain.index_width = 0;
    status = array->dictionary == NULL ? damaged("its dictionary is missing")
                                       : check_values(&plain, array->dictionary, 0);
    if (status == TUNDISH_OK)
        status = take_flat(&plain, array->dictionary, 0, array->dictionary->length, NULL, &words);
    values->words = words.values;
    values->word_nulls = words.nulls;
    values->word_count = words.value_count;
    values->word_null_count = words.null_count;
    return status;
}

/* The array of a list's values. */
static const struct ArrowArray *
values_array(const struct arrow_field *field, const struct ArrowArray *array)
{
    return field->shape == ARROW_SCALARS ? array : array->children[0];
}

static tundish_status
check_lists(const struct arrow_field *field, const struct ArrowArray *array, int64_t row_count)
{
    bool is_fixed = field->shape == ARROW_FIXED_LISTS;
    tundish_status status = check_head(array, row_count, is_fixed ? 1 : 2);

    if (status != TUNDISH_OK)
        return status;
    if (array->n_buffers != (is_fixed ? 1 : 2))
        return damaged("its array has too many buffers");
    if (!is_fixed && array->length > 0 && buffer_of(array, 1) == NULL)
        return damaged("buffers of its array are missing");
    if (array->n_children != 1 || array->children == NULL || array->children[0] == NULL)
        return damaged("the values of its lists are missing");
    return TUNDISH_OK;
}

tundish_status
arrow_values_check(const struct arrow_field *field, const struct ArrowArray *array,
                   int64_t row_count, struct arrow_values *values)
{
    int64_t needed = row_count;
    tundish_status status = TUNDISH_OK;

    if (field->shape != ARROW_SCALARS) {
        status = check_lists(field, array, row_count);
        needed = 0;
    }
    if (status == TUNDISH_OK && field->shape == ARROW_FIXED_LISTS &&
        __builtin_mul_overflow(array->offset + row_count, (int64_t)field->list_size, &needed))
        return damaged("its array is shorter than it should be");
    if (status == TUNDISH_OK)
        status = check_values(field, values_array(field, array), needed);
    if (status == TUNDISH_OK && field->index_width > 0)
        status = check_dictionary(field, values_array(field, array), values);
    return status;
}

/* Where the values of each row begin, null lists being empty, in `splits`. The values of the rows
 * are a stretch of the list's array, from *ret_first on, in which those of null lists are too. */
static tundish_status
take_splits(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
            int64_t count, struct arrow_values *values)
{
    bool is_large = field->shape == ARROW_LARGE_LISTS;
    const uint8_t *offsets = buffer_of(array, 1);
    int64_t *splits, last;
    tundish_status status = arrow_room_need(&values->splits, (uint64_t)count + 1, sizeof *splits);

    if (status != TUNDISH_OK)
        return status;
    splits = (int64_t *)(void *)values->splits.data;
    splits[0] = last = offset_at(offsets, is_large, array->offset + begin);
    for (int64_t i = 0; i < count; i++) {
        splits[i + 1] = offset_at(offsets, is_large, array->offset + begin + i + 1);
        if (splits[i + 1] < last)
            return damaged("offsets of its lists are damaged");
        last = splits[i + 1];
    }
    if (splits[0] < 0 || last > values_array(field, array)->length)
        return damaged("offsets of its lists are damaged");
    return TUNDISH_OK;
}

/* Leave out the values that lie in null lists: few writers leave some there. */
static void
close_gaps(size_t width, int64_t count, struct arrow_values *values)
{
    int64_t *splits = (int64_t *)(void *)values->splits.data, used = 0, begin = splits[0];

    for (int64_t i = 0; i < count; i++) {
        int64_t end = splits[i + 1], length = values->row_nulls.data[i] != 0 ? 0 : end - begin;

        memmove(values->values.data + (uint64_t)used * width,
                values->values.data + (uint64_t)begin * width, (uint64_t)length * width);
        if (values->null_count > 0)
            memmove(values->nulls.data + used, values->nulls.data + begin, (uint64_t)length);
        used += length;
        begin = end;
        splits[i + 1] = used;
    }
    values->value_count = used;
}

static tundish_status
take_lists(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
           int64_t count, const void *fallback, struct arrow_values *values)
{
    int64_t *splits, first, value_count, null_rows = 0;
    tundish_status status = take_splits(field, array, begin, count, values);

    if (status == TUNDISH_OK)
        status = mark_nulls(array, begin, count, &values->row_nulls, &null_rows);
    if (status != TUNDISH_OK)
        return status;
    splits = (int64_t *)(void *)values->splits.data;
    first = splits[0];
    value_count = splits[count] - first;
    values->is_much = count > 1 && value_count > CHUNK_VALUES;
    if (values->is_much)
        return TUNDISH_OK;
    if (value_count > ROW_BYTES_MAX)
        return damaged("a list is longer than a row may be");
    status = take_flat(field, values_array(field, array), first, value_count, fallback, values);
    for (int64_t i = 0; i <= count; i++)
        splits[i] -= first;
    if (status == TUNDISH_OK && null_rows > 0 && value_count > 0)
        close_gaps(arrow_value_bytes(field->dtype), count, values);
    return status;
}

static tundish_status
take_fixed_lists(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
                 int64_t count, const void *fallback, struct arrow_values *values)
{
    int64_t size = field->list_size, value_count, null_rows = 0;
    size_t width = arrow_value_bytes(field->dtype);
    tundish_status status = mark_nulls(array, begin, count, &values->row_nulls, &null_rows);

    if (status != TUNDISH_OK)
        return status;
    if (__builtin_mul_overflow(count, size, &value_count) || value_count > CHUNK_VALUES) {
        values->is_much = count > 1;
        if (values->is_much)
            return TUNDISH_OK;
        if (value_count > ROW_BYTES_MAX)
            return damaged("a list is longer than a row may be");
    }
    status = take_flat(field, values_array(field, array), (array->offset + begin) * size,
                       value_count, fallback, values);
    if (status != TUNDISH_OK || null_rows == 0 || size == 0)
        return status;
    status = arrow_room_need(&values->nulls, (uint64_t)value_count, 1);
    if (status != TUNDISH_OK)
        return status;
    if (values->null_count == 0)
        memset(values->nulls.data, 0, (size_t)value_count);
    for (int64_t i = 0; i < count; i++)
        if (values->row_nulls.data[i] != 0)
            memset(values->nulls.data + i * size, 1, (size_t)size);
    fill_nulls(values->nulls.data, value_count, width, fallback, values->values.data);
    values->null_count = fallback == NULL ? 1 : 0;
    return TUNDISH_OK;
}

tundish_status
arrow_values_take(const struct arrow_field *field, const struct ArrowArray *array, int64_t begin,
                  int64_t count, const void *fallback, struct arrow_values *values)
{
    values->is_much = false;
    if (field->shape == ARROW_SCALARS)
        return take_flat(field, array, begin, count, fallback, values);
    if (field->shape == ARROW_FIXED_LISTS)
        return take_fixed_lists(field, array, begin, count, fallback, values);
    return take_lists(field, array, begin, count, fallback, values);
}

void
arrow_values_close(struct arrow_values *values)
{
    free(values->values.data);
    free(values->nulls.data);
    free(values->splits.data);
    free(values->row_nulls.data);
    free(values->words.data);
    free(values->word_nulls.data);
    *values = (struct arrow_values){ 0 };
}
