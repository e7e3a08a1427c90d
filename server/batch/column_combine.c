/* column_combine.c - gathers, joins, batches, unbatches and slices columns. Results live in
 * scratch, and share arrays with their inputs where nothing changes. */
#include "batch/column_combine.h"

#include <string.h>

#include "core/bytes.h"
#include "core/must.h"

size_t
column_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

static int64_t *
index_array(struct scratch *scratch, int64_t count)
{
    return scratch_array(scratch, (size_t)count, sizeof(int64_t));
}

/* Copy the values at `index`. The switch on the size is outside of the loop, so that each loop is a
 * simple gather. */
static void
gather_values(const void *from, size_t value_bytes, const int64_t *index, int64_t count, void *to)
{
#define GATHER(type)                                                                               \
    for (int64_t i = 0; i < count; i++)                                                            \
    ((type *)to)[i] = ((const type *)from)[index[i]]
    switch (value_bytes) {
    case 1:
        GATHER(uint8_t);
        break;
    case 2:
        GATHER(uint16_t);
        break;
    case 4:
        GATHER(uint32_t);
        break;
    case 8:
        GATHER(uint64_t);
        break;
    default:
        must(value_bytes == sizeof(struct byte_view));
        GATHER(struct byte_view);
    }
#undef GATHER
}

/* Where the lists of each element lie, of one level after the other; at last its values. */
struct ranges {
    int64_t *begins, *ends;
    int64_t count; /* elements */
};

/* The lists of this level that are in the ranges; the ranges become those of what they hold. */
static struct level
descend(const struct level *level, struct ranges *ranges, struct scratch *scratch)
{
    struct level result = { .uniform = level->uniform };
    int64_t lists = 0, total = 0;
    int64_t *splits = NULL;

    must_in_debug(level->uniform >= 0 || level->splits != NULL);
    if (level->uniform < 0) {
        for (int64_t i = 0; i < ranges->count; i++)
            lists += ranges->ends[i] - ranges->begins[i];
        splits = index_array(scratch, lists + 1);
        *splits++ = 0;
        result.splits = splits - 1;
    }
    for (int64_t i = 0; i < ranges->count; i++) {
        for (int64_t k = ranges->begins[i]; level->uniform < 0 && k < ranges->ends[i]; k++)
            *splits++ = total += level_length(level, k);
        ranges->begins[i] = level_begin(level, ranges->begins[i]);
        ranges->ends[i] = level_begin(level, ranges->ends[i]);
    }
    return result;
}

static const int64_t *
gather_tuples(const int64_t *tuples, uint32_t width, const int64_t *index, int64_t count,
              struct scratch *scratch)
{
    int64_t *gathered;

    if (tuples == NULL)
        return NULL;
    gathered = index_array(scratch, count * width);
    for (int64_t i = 0; i < count; i++)
        memcpy(&gathered[i * width], &tuples[index[i] * width], width * sizeof *tuples);
    return gathered;
}

/* Copy the contents of the ranges, one after the other. */
static void
copy_ranges(const struct ranges *ranges, const void *from, size_t bytes_each, void *to)
{
    uint8_t *at = to;

    for (int64_t i = 0; i < ranges->count; i++) {
        size_t bytes = (size_t)(ranges->ends[i] - ranges->begins[i]) * bytes_each;

        if (bytes > 0)
            memcpy(at, (const uint8_t *)from + (size_t)ranges->begins[i] * bytes_each, bytes);
        at += bytes;
    }
}

/* The values, and indices, of elements that are lists. */
static void
gather_lists(const struct column *from, size_t value_bytes, struct ranges *ranges,
             struct scratch *scratch, struct column *result)
{
    size_t tuple_bytes = from->level_count * sizeof(int64_t);
    void *values;

    for (uint32_t k = 0; k < from->level_count; k++)
        result->levels[k] = descend(&from->levels[k], ranges, scratch);
    for (int64_t i = 0; i < ranges->count; i++)
        result->value_count += ranges->ends[i] - ranges->begins[i];
    values = scratch_array(scratch, (size_t)result->value_count, value_bytes);
    copy_ranges(ranges, from->values, value_bytes, values);
    result->values = values;
    if (from->indices != NULL) {
        int64_t *indices = index_array(scratch, result->value_count * from->level_count);

        copy_ranges(ranges, from->indices, tuple_bytes, indices);
        result->indices = indices;
    }
}

