/* content_to_ragged.c - dense and sparse columns as rows of different lengths:
 * tf.RaggedTensor.from_tensor and from_sparse. */
#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "content/columns/filler.h"
#include "content/content.h"
#include "core/memory.h"

struct to_ragged {
    struct content_targets targets;
    struct made_ragged {
        tundish_kind from;
        bool has_padding;
        struct filler padding;
    } * list;
};

/* Describe `column` as ragged. TensorFlow strips padding from matrices alone, and takes sparse
 * tensors of rank 2 alone; the same limits hold here. */
static tundish_status
open_column(const struct stage_config *config, struct column_spec *column, struct made_ragged *made)
{
    const struct spec_value *padding = spec_get(config->stage, "padding");
    tundish_status status;

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

static tundish_status
to_ragged_open(void *state, const struct stage_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    struct to_ragged *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->list = tnd_zalloc(stage->targets.count + 1, sizeof *stage->list);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++)
        status = open_column(config, &ret_schema->columns[stage->targets.list[i].output],
                             &stage->list[i]);
    return status;
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

static tundish_status
to_ragged_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct to_ragged *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct column *from = &input->columns[stage->targets.list[i].input];
        struct column *column = &output->columns[stage->targets.list[i].output];

        if (stage->list[i].has_padding) {
            strip_padding(&stage->list[i], from, output, column);
            continue;
        }
        if (stage->list[i].from == TUNDISH_SPARSE)
            check_sparse(from, output);
        *column = *from;
        column->indices = column->dense_shape = NULL;
    }
    return TUNDISH_OK;
}

static void
to_ragged_close(void *state)
{
    struct to_ragged *stage = state;

    for (uint32_t i = 0; i < stage->targets.count && stage->list != NULL; i++)
        filler_close(&stage->list[i].padding);
    free(stage->list);
    content_targets_close(&stage->targets);
}

const struct content_ops content_to_ragged = {
    .name = "to_ragged",
    .takes_missing = true,
    .state_bytes = sizeof(struct to_ragged),
    .open = to_ragged_open,
    .apply = to_ragged_apply,
    .close = to_ragged_close,
};
