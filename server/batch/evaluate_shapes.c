/* evaluate_shapes.c - checks that all rows of a batch have the shape of the first, as BatchDataset
 * does. */
#include "batch/evaluate_private.h"

#include "column/dims.h"
#include "core/must.h"

/* True if all lists of the row have the lengths of `lengths`, level by level. */
static bool
fits(const struct column *rows, int64_t row, const int64_t *lengths)
{
    int64_t begin = row, end = row + 1;

    for (uint32_t k = 0; k < rows->level_count; k++) {
        const struct level *level = &rows->levels[k];

        for (int64_t i = begin; i < end; i++)
            if (level_length(level, i) != lengths[k])
                return false;
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
    return true;
}

/* If all levels are uniform, all rows have one shape and none needs a visit. */
static bool
are_alike(const struct column *rows)
{
    for (uint32_t k = 0; k < rows->level_count; k++)
        if (rows->levels[k].uniform < 0)
            return false;
    return true;
}

void
evaluate_check_shapes(const struct plan_node *node, uint32_t index, const int64_t *splits,
                      int64_t batch_count, struct frame *rows)
{
    const struct column *column = &rows->columns[index];
    int64_t lengths[RANK_MAX], own[RANK_MAX];
    char first[128], other[128];

    must_in_debug(splits[batch_count] == column->count);
    for (int64_t b = 0; b < batch_count && !are_alike(column); b++) {
        if (splits[b] < splits[b + 1])
            column_dims(column, splits[b], lengths);
        for (int64_t row = splits[b]; row < splits[b + 1]; row++) {
            if (fits(column, row, lengths))
                continue;
            column_dims(column, row, own);
            frame_reject(rows, row,
                         "%s: the rows of a batch must have the same shape, but in column '%s' the "
                         "first is %s and another %s; pad them (padded_batch) or use ragged_batch",
                         node->name, node->schema.columns[index].name,
                         dims_text(lengths, column->level_count, first),
                         dims_text(own, column->level_count, other));
        }
    }
}
