/* content_to_sparse.c - tf.sparse.from_dense: the values that are not 0. A ragged column keeps all
 * its values. */
#include <string.h>

#include "column/dims.h"
#include "column/literal.h"
#include "content/column_wise.h"

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    (void)state;
    (void)own;
    if (column->kind == TUNDISH_SPARSE)
        return stage_complain(config, "to_sparse: '%s' is sparse already", column->name);
    if (column->rank < 1)
        return stage_complain(config, "to_sparse: '%s' needs a dimension", column->name);
    /* The dense shape of a ragged column is that of its longest lists in the whole batch. */
    if (column->kind == TUNDISH_RAGGED && config->depth > 0)
        *batch_wide = true;
    if (column->kind == TUNDISH_RAGGED)
        for (int k = 0; k < column->rank; k++)
            column->shape[k] = -1;
    column->kind = TUNDISH_SPARSE;
    column->ragged_rank = 0;
    return TUNDISH_OK;
}

/* Compare by value, as TensorFlow does: -0.0 is zero and goes, NaN is not and stays. An empty
 * string is the zero of strings. */
static bool
is_zero(tundish_dtype dtype, const uint8_t *value, size_t bytes)
{
    static const uint8_t zeros[16];

    switch (dtype) {
    case TUNDISH_STRING:
        return ((const struct byte_view *)(const void *)value)->size == 0;
    case TUNDISH_FLOAT32:
        return *(const float *)(const void *)value == 0;
    case TUNDISH_FLOAT64:
        return *(const double *)(const void *)value == 0;
    case TUNDISH_FLOAT16:
    case TUNDISH_BFLOAT16:
        /* All bits but the sign are 0 for both zeros. */
        return (*(const uint16_t *)(const void *)value & 0x7FFF) == 0;
    default:
        return memcmp(value, zeros, bytes) == 0;
    }
}

/* Split position `at` of a box, in row-major order, into coordinates. */
static void
write_index(int64_t at, const int64_t *dims, uint32_t rank, int64_t *index)
{
    for (uint32_t k = rank; k-- > 0; at /= dims[k])
        index[k] = at % dims[k];
}

/* Keep the values that are not zero, with their coordinates and with the splits of the innermost
 * lists. */
static void
from_dense(tundish_dtype dtype, const struct column *from, struct scratch *scratch,
           struct column *column)
{
    uint32_t rank = from->level_count;
    size_t bytes = literal_bytes(dtype), most = (size_t)from->value_count;
    int64_t rows = column_list_count(from, rank - 1), kept = 0, row = 0;
    int64_t *shape = scratch_array(scratch, (size_t)from->count * rank, sizeof *shape);
    int64_t *indices = scratch_array(scratch, most * rank, sizeof *indices);
    int64_t *splits = scratch_array(scratch, (size_t)rows + 1, sizeof *splits);
    uint8_t *values = scratch_array(scratch, most, bytes);

    splits[0] = 0;
    for (int64_t i = 0; i < from->count; i++) {
        int64_t *dims = &shape[i * rank], begin, end, width;

        column_dims(from, i, dims);
        column_value_range(from, i, i + 1, &begin, &end);
        width = dims[rank - 1];
        for (int64_t v = begin; v < end; v++) {
            const uint8_t *value = (const uint8_t *)from->values + (size_t)v * bytes;

            if (!is_zero(dtype, value, bytes)) {
                memcpy(values + (size_t)kept * bytes, value, bytes);
                write_index(v - begin, dims, rank, &indices[kept++ * rank]);
            }
            if ((v - begin + 1) % width == 0)
                splits[++row] = kept;
        }
        /* Lists of length 0 hold no value that would close them above. */
        if (width == 0)
            for (int64_t j = dims_product(dims, rank - 1); j > 0; j--)
                splits[++row] = kept;
    }
    *column = *from;
    column->levels[rank - 1] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = kept;
    column->values = values;
    column->indices = indices;
    column->dense_shape = shape;
}

/* Give a ragged column a dense shape. Dimensions inside the ragged ones have the plan's size even
 * in an element without lists. */
static void
from_ragged(const struct column_spec *spec, const struct column *from, struct scratch *scratch,
            struct column *column)
{
    size_t count = (size_t)from->count * from->level_count;
    int64_t *shape = scratch_array(scratch, count, sizeof *shape);

    *column = *from;
    column_state_shape(column, scratch);
    /* The shape is read-only once stated: correct a copy. */
    memcpy(shape, column->dense_shape, count * sizeof *shape);
    for (uint32_t k = (uint32_t)spec->ragged_rank + 1; k < from->level_count; k++) {
        int64_t length = from->levels[k].uniform >= 0 ? from->levels[k].uniform : spec->shape[k];

        for (int64_t i = 0; length >= 0 && i < from->count; i++)
            shape[i * from->level_count + k] = length;
    }
    column->dense_shape = shape;
}

static void
map_column(const void *state, const struct column_map *map)
{
    (void)state;
    if (map->spec->kind == TUNDISH_DENSE)
        from_dense(map->spec->dtype, map->from, map->output->scratch, map->to);
    else
        from_ragged(map->spec, map->from, map->output->scratch, map->to);
}

static const struct column_wise_ops columns = {
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_to_sparse = {
    .name = "to_sparse",
    .takes_missing = true,
    .state_bytes = sizeof(struct column_wise),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
