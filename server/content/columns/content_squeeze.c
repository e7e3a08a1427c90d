/* content_squeeze.c - tf.squeeze: remove dimensions of size 1. */
#include <string.h>

#include "column/dims.h"
#include "content/column_wise.h"

/* Mark one axis for removal. A size that the plan does not know is checked element by element. */
static tundish_status
add_axis(const struct stage_config *config, const struct column_spec *column,
         const struct spec_value *axis, uint32_t *axes)
{
    int64_t k = axis->integer < 0 ? axis->integer + column->rank : axis->integer;

    if (k < 0 || k >= column->rank)
        return spec_complain(config->errors, axis->line, axis->column,
                             "axis %lld is outside: '%s' has rank %d", (long long)axis->integer,
                             column->name, column->rank);
    if (column->shape[k] >= 0 && column->shape[k] != 1)
        return spec_complain(config->errors, axis->line, axis->column,
                             "axis %lld of '%s' has size %lld; only size 1 can be squeezed",
                             (long long)axis->integer, column->name, (long long)column->shape[k]);
    *axes |= 1U << k;
    return TUNDISH_OK;
}

/* The dimensions to remove: the named ones, or else all of size 1. Without names every size must be
 * known, because the rank of the result depends on it. */
static tundish_status
find_axes(const struct stage_config *config, const struct column_spec *column, uint32_t *ret_axes)
{
    const struct spec_value *axis = spec_get(config->stage, "axis");
    tundish_status status = TUNDISH_OK;
    char text[128];

    if (column->kind == TUNDISH_SPARSE || column->rank == RANK_UNKNOWN)
        return stage_complain(config, "squeeze: '%s' is %s", column->name,
                              column->kind == TUNDISH_SPARSE ? "sparse; use to_dense"
                                                             : "of unknown rank");
    if (axis != NULL && axis->kind == SPEC_INTEGER)
        return add_axis(config, column, axis, ret_axes);
    if (axis != NULL && axis->kind == SPEC_LIST && axis->count > 0) {
        for (uint32_t i = 0; i < axis->count && status == TUNDISH_OK; i++)
            status = add_axis(config, column, &axis->items[i], ret_axes);
        return status;
    }
    if (column->kind == TUNDISH_RAGGED)
        return stage_complain(config, "squeeze: '%s' is ragged; name the axis", column->name);
    for (int k = 0; k < column->rank; k++) {
        if (column->shape[k] < 0)
            return stage_complain(
                config,
                "squeeze: the shape %s of '%s' is unknown before the data is read; name the axis",
                dims_text(column->shape, (uint32_t)column->rank, text), column->name);
        if (column->shape[k] == 1)
            *ret_axes |= 1U << k;
    }
    return TUNDISH_OK;
}

/* Remove the dimensions `axes` from the plan's column. A ragged column whose last ragged dimension
 * goes is dense. */
static void
remove_axes(uint32_t axes, struct column_spec *column)
{
    int kept = 0, ragged_rank = column->ragged_rank;

    for (int k = 0; k < column->rank; k++) {
        if ((axes >> k & 1) == 0)
            column->shape[kept++] = column->shape[k];
        else if (column->kind == TUNDISH_RAGGED && k <= column->ragged_rank)
            ragged_rank--;
    }
    column->rank = kept;
    if (column->kind != TUNDISH_RAGGED)
        return;
    column->ragged_rank = ragged_rank > 0 ? ragged_rank : 0;
    /* tf.squeeze of a RaggedTensor keeps no static size of the dimensions up to the ragged rank. */
    for (int k = 0; k <= column->ragged_rank && k < column->rank; k++)
        column->shape[k] = -1;
    if (column->ragged_rank == 0) {
        column->kind = TUNDISH_DENSE;
        column->splits_int32 = false;
    }
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    uint32_t *axes = own;
    tundish_status status = find_axes(config, column, axes);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    *batch_wide |= config->depth > 0 && (*axes & 1) != 0;
    remove_axes(*axes, column);
    return TUNDISH_OK;
}