void
column_gather(const struct column *from, tundish_dtype dtype, const int64_t *index, int64_t count,
              struct scratch *scratch, struct column *ret_column)
{
    struct column result = { .count = count, .level_count = from->level_count };
    size_t value_bytes = column_value_bytes(dtype);

    must_in_debug(from->level_count <= RANK_MAX && count >= 0);
    must_in_debug(from->level_count > 0 || from->value_count == from->count);
    result.dense_shape = gather_tuples(from->dense_shape, from->level_count, index, count, scratch);
    if (from->level_count == 0) {
        void *values = scratch_array(scratch, (size_t)count, value_bytes);

        gather_values(from->values, value_bytes, index, count, values);
        result.values = values;
        result.value_count = count;
    } else {
        struct ranges ranges = { .begins = index_array(scratch, count),
                                 .ends = index_array(scratch, count),
                                 .count = count };

        for (int64_t i = 0; i < count; i++) {
            ranges.begins[i] = index[i];
            ranges.ends[i] = index[i] + 1;
        }
        gather_lists(from, value_bytes, &ranges, scratch, &result);
    }
    must_in_debug(column_list_count(&result, result.level_count) == result.value_count);
    *ret_column = result;
}

/* Concatenate level k of all parts. It stays uniform only if all parts have the same length there.
 */
static struct level
join_level(const struct column *parts, uint32_t part_count, uint32_t k, struct scratch *scratch)
{
    int64_t lists = 0, at = 0, inner = 0;
    int64_t *splits;
    bool same = true;

    for (uint32_t p = 0; p < part_count; p++) {
        lists += column_list_count(&parts[p], k);
        same &= parts[p].levels[k].uniform >= 0 &&
                parts[p].levels[k].uniform == parts[0].levels[k].uniform;
    }
    if (same)
        return parts[0].levels[k];
    splits = index_array(scratch, lists + 1);
    splits[0] = 0;
    for (uint32_t p = 0; p < part_count; p++) {
        int64_t here = column_list_count(&parts[p], k);

        for (int64_t i = 0; i < here; i++) {
            inner += level_length(&parts[p].levels[k], i);
            splits[++at] = inner;
        }
    }
    must_in_debug(at == lists);
    return (struct level){ .uniform = -1, .splits = splits };
}

static const int64_t *
join_tuples(const struct column *parts, uint32_t part_count, bool indices, struct scratch *scratch)
{
    uint32_t width = parts[0].level_count;
    int64_t total = 0, at = 0;
    int64_t *joined;

    for (uint32_t p = 0; p < part_count; p++) {
        if ((indices ? parts[p].indices : parts[p].dense_shape) == NULL)
            return NULL;
        total += indices ? parts[p].value_count : parts[p].count;
    }
    joined = index_array(scratch, total * width);
    for (uint32_t p = 0; p < part_count; p++) {
        int64_t here = indices ? parts[p].value_count : parts[p].count;

        memcpy(&joined[at * width], indices ? parts[p].indices : parts[p].dense_shape,
               (size_t)(here * width) * sizeof *joined);
        at += here;
    }
    must_in_debug(at == total);
    return joined;
}

void
column_join(const struct column *parts, uint32_t part_count, tundish_dtype dtype,
            struct scratch *scratch, struct column *ret_column)
{
    struct column result = { .level_count = parts[0].level_count };
    size_t value_bytes = column_value_bytes(dtype);
    uint8_t *values;
    size_t at = 0;

    must_in_debug(part_count > 0);
    for (uint32_t p = 0; p < part_count; p++) {
        must(parts[p].level_count == result.level_count);
        result.count += parts[p].count;
        result.value_count += parts[p].value_count;
    }
    for (uint32_t k = 0; k < result.level_count; k++)
        result.levels[k] = join_level(parts, part_count, k, scratch);
    values = scratch_array(scratch, (size_t)result.value_count, value_bytes);
    for (uint32_t p = 0; p < part_count; p++) {
        size_t bytes = (size_t)parts[p].value_count * value_bytes;

        if (bytes > 0)
            memcpy(values + at, parts[p].values, bytes);
        at += bytes;
    }
    result.values = values;
    result.indices = join_tuples(parts, part_count, true, scratch);
    result.dense_shape = join_tuples(parts, part_count, false, scratch);
    must_in_debug(column_list_count(&result, result.level_count) == result.value_count);
    *ret_column = result;
}

