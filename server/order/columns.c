/* columns.c - see columns.h. */
#include "order/columns.h"

#include <string.h>

#include "order/arguments.h"

void
order_pass_columns(struct plan_node *node)
{
    schema_pass_all(&node->schema, &node->inputs[0]->schema);
    node->depth = node->inputs[0]->depth;
}

/* Add the batch dimension in front of a column. Batching rows of a ragged column makes it ragged
 * again. */
static tundish_status
add_dimension(const struct order_planning *planning, struct plan_node *node,
              struct column_spec *column, int64_t length)
{
    if (column->rank == RANK_UNKNOWN)
        return TUNDISH_OK;
    if (column->rank == RANK_MAX)
        return order_complain(planning->errors, node,
                              "%s makes column '%s' more than %d-dimensional", node->name,
                              column->name, RANK_MAX);
    memmove(&column->shape[1], &column->shape[0], (size_t)column->rank * sizeof column->shape[0]);
    column->shape[0] = length;
    column->rank++;
    if (column->row_of_ragged)
        column->kind = TUNDISH_RAGGED;
    column->row_of_ragged = false;
    if (column->kind == TUNDISH_RAGGED)
        column->ragged_rank++;
    return TUNDISH_OK;
}

/* True if the shape of a row depends on the other rows of its batch. Such a batch is evaluated
 * whole: all its rows get one size, and an empty slice of it keeps the dimensions. This holds for
 * sparse columns too, whose dense shape is that of the whole batch. */
static bool
rows_differ(const struct column_spec *row)
{
    if (row->kind == TUNDISH_SPARSE || row->rank == RANK_UNKNOWN)
        return true;
    for (int i = 0; row->kind == TUNDISH_DENSE && i < row->rank; i++)
        if (row->shape[i] < 0)
            return true;
    return false;
}

