/* content_squeeze.c - tf.squeeze: dimensions of 1 go. */
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "column/dims.h"
#include "core/memory.h"

struct squeeze {
    struct content_targets targets;
    uint32_t *axes; /* for each target: bit k: dimension k goes */
};

static tundish_status
add_axis(const struct content_config *config, const struct column_spec *column,
         const struct spec_value *axis, uint32_t *axes)
{
    int64_t k = axis->integer < 0 ? axis->integer + column->rank : axis->integer;

    if (k < 0 || k >= column->rank)
        return spec_complain(config->errors, axis->line, axis->column,
                             "axis %lld is outside: '%s' has %d dimensions",
                             (long long)axis->integer, column->name, column->rank);
    if (column->shape[k] >= 0 && column->shape[k] != 1)
        return spec_complain(config->errors, axis->line, axis->column,
                             "axis %lld of '%s' is %lld, and only 1 can be squeezed",
                             (long long)axis->integer, column->name, (long long)column->shape[k]);
    *axes |= 1U << k;
    return TUNDISH_OK;
}

static tundish_status
find_axes(const struct content_config *config, const struct column_spec *column, uint32_t *ret_axes)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");
    tundish_status status = TUNDISH_OK;
    char text[128];

    if (column->kind != TUNDISH_DENSE || column->rank == RANK_UNKNOWN)
        return content_complain(config, "squeeze: '%s' must be dense, of known rank", column->name);
    if (axis != NULL && axis->kind == SPEC_INTEGER)
        return add_axis(config, column, axis, ret_axes);
    if (axis != NULL && axis->kind == SPEC_LIST && axis->count > 0) {
        for (uint32_t i = 0; i < axis->count && status == TUNDISH_OK; i++)
            status = add_axis(config, column, &axis->items[i], ret_axes);
        return status;
    }
    for (int k = 0; k < column->rank; k++) {
        if (column->shape[k] < 0)
            return content_complain(config,
                                    "squeeze: the shape %s of '%s' is not known before the "
                                    "data is; say which axis",
                                    dims_text(column->shape, (uint32_t)column->rank, text),
                                    column->name);
        if (column->shape[k] == 1)
            *ret_axes |= 1U << k;
    }
    return TUNDISH_OK;
}

static tundish_status
squeeze_open(void *state, const struct content_config *config, struct schema *ret_schema,
             bool *ret_batch_wide)
{
    struct squeeze *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->axes = tnd_zalloc(stage->targets.count + 1, sizeof *stage->axes);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];
        int kept = 0;

        status = find_axes(config, column, &stage->axes[i]);
        if (status != TUNDISH_OK)
            break;
        *ret_batch_wide |= config->depth > 0 && (stage->axes[i] & 1) != 0;
        for (int k = 0; k < column->rank; k++)
            if ((stage->axes[i] >> k & 1) == 0)
                column->shape[kept++] = column->shape[k];
        column->rank = kept;
    }
    return status;
}

/* A dimension that the plan did not know turns out to be other than 1. */
static void
check_elements(const struct column *from, uint32_t axes, struct frame *output)
{
    for (int64_t i = 0; i < from->count; i++) {
        int64_t dims[RANK_MAX];

        column_dims(from, i, dims);
        for (uint32_t k = 0; k < from->level_count; k++)
            if ((axes >> k & 1) != 0 && dims[k] != 1)
                frame_reject(output, i, "squeeze: axis %u is %lld, and only 1 can be squeezed", k,
                             (long long)dims[k]);
    }
}

static tundish_status
squeeze_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct squeeze *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct column *from = &input->columns[stage->targets.list[i].input];
        struct column *column = &output->columns[stage->targets.list[i].output];
        int64_t *dims, each[RANK_MAX];
        uint32_t kept = 0;

        check_elements(from, stage->axes[i], output);
        *column = *from;
        if (column_same_dims(from, each)) {
            for (uint32_t k = 0; k < from->level_count; k++)
                if ((stage->axes[i] >> k & 1) == 0)
                    column->levels[kept++] = from->levels[k];
            column->level_count = kept;
            continue;
        }
        dims = scratch_array(output->scratch, (size_t)from->count * RANK_MAX, sizeof *dims);
        kept = from->level_count - (uint32_t)__builtin_popcount(stage->axes[i]);
        for (int64_t j = 0; j < from->count; j++) {
            uint32_t at = 0;

            column_dims(from, j, each);
            for (uint32_t k = 0; k < from->level_count; k++)
                if ((stage->axes[i] >> k & 1) == 0)
                    dims[j * kept + at++] = each[k];
        }
        column_set_dims_each(column, from->count, kept, dims, output->scratch);
        column->values = from->values;
    }
    return TUNDISH_OK;
}

static void
squeeze_close(void *state)
{
    struct squeeze *stage = state;

    free(stage->axes);
    content_targets_close(&stage->targets);
}

const struct content_ops content_squeeze = {
    .name = "squeeze",
    .state_bytes = sizeof(struct squeeze),
    .open = squeeze_open,
    .apply = squeeze_apply,
    .close = squeeze_close,
};
