/* dims.c - walking dense elements. */
#include "column/dims.h"

#include <stdio.h>
#include <string.h>

#include "core/must.h"

void
column_dims(const struct column *column, int64_t element, int64_t ret_dims[RANK_MAX])
{
    int64_t list = element;
    bool is_empty = false;

    for (uint32_t k = 0; k < column->level_count; k++) {
        const struct level *level = &column->levels[k];

        /* Below an empty list there is no list to measure. */
        if (is_empty) {
            ret_dims[k] = level->uniform >= 0 ? level->uniform : 0;
            continue;
        }
        ret_dims[k] = level_length(level, list);
        list = level_begin(level, list);
        is_empty = ret_dims[k] == 0;
    }
}

bool
column_same_dims(const struct column *column, int64_t ret_dims[RANK_MAX])
{
    for (uint32_t k = 0; k < column->level_count; k++)
        if (!column_is_uniform(column, k, &ret_dims[k]))
            return false;
    return true;
}

static bool
is_same_level(const struct level *a, const struct level *b, int64_t lists)
{
    if (a->uniform >= 0 && b->uniform >= 0)
        return a->uniform == b->uniform || lists == 0;
    /* The same splits, as columns have that were made from one another. */
    if (a->uniform < 0 && b->uniform < 0 && a->splits == b->splits)
        return true;
    for (int64_t i = 0; i < lists; i++)
        if (level_length(a, i) != level_length(b, i))
            return false;
    return true;
}

bool
column_same_structure(const struct column *a, const struct column *b)
{
    int64_t lists = a->count;

    if (a->count != b->count || a->level_count != b->level_count ||
        a->value_count != b->value_count)
        return false;
    for (uint32_t k = 0; k < a->level_count; k++) {
        if (!is_same_level(&a->levels[k], &b->levels[k], lists))
            return false;
        lists = level_begin(&a->levels[k], lists);
    }
    return true;
}

int64_t
dims_product(const int64_t *dims, uint32_t rank)
{
    int64_t product = 1;

    for (uint32_t k = 0; k < rank; k++)
        /* Sizes from files are bounded before they come here. */
        must(!__builtin_mul_overflow(product, dims[k], &product));
    return product;
}

void
column_set_dims(struct column *column, int64_t count, uint32_t rank, const int64_t dims[RANK_MAX])
{
    column_clear(column);
    column->count = count;
    column->level_count = rank;
    for (uint32_t k = 0; k < rank; k++)
        column->levels[k] = (struct level){ .uniform = dims[k] };
    must(!__builtin_mul_overflow(dims_product(dims, rank), count, &column->value_count));
}

static bool
is_column_of_same(const int64_t *dims, uint32_t rank, uint32_t k, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (dims[i * rank + k] != dims[k])
            return false;
    return true;
}

void
column_set_dims_each(struct column *column, int64_t count, uint32_t rank, const int64_t *dims,
                     struct scratch *scratch)
{
    int64_t lists = count;

    *column = (struct column){ .count = count, .level_count = rank };
    for (uint32_t k = 0; k < rank; k++) {
        struct level *level = &column->levels[k];
        int64_t *splits, at = 0;

        level->uniform = count > 0 ? dims[k] : 0;
        if (is_column_of_same(dims, rank, k, count)) {
            lists = level_begin(level, lists);
            continue;
        }
        splits = scratch_array(scratch, (size_t)lists + 1, sizeof *splits);
        splits[0] = 0;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = dims_product(&dims[i * rank], k); j > 0; j--, at++)
                splits[at + 1] = splits[at] + dims[i * rank + k];
        *level = (struct level){ .uniform = -1, .splits = splits };
        lists = splits[lists];
    }
    column->value_count = lists;
}

/* NumPy's rule: sizes are aligned at the end, and a size of 1 stretches. An unknown size (< 0)
 * gives way to a known one. */