static tundish_status
add_dimensions(const struct order_planning *planning, struct plan_node *node, enum order_rows rows,
               int64_t length)
{
    order_pass_columns(node);
    node->depth++;
    node->batch_wide = rows == ORDER_ROWS_PADDED;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status;

        if (rows != ORDER_ROWS_RAGGED || column->kind == TUNDISH_SPARSE)
            node->batch_wide |= rows_differ(column);
        status = add_dimension(planning, node, column, length);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

int64_t
order_batch_length(const struct order_planning *planning, const struct plan_node *node)
{
    return order_is_true(node, "drop_remainder") && !planning->may_be_short
               ? order_literal(node, "batch_size", -1)
               : -1;
}

/* ragged_batch stacks columns of known shape. A column with an unknown dimension becomes ragged
 * down to its last unknown one. */
static void
make_ragged(struct column_spec *column)
{
    int last_unknown = 0;

    if (column->kind != TUNDISH_DENSE || column->rank == RANK_UNKNOWN)
        return;
    for (int i = 1; i < column->rank; i++)
        if (column->shape[i] < 0)
            last_unknown = i;
    if (last_unknown > 0) {
        column->kind = TUNDISH_RAGGED;
        column->ragged_rank = last_unknown;
    }
}

/* The shape that padded_shapes gives a column. NULL: pad to the longest row of the batch. */
static const struct spec_value *
padded_shape(const struct plan_node *node, const struct column_spec *column)
{
    const struct spec_value *shapes = spec_get(node->stage, "padded_shapes");

    if (shapes == NULL || shapes->kind == SPEC_NULL)
        return NULL;
    return shapes->kind == SPEC_MAP ? spec_map_get(shapes, column->name) : shapes;
}

/* Set the dimensions after the first to those of padded_shapes. */
static tundish_status
pad_shape(const struct order_planning *planning, const struct plan_node *node,
          struct column_spec *column, const struct spec_value *shape)
{
    if (shape->count >= RANK_MAX)
        return order_complain(planning->errors, node,
                              "padded_shapes has %u dimensions for column '%s': with the "
                              "batch's, a column has at most %d",
                              shape->count, column->name, RANK_MAX);
    if (column->rank == RANK_UNKNOWN) {
        column->rank = (int)shape->count + 1;
        for (int k = 1; k < RANK_MAX; k++)
            column->shape[k] = -1;
    }
    if ((int)shape->count != column->rank - 1)
        return order_complain(planning->errors, node,
                              "padded_shapes has rank %u for column '%s', which has rank %d",
                              shape->count, column->name, column->rank - 1);
    for (uint32_t k = 0; k < shape->count; k++) {
        int64_t wanted = shape->items[k].kind == SPEC_INTEGER ? shape->items[k].integer : -1;

        if (wanted >= 0 && column->shape[k + 1] > wanted)
            return order_complain(planning->errors, node,
                                  "column '%s' cannot be padded to %lld: dimension %u is %lld",
                                  column->name, (long long)wanted, k,
                                  (long long)column->shape[k + 1]);
        column->shape[k + 1] = wanted;
    }
    return TUNDISH_OK;
}

static tundish_status
pad_columns(const struct order_planning *planning, struct plan_node *node, int64_t length)
{
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        const struct spec_value *shape = padded_shape(node, column);
        bool is_given = shape != NULL && shape->kind == SPEC_LIST;
        tundish_status status;

        if (column->kind != TUNDISH_DENSE)
            return order_complain(
                planning->errors, node,
                "%s pads only dense columns, and '%s' is %s: use to_dense before it, or batch",
                node->name, column->name, column->kind == TUNDISH_SPARSE ? "sparse" : "ragged");
        if (column->rank == RANK_UNKNOWN && !is_given)
            return order_complain(
                planning->errors, node,
                "%s: column '%s' has an unknown number of dimensions: set padded_shapes",
                node->name, column->name);
        if (!is_given)
            continue;
        if (column->rank == RANK_UNKNOWN)
            column->shape[0] = length;
        status = pad_shape(planning, node, column, shape);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

tundish_status
order_batch_columns(const struct order_planning *planning, struct plan_node *node,
                    enum order_rows rows, int64_t length)
{
    struct batch_arguments *arguments = node->arguments;
    tundish_status status = add_dimensions(planning, node, rows, length);

    arguments->rows = rows;
    if (status == TUNDISH_OK && rows == ORDER_ROWS_PADDED)
        status = pad_columns(planning, node, length);
    for (uint32_t i = 0; rows == ORDER_ROWS_RAGGED && i < node->schema.count; i++)
        make_ragged(&node->schema.columns[i]);
    return status;
}

/* Complain if the column has no dimension to take rows from. */
tundish_status
order_check_rows(const struct order_planning *planning, const struct plan_node *node,
                 const struct column_spec *column)
{
    if (column->rank == 0)
        return order_complain(planning->errors, node, "%s: column '%s' is a scalar", node->name,
                              column->name);
    if (column->kind == TUNDISH_SPARSE && column->rank == 1)
        return order_complain(planning->errors, node,
                              "%s: column '%s' is sparse with one dimension, so its rows would "
                              "have no dimension: use to_dense before it, or to_sparse after it",
                              node->name, column->name);
    return TUNDISH_OK;
}

/* Make `into` describe both columns: a dimension that differs becomes unknown. */
static tundish_status
merge_column(const struct order_planning *planning, struct plan_node *node,
             struct column_spec *into, const struct column_spec *other)
{
    bool ranks_differ = into->rank != other->rank;

    if (strcmp(into->name, other->name) != 0)
        return order_complain(planning->errors, node,
                              "%s: column '%s' here, '%s' there: datasets must have "
                              "the same columns in the same order",
                              node->name, into->name, other->name);
    if (into->dtype != other->dtype || into->kind != other->kind)
        return order_complain(planning->errors, node, "%s: column '%s' is %s here, %s there",
                              node->name, into->name, tnd_dtype_name(into->dtype),
                              tnd_dtype_name(other->dtype));
    if (!other->has_range)
        into->has_range = false;
    if (other->minimum < into->minimum)
        into->minimum = other->minimum;
    if (other->maximum > into->maximum)
        into->maximum = other->maximum;
    if (into->kind != TUNDISH_DENSE && (ranks_differ || into->ragged_rank != other->ragged_rank))
        return order_complain(planning->errors, node,
                              "%s: column '%s' has rank %d here, %d there, and only those of "
                              "dense columns may differ",
                              node->name, into->name, into->rank, other->rank);
    if (ranks_differ) {
        into->rank = RANK_UNKNOWN;
        return TUNDISH_OK;
    }
    for (int i = 0; i < into->rank; i++)
        if (into->shape[i] != other->shape[i])
            into->shape[i] = -1;
    return TUNDISH_OK;
}

tundish_status
order_merge_columns(const struct order_planning *planning, struct plan_node *node,
                    uint32_t input_count)
{
    order_pass_columns(node);
    for (uint32_t k = 0; k < node->schema.count; k++)
        node->schema.columns[k].passed_from = -1;
    for (uint32_t i = 1; i < input_count; i++) {
        const struct plan_node *input = node->inputs[i];

        if (input->schema.count != node->schema.count)
            return order_complain(planning->errors, node,
                                  "%s: one dataset has %u columns, another %u", node->name,
                                  node->schema.count, input->schema.count);
        if (input->depth < node->depth)
            node->depth = input->depth;
        for (uint32_t k = 0; k < node->schema.count; k++) {
            tundish_status status =
                merge_column(planning, node, &node->schema.columns[k], &input->schema.columns[k]);

            if (status != TUNDISH_OK)
                return status;
        }
    }
    return TUNDISH_OK;
}
