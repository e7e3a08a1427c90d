/* content_word_count.c - tft.word_count: the number of values of each row. */
#include "content/column_wise.h"

struct word_count {
    struct column_wise wise;
    uint32_t depth;
};

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct word_count *stage = state;

    (void)own;
    (void)batch_wide;
    stage->depth = config->depth;
    if (column->rank <= (int)config->depth)
        return stage_complain(config, "word_count: the rows of '%s' are not lists", column->name);
    column->dtype = TUNDISH_INT64;
    column->kind = TUNDISH_DENSE;
    column->rank = (int)config->depth;
    column->ragged_rank = 0;
    column->has_range = false;
    return TUNDISH_OK;
}

/* Count the values below each row through all inner levels, dense or not. */
static void
count_rows(const struct word_count *stage, const struct column *from, int64_t *counts,
           struct column *column)
{
    int64_t rows = column_list_count(from, stage->depth);
    int64_t begin = 0;

    for (int64_t row = 0; row < rows; row++) {
        int64_t end = row + 1;

        for (uint32_t k = stage->depth; k < from->level_count; k++)
            end = level_begin(&from->levels[k], end);
        counts[row] = end - begin;
        begin = end;
    }
    *column = *from;
    column->level_count = stage->depth;
    column->value_count = rows;
    column->values = counts;
    column->indices = NULL;
    column->dense_shape = NULL;
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct word_count *stage = state;
    size_t rows = (size_t)column_list_count(map->from, stage->depth);

    count_rows(stage, map->from, frame_values(map->output, map->at, rows * sizeof(int64_t)),
               map->to);
}

static const struct column_wise_ops columns = {
    .sorts = true,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_word_count = {
    .name = "word_count",
    .takes_missing = true,
    .state_bytes = sizeof(struct word_count),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