bool
dims_broadcast(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank,
               int64_t ret_dims[RANK_MAX], uint32_t *ret_rank)
{
    uint32_t rank = a_rank > b_rank ? a_rank : b_rank;

    for (uint32_t k = rank; k-- > 0;) { /* from the end, because ret_dims may be a or b */
        int64_t x = k + a_rank < rank ? 1 : a[k + a_rank - rank];
        int64_t y = k + b_rank < rank ? 1 : b[k + b_rank - rank];

        if (x == y || y == 1)
            ret_dims[k] = x;
        else if (x == 1)
            ret_dims[k] = y;
        else if (x < 0 || y < 0)
            ret_dims[k] = x < 0 ? y : x;
        else
            return false;
    }
    *ret_rank = rank;
    return true;
}

/* Write `count` copies of one value. */
static void
repeat_value(uint8_t *to, const uint8_t *value, size_t bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        switch (bytes) { /* a constant size lets the compiler store it at once */
        case 1:
            memcpy(to + i, value, 1);
            break;
        case 2:
            memcpy(to + 2 * i, value, 2);
            break;
        case 4:
            memcpy(to + 4 * i, value, 4);
            break;
        case 8:
            memcpy(to + 8 * i, value, 8);
            break;
        default:
            memcpy(to + (size_t)i * bytes, value, bytes);
        }
}

/* Write one element, broadcast to `dims`. Its strides are 0 where it repeats. Returns the end of
 * the written values. */
static uint8_t *
broadcast_element(uint8_t *to, const uint8_t *from, size_t bytes, uint32_t rank,
                  const int64_t *dims, const int64_t *strides)
{
    if (rank == 0) {
        memcpy(to, from, bytes);
        return to + bytes;
    }
    if (rank == 1) {
        if (strides[0] == 0)
            repeat_value(to, from, bytes, dims[0]);
        else
            memcpy(to, from, (size_t)dims[0] * bytes);
        return to + (size_t)dims[0] * bytes;
    }
    for (int64_t i = 0; i < dims[0]; i++)
        to = broadcast_element(to, from + (size_t)(i * strides[0]) * bytes, bytes, rank - 1,
                               dims + 1, strides + 1);
    return to;
}

static void
broadcast_scalars(const struct column *from, const struct column *to, size_t bytes, uint8_t *values)
{
    for (int64_t i = 0; i < to->count; i++) {
        const uint8_t *value =
            (const uint8_t *)from->values + (from->count == 1 ? 0 : (size_t)i * bytes);
        int64_t begin, end;

        column_value_range(to, i, i + 1, &begin, &end);
        repeat_value(values + (size_t)begin * bytes, value, bytes, end - begin);
    }
}

void
column_broadcast(const struct column *from, const struct column *to, size_t bytes, void *ret_values)
{
    uint8_t *values = ret_values;
    uint32_t rank = to->level_count, missing = rank - from->level_count;

    if (from->level_count == 0) {
        broadcast_scalars(from, to, bytes, values);
        return;
    }
    for (int64_t i = 0; i < to->count; i++) {
        int64_t element = from->count == 1 ? 0 : i;
        int64_t dims[RANK_MAX], from_dims[RANK_MAX], strides[RANK_MAX] = { 0 };
        int64_t begin, end, stride = 1;

        column_dims(to, i, dims);
        column_dims(from, element, from_dims);
        for (uint32_t k = rank; k-- > missing;) {
            strides[k] = from_dims[k - missing] == 1 && dims[k] != 1 ? 0 : stride;
            stride *= from_dims[k - missing];
        }
        if (dims_product(dims, rank) == 0)
            continue;
        column_value_range(from, element, element + 1, &begin, &end);
        values = broadcast_element(values, (const uint8_t *)from->values + (size_t)begin * bytes,
                                   bytes, rank, dims, strides);
    }
}

const char *
dims_text(const int64_t *dims, uint32_t rank, char ret_text[128])
{
    size_t used = 1;

    ret_text[0] = '[';
    for (uint32_t k = 0; k < rank && used < 100; k++) {
        const char *comma = k > 0 ? "," : "";

        used += dims[k] < 0 ? (size_t)snprintf(ret_text + used, 128 - used, "%s?", comma)
                            : (size_t)snprintf(ret_text + used, 128 - used, "%s%lld", comma,
                                               (long long)dims[k]);
    }
    snprintf(ret_text + used, 128 - used, "]");
    return ret_text;
}
