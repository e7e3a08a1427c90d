/* content_to_ragged.c - dense and sparse columns as rows of different lengths:
 * tf.RaggedTensor.from_tensor and from_sparse. */
#include <string.h>

#include "column/dims.h"
#include "content/column_wise.h"
#include "content/columns/filler.h"

struct made_ragged {
    tundish_kind from;
    bool has_padding;
    struct filler padding;
};

/* Describe `column` as ragged. TensorFlow strips padding from matrices alone, and takes sparse
 * tensors of rank 2 alone; the same limits hold here. */
static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct made_ragged *made = own;
    const struct spec_value *padding = spec_get(config->stage, "padding");
    tundish_status status;

    (void)state;
    (void)batch_wide;
    made->from = column->kind;
    if (column->kind == TUNDISH_RAGGED)
        return TUNDISH_OK;
    if (column->rank < 2)
        return stage_complain(config,
                              "to_ragged: '%s' needs two dimensions or more; after batch "
                              "it has one more",
                              column->name);
    if (padding != NULL && padding->kind != SPEC_NULL) {
        if (column->rank != 2 || column->kind == TUNDISH_SPARSE)
            return stage_complain(
                config,
                "to_ragged: padding needs a dense column of two dimensions, and '%s' is not one",
                column->name);
        status = filler_open(padding, column->dtype, "padding", config->errors, &made->padding);
        if (status != TUNDISH_OK)
            return status;
        made->has_padding = true;
    }
    if (column->kind == TUNDISH_SPARSE && column->rank != 2)
        return stage_complain(config,
                              "to_ragged: a sparse column must have two dimensions, and "
                              "'%s' has %d",
                              column->name, column->rank);
    if (made->has_padding || column->kind == TUNDISH_SPARSE)
        column->shape[1] = -1;
    column->kind = TUNDISH_RAGGED;
    column->ragged_rank = 1;
    column->splits_int32 = false;
    return TUNDISH_OK;
}

/* Cut the padding off the end of each row. A padding value in the middle of a row stays. */
static void
strip_padding(const struct made_ragged *made, const struct column *from, struct frame *output,
              struct column *column)
{
    const struct level *level = &from->levels[1];
    int64_t rows = column_list_count(from, 1), at = 0;
    size_t bytes = made->padding.bytes;
    int64_t *splits = scratch_array(output->scratch, (size_t)rows + 1, sizeof *splits);
    uint8_t *values = scratch_array(output->scratch, (size_t)from->value_count, bytes);

    splits[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *row = (const uint8_t *)from->values + (size_t)level_begin(level, i) * bytes;
        int64_t length = level_length(level, i);

        while (length > 0 && filler_equals(&made->padding, row + (size_t)(length - 1) * bytes))
            length--;
        memcpy(values + (size_t)at * bytes, row, (size_t)length * bytes);
        at += length;
        splits[i + 1] = at;
    }
    *column = *from;
    column->levels[1] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = at;
    column->values = values;
}

/* Reject elements whose rows have gaps, as from_sparse does. The levels of a sparse column are
 * those of its rows already, so the indices need only be dropped. */
static void
check_sparse(const struct column *from, struct frame *output)
{
    int64_t rank = from->level_count;

    for (int64_t i = 0; i < from->count && from->indices != NULL; i++) {
        int64_t begin, end;

        column_value_range(from, i, i + 1, &begin, &end);
        for (int64_t v = begin; v < end; v++) {
            const int64_t *index = &from->indices[v * rank];
            /* In row-major order the next column index follows the last one, or starts at 0 in a
             * new row. */
            int64_t expected = v > begin && index[0] == index[-rank] ? index[1 - rank] + 1 : 0;

            if (index[1] != expected) {
                frame_reject(output, i, "to_ragged: a sparse row has gaps between its values");
                break;
            }
        }
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct made_ragged *made = map->own;

    (void)state;
    if (made->has_padding) {
        strip_padding(made, map->from, map->output, map->to);
        return;
    }
    if (made->from == TUNDISH_SPARSE)
        check_sparse(map->from, map->output);
    *map->to = *map->from;
    map->to->indices = map->to->dense_shape = NULL;
}

static void
close_made(void *own)
{
    struct made_ragged *made = own;

    filler_close(&made->padding);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct made_ragged),
    .describe = describe,
    .map = map_column,
    .close_own = close_made,
};

const struct content_ops content_to_ragged = {
    .name = "to_ragged",
    .takes_missing = true,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
