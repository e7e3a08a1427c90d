/* slice.c - slice elements by a table of offsets. */
#include "content/expression/slice.h"

#include <string.h>

#include "column/dims.h"

/* Python's slice.indices: clamp start and stop to the size, and count the steps. The count is
 * computed without sign, where -INT64_MIN is defined. */
int64_t
slice_resolve(const struct slice_item *item, int64_t size, int64_t *ret_first)
{
    bool forward = item->step > 0;
    int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
    int64_t start = forward ? low : high, stop = forward ? high : low;
    uint64_t distance, step;

    if (item->has_start) {
        start = item->start < 0 ? item->start + size : item->start;
        start = start < low ? low : start > high ? high : start;
    }
    if (item->has_stop) {
        stop = item->stop < 0 ? item->stop + size : item->stop;
        stop = stop < low ? low : stop > high ? high : stop;
    }
    *ret_first = start;
    if (forward ? start >= stop : start <= stop)
        return 0;
    distance = forward ? (uint64_t)(stop - start) : (uint64_t)(start - stop);
    step = forward ? (uint64_t)item->step : -(uint64_t)item->step;
    return (int64_t)((distance - 1) / step + 1);
}

/* How to walk through one element: for each dimension a number of steps and a stride. */
struct walk {
    uint32_t rank;
    int64_t first;
    int64_t counts[RANK_MAX], strides[RANK_MAX];
};

/* Plan the walk through one element. False: an index is outside. */
static bool
walk_plan(const struct slice_item *items, const int64_t *dims, uint32_t rank, struct walk *walk)
{
    int64_t stride = 1;

    *walk = (struct walk){ .rank = rank };
    for (uint32_t k = rank; k-- > 0;) {
        const struct slice_item *item = &items[k];
        int64_t first;

        if (item->is_index) {
            first = item->start < 0 ? item->start + dims[k] : item->start;
            if (first < 0 || first >= dims[k])
                return false;
            walk->counts[k] = 1;
        } else {
            walk->counts[k] = slice_resolve(item, dims[k], &first);
            walk->strides[k] = stride * (walk->counts[k] > 1 ? item->step : 0);
        }
        walk->first += first * stride;
        stride *= dims[k];
    }
    return true;
}

/* List the offsets of the walk's values in order. The recursion is at most RANK_MAX deep. */
static int64_t *
write_offsets(const struct walk *walk, uint32_t k, int64_t offset, int64_t *offsets)
{
    if (k == walk->rank) {
        *offsets = offset;
        return offsets + 1;
    }
    for (int64_t i = 0; i < walk->counts[k]; i++)
        offsets = write_offsets(walk, k + 1, offset + i * walk->strides[k], offsets);
    return offsets;
}

/* Constant sizes compile to single loads and stores. */
static void
gather(uint8_t *to, const uint8_t *from, size_t bytes, const int64_t *offsets, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        switch (bytes) {
        case 1:
            memcpy(to + i, from + offsets[i], 1);
            break;
        case 2:
            memcpy(to + 2 * i, from + 2 * offsets[i], 2);
            break;
        case 4:
            memcpy(to + 4 * i, from + 4 * offsets[i], 4);
            break;
        case 8:
            memcpy(to + 8 * i, from + 8 * offsets[i], 8);
            break;
        default:
            memcpy(to + (size_t)i * bytes, from + (size_t)offsets[i] * bytes, bytes);
        }
}

/* The dimensions of one element that remain. */
static uint32_t
kept_dims(const struct walk *walk, const struct slice_item *items, int64_t *dims)
{
    uint32_t rank = 0;

    for (uint32_t k = 0; k < walk->rank; k++)
        if (!items[k].is_index)
            dims[rank++] = walk->counts[k];
    return rank;
}