/* The coordinates of sparse values, with the number of the row in its batch in front. */
static const int64_t *
batch_indices(const struct column *rows, const int64_t *splits, int64_t batch_count,
              struct scratch *scratch)
{
    uint32_t width = rows->level_count;
    int64_t *indices = index_array(scratch, rows->value_count * (width + 1));
    int64_t *to = indices;

    for (int64_t b = 0; b < batch_count; b++)
        for (int64_t row = splits[b]; row < splits[b + 1]; row++) {
            int64_t begin, end;

            column_value_range(rows, row, row + 1, &begin, &end);
            for (int64_t v = begin; v < end; v++, to += width + 1) {
                to[0] = row - splits[b];
                memcpy(to + 1, &rows->indices[v * width], width * sizeof *to);
            }
        }
    must_in_debug(to == indices + rows->value_count * (width + 1));
    return indices;
}

/* The dense shape of each batch: its row count, and the largest of its rows in each dimension. */
static const int64_t *
batch_shapes(const struct column *rows, const int64_t *splits, int64_t batch_count,
             struct scratch *scratch)
{
    uint32_t width = rows->level_count;
    int64_t *shapes = index_array(scratch, batch_count * (width + 1));

    for (int64_t b = 0; b < batch_count; b++) {
        int64_t *shape = &shapes[b * (width + 1)];

        memset(shape, 0, (width + 1) * sizeof *shape);
        shape[0] = splits[b + 1] - splits[b];
        for (int64_t row = splits[b]; row < splits[b + 1]; row++)
            for (uint32_t k = 0; k < width; k++)
                if (rows->dense_shape[row * width + k] > shape[k + 1])
                    shape[k + 1] = rows->dense_shape[row * width + k];
    }
    return shapes;
}

void
column_batch(const struct column *rows, const int64_t *splits, int64_t batch_count,
             struct scratch *scratch, struct column *ret_column)
{
    const int64_t *indices = NULL, *shapes = NULL;
    uint32_t rank = rows->level_count;

    must(rank < RANK_MAX);
    must_in_debug(splits[0] == 0 && splits[batch_count] == rows->count);
    if (rows->indices != NULL)
        indices = batch_indices(rows, splits, batch_count, scratch);
    if (rows->dense_shape != NULL)
        shapes = batch_shapes(rows, splits, batch_count, scratch);
    for (uint32_t k = rank; k > 0; k--) /* backwards: rows and ret_column may be the same */
        ret_column->levels[k] = rows->levels[k - 1];
    ret_column->levels[0] = batch_count == 1 ? (struct level){ .uniform = splits[1] }
                                             : (struct level){ .uniform = -1, .splits = splits };
    ret_column->count = batch_count;
    ret_column->level_count = rank + 1;
    ret_column->value_count = rows->value_count;
    ret_column->values = rows->values;
    ret_column->indices = indices;
    ret_column->dense_shape = shapes;
}

/* Copy tuples of `width` numbers without the first of each. */
static const int64_t *
without_first(const int64_t *tuples, int64_t count, uint32_t width, struct scratch *scratch)
{
    int64_t *left = index_array(scratch, count * (width - 1));

    must_in_debug(width > 0);
    for (int64_t i = 0; i < count; i++)
        memcpy(&left[i * (width - 1)], &tuples[i * width + 1], (width - 1) * sizeof *left);
    return left;
}

/* The dense shape of each row: that of its batch without the first dimension. */
static const int64_t *
shapes_of_rows(const struct column *batches, struct scratch *scratch)
{
    uint32_t width = batches->level_count;
    int64_t *shapes = index_array(scratch, column_list_count(batches, 1) * (width - 1));
    int64_t *to = shapes;

    for (int64_t b = 0; b < batches->count; b++)
        for (int64_t row = 0; row < level_length(&batches->levels[0], b); row++, to += width - 1)
            memcpy(to, &batches->dense_shape[b * width + 1], (width - 1) * sizeof *to);
    must_in_debug(to == shapes + column_list_count(batches, 1) * (width - 1));
    return shapes;
}