/* Reject elements in which a dimension that the plan did not know is not 1. */
static void
check_elements(const struct column *from, uint32_t axes, struct frame *output)
{
    for (int64_t i = 0; i < from->count; i++) {
        int64_t dims[RANK_MAX];

        column_dims(from, i, dims);
        for (uint32_t k = 0; k < from->level_count; k++)
            if ((axes >> k & 1) != 0 && dims[k] != 1)
                frame_reject(output, i,
                             "squeeze: axis %u has size %lld; only size 1 can be squeezed", k,
                             (long long)dims[k]);
    }
}

/* Merge level k and the one inside it: each list then holds the items of all its inner lists. */
static struct level
merged(const struct column *column, uint32_t k, struct scratch *scratch)
{
    const struct level *outer = &column->levels[k], *inner = &column->levels[k + 1];
    int64_t lists = column_list_count(column, k), *splits;

    if (outer->uniform >= 0 && inner->uniform >= 0)
        return (struct level){ .uniform = outer->uniform * inner->uniform };
    splits = scratch_array(scratch, (size_t)lists + 1, sizeof *splits);
    for (int64_t i = 0; i <= lists; i++)
        splits[i] = level_begin(inner, level_begin(outer, i));
    return (struct level){ .uniform = -1, .splits = splits };
}

/* Remove level k. A list in it that does not hold exactly one item makes its element bad; the
 * values all stay, so that the other elements are right. */
static void
squeeze_level(struct column *column, uint32_t axis, uint32_t k, struct frame *output)
{
    uint32_t first = k > 0 ? k - 1 : 0;

    for (int64_t i = 0; i < column->count; i++) {
        int64_t begin = i, end = i + 1;

        for (uint32_t l = 0; l < k; l++) {
            begin = level_begin(&column->levels[l], begin);
            end = level_begin(&column->levels[l], end);
        }
        for (int64_t list = begin; list < end; list++)
            if (level_length(&column->levels[k], list) != 1)
                frame_reject(output, i,
                             "squeeze: axis %u has size %lld; only size 1 can be squeezed", axis,
                             (long long)level_length(&column->levels[k], list));
    }
    column->levels[first] = merged(column, first, output->scratch);
    column->level_count--;
    memmove(&column->levels[first + 1], &column->levels[first + 2],
            (column->level_count - first - 1) * sizeof *column->levels);
}

/* Remove the dimensions one at a time. `gone` counts those removed, since each moves the later
 * levels down. */
static void
squeeze_ragged(const struct column *from, uint32_t axes, struct frame *output,
               struct column *column)
{
    uint32_t gone = 0;

    *column = *from;
    for (uint32_t k = 0; k < from->level_count; k++)
        if ((axes >> k & 1) != 0) {
            squeeze_level(column, k, k - gone, output);
            gone++;
        }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const uint32_t axes = *(const uint32_t *)map->own;
    const struct column *from = map->from;
    struct column *column = map->to;
    int64_t *dims, each[RANK_MAX];
    uint32_t kept = 0;

    (void)state;
    if (map->spec->kind == TUNDISH_RAGGED) {
        squeeze_ragged(from, axes, map->output, column);
        return;
    }
    check_elements(from, axes, map->output);
    *column = *from;
    /* If the lists of a level all hold one item, list i holds item i, and leaving the level out
     * changes no other level. */
    if (column_same_dims(from, each)) {
        for (uint32_t k = 0; k < from->level_count; k++)
            if ((axes >> k & 1) == 0)
                column->levels[kept++] = from->levels[k];
        column->level_count = kept;
        return;
    }
    dims = scratch_array(map->output->scratch, (size_t)from->count * RANK_MAX, sizeof *dims);
    kept = from->level_count - (uint32_t)__builtin_popcount(axes);
    for (int64_t j = 0; j < from->count; j++) {
        uint32_t at = 0;

        column_dims(from, j, each);
        for (uint32_t k = 0; k < from->level_count; k++)
            if ((axes >> k & 1) == 0)
                dims[j * kept + at++] = each[k];
    }
    column_set_dims_each(column, from->count, kept, dims, map->output->scratch);
    column->values = from->values;
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(uint32_t), /* bit k: remove dimension k */
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_squeeze = {
    .name = "squeeze",
    .takes_missing = true,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
