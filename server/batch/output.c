/* output.c - turns levels into shapes, row splits and indices, the form in which batches are
 * delivered. */
#include "batch/output.h"

#include <string.h>

#include "column/dims.h"
#include "core/must.h"
#include "core/status.h"

static const int64_t no_rows[1] = { 0 };
static const uint64_t zero_scalar[2] = { 0, 0 };

/* The length of all lists of level k. Without lists it is the static dimension, as in an empty
 * tensor of TensorFlow. */
static int64_t
dense_dimension(const struct column *column, const struct column_spec *spec, uint32_t k)
{
    must_in_debug(k < column->level_count);
    if (column_list_count(column, k) > 0)
        return level_length(&column->levels[k], 0);
    if (spec->rank == (int)column->level_count && spec->shape[k] >= 0)
        return spec->shape[k];
    return column->levels[k].uniform >= 0 ? column->levels[k].uniform : 0;
}

static const int64_t *
splits_of(const struct column *column, uint32_t k, struct scratch *scratch, int64_t *ret_length)
{
    const struct level *level = &column->levels[k];
    int64_t lists = column_list_count(column, k);
    int64_t *splits;

    must_in_debug(k < column->level_count);
    *ret_length = lists + 1;
    if (level->uniform < 0)
        return level->splits;
    splits = scratch_array(scratch, (size_t)lists + 1, sizeof *splits);
    for (int64_t i = 0; i <= lists; i++)
        splits[i] = i * level->uniform;
    return splits;
}

static int64_t
longest_list(const struct column *column, uint32_t k)
{
    int64_t lists = column_list_count(column, k), longest = 0;

    must_in_debug(k < column->level_count);
    for (int64_t i = 0; i < lists; i++)
        if (level_length(&column->levels[k], i) > longest)
            longest = level_length(&column->levels[k], i);
    return longest;
}

/* Write the coordinates of all values below list `list` of level k. */
static int64_t *
write_indices(const struct column *column, uint32_t k, int64_t list, int64_t *coordinates,
              int64_t *to)
{
    const struct level *level = &column->levels[k];

    must_in_debug(k < column->level_count && column->level_count <= RANK_MAX);
    for (int64_t i = 0; i < level_length(level, list); i++) {
        coordinates[k] = i;
        if (k + 1 < column->level_count) {
            to = write_indices(column, k + 1, level_begin(level, list) + i, coordinates, to);
        } else {
            memcpy(to, coordinates, column->level_count * sizeof *to);
            to += column->level_count;
        }
    }
    return to;
}

static void
sparse_output(const struct column *column, struct scratch *scratch, struct output_column *output)
{
    int64_t coordinates[RANK_MAX];

    must_in_debug(column->count == 1 && column->level_count <= RANK_MAX);
    for (uint32_t k = 0; k < column->level_count; k++)
        output->shape[k] =
            column->dense_shape != NULL ? column->dense_shape[k] : longest_list(column, k);
    if (column->indices != NULL) {
        output->indices = column->indices;
    } else {
        int64_t *indices = scratch_array(scratch, (size_t)column->value_count * column->level_count,
                                         sizeof *indices);

        if (column->level_count > 0)
            write_indices(column, 0, 0, coordinates, indices);
        output->indices = indices;
    }
}

static void
ragged_output(const struct column *column, struct scratch *scratch, struct output_column *output)
{
    const struct column_spec *spec = output->spec;

    for (uint32_t k = 0; k < column->level_count; k++) {
        bool ragged = k > 0 && (int)k <= spec->ragged_rank;

        output->shape[k] = ragged ? -1 : dense_dimension(column, spec, k);
        if (ragged) {
            output->splits[output->splits_count] =
                splits_of(column, k, scratch, &output->splits_lengths[output->splits_count]);
            output->splits_count++;
        }
    }
    must_in_debug((int)output->splits_count <= spec->ragged_rank);
}

void
output_column(const struct frame *frame, const struct schema *schema, uint32_t index,
              struct scratch *scratch, struct output_column *ret_column)
{
    const struct column *column = &frame->columns[index];
    const struct column_spec *spec = &schema->columns[index];

    must_in_debug(index < frame->column_count && index < schema->count);
    ret_column->spec = spec;
    ret_column->rank = (int)column->level_count;
    memset(ret_column->shape, 0, sizeof ret_column->shape);
    ret_column->value_count = column->value_count;
    ret_column->values = column->values;
    ret_column->splits_count = 0;
    ret_column->indices = NULL;
    if (spec->kind == TUNDISH_SPARSE)
        sparse_output(column, scratch, ret_column);
    else if (spec->kind == TUNDISH_RAGGED)
        ragged_output(column, scratch, ret_column);
    else
        for (uint32_t k = 0; k < column->level_count; k++)
            ret_column->shape[k] = dense_dimension(column, spec, k);
}

/* A batch must have the static shape that the trainer was told; TensorFlow fails here too. */
static bool
is_as_promised(const struct output_column *column)
{
    const struct column_spec *spec = column->spec;

    if (spec->kind != TUNDISH_DENSE || spec->rank < 0)
        return true;
    for (int k = 0; k < spec->rank && k < column->rank; k++)
        if (spec->shape[k] >= 0 && spec->shape[k] != column->shape[k])
            return false;
    return spec->rank == column->rank;
}

static tundish_status
fail_broken_promise(const struct output_column *column)
{
    char promised[128], is[128];

    return tnd_fail(TUNDISH_E_DATA, "column %s: Incompatible shapes: expected %s but got %s",
                    column->spec->name,
                    dims_text(column->spec->shape, (uint32_t)column->spec->rank, promised),
                    dims_text(column->shape, (uint32_t)column->rank, is));
}

tundish_status
output_columns(const struct frame *frame, const struct schema *schema, struct scratch *scratch,
               struct output_column *ret_columns)
{
    if (frame->count == 0) {
        output_dummy(schema, ret_columns);
        return TUNDISH_OK;
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        output_column(frame, schema, i, scratch, &ret_columns[i]);
        if (!is_as_promised(&ret_columns[i]))
            return fail_broken_promise(&ret_columns[i]);
    }
    return TUNDISH_OK;
}

/* An empty batch for a replica without a slice. Unknown dimensions become 0. If all are static, the
 * batch dimension must be: tf.distribute delivers zero rows. Scalars become 0. */
void
output_empty(const struct column_spec *spec, struct output_column *ret_column)
{
    struct output_column output = { .spec = spec, .rank = spec->rank < 0 ? 0 : spec->rank };
    bool all_known = true;

    for (int k = 0; k < output.rank; k++) {
        output.shape[k] = spec->shape[k] < 0 ? 0 : spec->shape[k];
        all_known &= spec->shape[k] >= 0;
    }
    if ((all_known || spec->kind == TUNDISH_RAGGED) && output.rank > 0)
        output.shape[0] = 0;
    if (output.rank == 0 && spec->rank == 0) {
        output.value_count = 1;
        output.values = zero_scalar;
    }
    if (spec->kind == TUNDISH_RAGGED)
        for (int k = 1; k <= spec->ragged_rank; k++) {
            output.shape[k] = -1;
            output.splits[output.splits_count] = no_rows;
            output.splits_lengths[output.splits_count++] = 1;
        }
    *ret_column = output;
}

void
output_dummy(const struct schema *schema, struct output_column *ret_columns)
{
    for (uint32_t i = 0; i < schema->count; i++)
        output_empty(&schema->columns[i], &ret_columns[i]);
}