/* If all elements have one shape, one table of offsets serves them all. */
static void
slice_alike(const struct column *column, size_t bytes, const struct slice_item *items,
            const int64_t *dims, struct scratch *scratch, struct column *ret_column,
            uint8_t *ret_bad)
{
    uint32_t rank = column->level_count, kept;
    int64_t kept_sizes[RANK_MAX], per_element = dims_product(dims, rank), taken;
    struct walk walk;
    int64_t *offsets;
    uint8_t *values;

    if (!walk_plan(items, dims, rank, &walk)) {
        memset(ret_bad, 1, (size_t)column->count);
        memset(walk.counts, 0, sizeof walk.counts);
    }
    kept = kept_dims(&walk, items, kept_sizes);
    column_set_dims(ret_column, column->count, kept, kept_sizes);
    taken = dims_product(kept_sizes, kept);
    values = scratch_array(scratch, (size_t)ret_column->value_count, bytes);
    ret_column->values = values;
    if (column->count == 0 || taken == 0)
        return;
    if (ret_bad[0]) {
        memset(values, 0, (size_t)ret_column->value_count * bytes);
        return;
    }
    offsets = scratch_array(scratch, (size_t)taken, sizeof *offsets);
    write_offsets(&walk, 0, walk.first, offsets);
    for (int64_t i = 0; i < column->count; i++)
        gather(values + (size_t)(i * taken) * bytes,
               (const uint8_t *)column->values + (size_t)(i * per_element) * bytes, bytes, offsets,
               taken);
}

/* Elements of different shapes, or with bounds of their own, need a walk each. */
static void
slice_each(const struct column *column, size_t bytes, const struct slice_item *items,
           size_t items_stride, struct scratch *scratch, struct column *ret_column,
           uint8_t *ret_bad)
{
    uint32_t rank = column->level_count, kept = 0;
    struct walk *walks = scratch_array(scratch, (size_t)column->count, sizeof *walks);
    int64_t *kept_sizes =
        scratch_array(scratch, (size_t)column->count * RANK_MAX, sizeof *kept_sizes);
    uint8_t *values;

    for (uint32_t k = 0; k < rank; k++)
        kept += !items[k].is_index;
    for (int64_t i = 0; i < column->count; i++) {
        int64_t dims[RANK_MAX];

        column_dims(column, i, dims);
        ret_bad[i] = !walk_plan(&items[(size_t)i * items_stride], dims, rank, &walks[i]);
        if (ret_bad[i])
            memset(walks[i].counts, 0, sizeof walks[i].counts);
        kept_dims(&walks[i], &items[(size_t)i * items_stride], &kept_sizes[i * kept]);
    }
    column_set_dims_each(ret_column, column->count, kept, kept_sizes, scratch);
    values = scratch_array(scratch, (size_t)ret_column->value_count, bytes);
    ret_column->values = values;
    for (int64_t i = 0; i < column->count; i++) {
        int64_t taken = dims_product(&kept_sizes[i * kept], kept), begin, end;
        int64_t *offsets;

        if (ret_bad[i]) {
            memset(values, 0, (size_t)taken * bytes);
        } else {
            offsets = scratch_array(scratch, (size_t)taken, sizeof *offsets);
            write_offsets(&walks[i], 0, walks[i].first, offsets);
            column_value_range(column, i, i + 1, &begin, &end);
            gather(values, (const uint8_t *)column->values + (size_t)begin * bytes, bytes, offsets,
                   taken);
        }
        values += (size_t)taken * bytes;
    }
}

void
slice_column(const struct column *column, size_t bytes, const struct slice_item *items,
             size_t items_stride, struct scratch *scratch, struct column *ret_column,
             uint8_t *ret_bad)
{
    int64_t dims[RANK_MAX];

    if (items_stride == 0 && column_same_dims(column, dims))
        slice_alike(column, bytes, items, dims, scratch, ret_column, ret_bad);
    else
        slice_each(column, bytes, items, items_stride, scratch, ret_column, ret_bad);
}
