/* column.c - walking the levels of a column. */
#include "column/column.h"

int64_t
column_list_count(const struct column *column, uint32_t level)
{
    int64_t lists = column->count;

    for (uint32_t k = 0; k < level; k++)
        lists = level_begin(&column->levels[k], lists);
    return lists;
}

void
column_value_range(const struct column *column, int64_t begin, int64_t end, int64_t *ret_begin,
                   int64_t *ret_end)
{
    for (uint32_t k = 0; k < column->level_count; k++) {
        begin = level_begin(&column->levels[k], begin);
        end = level_begin(&column->levels[k], end);
    }
    *ret_begin = begin;
    *ret_end = end;
}

int64_t
column_element_of(const struct column *column, int64_t value)
{
    int64_t low = 0;
    int64_t high = column->count;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        int64_t begin, end;

        column_value_range(column, middle, middle + 1, &begin, &end);
        /* Empty elements begin where the next does: the last that begins at or before the value
         * holds it. */
        if (value < begin)
            high = middle;
        else
            low = middle;
    }
    return low;
}

bool
column_is_uniform(const struct column *column, uint32_t level, int64_t *ret_length)
{
    const struct level *lists = &column->levels[level];
    int64_t count = column_list_count(column, level);

    if (lists->uniform >= 0 || count == 0) {
        *ret_length = lists->uniform >= 0 ? lists->uniform : 0;
        return true;
    }
    for (int64_t i = 1; i < count; i++)
        if (level_length(lists, i) != level_length(lists, 0))
            return false;
    *ret_length = level_length(lists, 0);
    return true;
}

struct column
column_of_none(const struct column_spec *spec)
{
    struct column column = { .level_count = spec->rank > 0 ? (uint32_t)spec->rank : 0 };

    for (uint32_t k = 0; k < column.level_count; k++)
        /* An unknown size becomes 0, as no element states one. */
        column.levels[k].uniform = spec->shape[k] > 0 ? spec->shape[k] : 0;
    return column;
}

/* State the shape of each element as its bounding box: the longest list of each level. */
void
column_state_shape(struct column *column, struct scratch *scratch)
{
    int64_t *shapes;

    if (column->dense_shape != NULL)
        return;
    shapes = scratch_array(scratch, (size_t)column->count * column->level_count, sizeof *shapes);
    for (int64_t e = 0; e < column->count; e++) {
        int64_t begin = e, end = e + 1;

        for (uint32_t k = 0; k < column->level_count; k++) {
            int64_t longest = 0;

            for (int64_t i = begin; i < end; i++)
                if (level_length(&column->levels[k], i) > longest)
                    longest = level_length(&column->levels[k], i);
            shapes[e * column->level_count + k] = longest;
            begin = level_begin(&column->levels[k], begin);
            end = level_begin(&column->levels[k], end);
        }
    }
    column->dense_shape = shapes;
}