void
column_unbatch(const struct column *batches, struct scratch *scratch, struct column *ret_column)
{
    struct column result = *batches;

    must(batches->level_count > 0 && (batches->indices == NULL || batches->level_count > 1));
    if (batches->indices != NULL)
        result.indices =
            without_first(batches->indices, batches->value_count, batches->level_count, scratch);
    if (batches->dense_shape != NULL && batches->level_count > 1)
        result.dense_shape = shapes_of_rows(batches, scratch);
    result.count = level_begin(&batches->levels[0], batches->count);
    result.level_count--;
    memmove(&result.levels[0], &batches->levels[1], result.level_count * sizeof result.levels[0]);
    must_in_debug(column_list_count(&result, result.level_count) == result.value_count);
    *ret_column = result;
}

int64_t
column_rows(const struct column *batch)
{
    must(batch->count == 1 && batch->level_count > 0);
    return batch->dense_shape != NULL ? batch->dense_shape[0] : level_length(&batch->levels[0], 0);
}

/* Slice a sparse vector. Its rows are single values, so the (ascending) coordinates say which
 * values are in the slice. */
static void
slice_vector(const struct column *batch, tundish_dtype dtype, int64_t begin, int64_t end,
             struct scratch *scratch, struct column *ret_column)
{
    struct column result = *batch;
    int64_t *indices = index_array(scratch, batch->value_count);
    int64_t *shape = index_array(scratch, 1);
    int64_t first = 0, count = 0;

    while (first < batch->value_count && batch->indices[first] < begin)
        first++;
    for (int64_t v = first; v < batch->value_count && batch->indices[v] < end; v++)
        indices[count++] = batch->indices[v] - begin;
    must_in_debug(first + count <= batch->value_count);
    shape[0] = end - begin;
    result.levels[0] = (struct level){ .uniform = count };
    result.value_count = count;
    result.values = (const uint8_t *)batch->values + (size_t)first * column_value_bytes(dtype);
    result.indices = indices;
    result.dense_shape = shape;
    *ret_column = result;
}

void
column_slice(const struct column *batch, tundish_dtype dtype, int64_t begin, int64_t end,
             struct scratch *scratch, struct column *ret_column)
{
    struct column result = *batch;
    size_t value_bytes = column_value_bytes(dtype);
    int64_t first_row = begin, length;

    must(batch->count == 1 && batch->level_count > 0);
    must_in_debug(0 <= begin && begin <= end && end <= column_rows(batch));
    if (batch->indices != NULL && batch->level_count == 1) {
        slice_vector(batch, dtype, begin, end, scratch, ret_column);
        return;
    }
    result.levels[0] = (struct level){ .uniform = end - begin };
    for (uint32_t k = 1; k < batch->level_count; k++) {
        const struct level *level = &batch->levels[k];

        /* An empty slice keeps the dimensions of its batch, which splits without lists could not
         * express. */
        if (level->uniform < 0 && begin == end && column_is_uniform(batch, k, &length)) {
            result.levels[k] = (struct level){ .uniform = length };
        } else if (level->uniform < 0) {
            int64_t *splits = index_array(scratch, end - begin + 1);

            for (int64_t i = begin; i <= end; i++)
                splits[i - begin] = level->splits[i] - level->splits[begin];
            result.levels[k].splits = splits;
        }
        end = level_begin(level, end);
        begin = level_begin(level, begin);
    }
    must_in_debug(0 <= begin && begin <= end && end <= batch->value_count);
    result.value_count = end - begin;
    result.values = (const uint8_t *)batch->values + (size_t)begin * value_bytes;
    if (batch->dense_shape != NULL) {
        int64_t *shape = index_array(scratch, batch->level_count);

        memcpy(shape, batch->dense_shape, batch->level_count * sizeof *shape);
        shape[0] = result.levels[0].uniform;
        result.dense_shape = shape;
    }
    if (batch->indices != NULL) {
        int64_t *indices = index_array(scratch, result.value_count * batch->level_count);
        uint32_t width = batch->level_count;

        memcpy(indices, &batch->indices[begin * width],
               (size_t)(result.value_count * width) * sizeof *indices);
        for (int64_t i = 0; i < result.value_count; i++)
            indices[i * width] -= first_row;
        result.indices = indices;
    }
    *ret_column = result;
}

/* Make levels uniform whose lists all have the same length: dense columns need no splits after
 * that. */
void
column_settle(struct column *column)
{
    for (uint32_t k = 0; k < column->level_count; k++) {
        int64_t length;

        if (column->levels[k].uniform < 0 && column_list_count(column, k) > 0 &&
            column_is_uniform(column, k, &length))
            column->levels[k] = (struct level){ .uniform = length };
    }
}
