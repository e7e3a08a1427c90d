/* content_word_count.c - tft.word_count: the number of values of each row. */
#include "content/content.h"

struct word_count {
    uint32_t depth;
    struct content_targets targets;
};

static tundish_status
word_count_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct word_count *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->depth = config->depth;
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];

        if (column->rank <= (int)config->depth)
            return stage_complain(config, "word_count: the rows of '%s' are not lists",
                                  column->name);
        column->dtype = TUNDISH_INT64;
        column->kind = TUNDISH_DENSE;
        column->rank = (int)config->depth;
        column->ragged_rank = 0;
        column->has_range = false;
    }
    content_sort_columns(ret_schema, &stage->targets);
    return status;
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

static tundish_status
word_count_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct word_count *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct column *from = &input->columns[target->input];
        size_t rows = (size_t)column_list_count(from, stage->depth);

        count_rows(stage, from, frame_values(output, target->output, rows * sizeof(int64_t)),
                   &output->columns[target->output]);
    }
    return TUNDISH_OK;
}

static void
word_count_close(void *state)
{
    struct word_count *stage = state;

    content_targets_close(&stage->targets);
}

const struct content_ops content_word_count = {
    .name = "word_count",
    .takes_missing = true,
    .state_bytes = sizeof(struct word_count),
    .open = word_count_open,
    .apply = word_count_apply,
    .close = word_count_close,
};
