/* order_types.c - what order stages make of their inputs' columns. */
#include <string.h>

#include "core/memory.h"
#include "order/order.h"
#include "plan/build.h"

static void
same_columns(struct plan_node *node)
{
    schema_pass_all(&node->schema, &node->inputs[0]->schema);
    node->depth = node->inputs[0]->depth;
}

/* A dimension in front. */
static tundish_status
add_dimension(struct plan_builder *builder, struct plan_node *node, struct column_spec *column,
              int64_t length)
{
    if (column->rank == RANK_UNKNOWN)
        return TUNDISH_OK;
    if (column->rank == RANK_MAX)
        return build_complain(builder, node, "%s makes column '%s' more than %d-dimensional",
                              node->name, column->name, RANK_MAX);
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

static bool
is_literal_true(const struct plan_node *node, const char *parameter)
{
    const struct spec_value *value = spec_get(node->stage, parameter);

    return value != NULL && value->kind == SPEC_BOOL && value->boolean;
}

/* Rows whose size the data decides must be seen together: all of one batch are equally large, and
 * a slice cut empty from it keeps their dimensions. So too for sparse columns, whose dense shape is
 * that of the whole batch. */
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

/* batch, ragged_batch, padded_batch, window, bucket_by_sequence_length: `length` known or -1. */
static tundish_status
batch_columns(struct plan_builder *builder, struct plan_node *node, int64_t length)
{
    same_columns(node);
    node->depth++;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status;

        if (!node_is(node, "ragged_batch") || column->kind == TUNDISH_SPARSE)
            node->batch_wide |= rows_differ(column);
        status = add_dimension(builder, node, column, length);

        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

/* Where bad rows are left out, no batch is sure to be whole. */
static bool
may_be_short(const struct plan_builder *builder)
{
    return builder->plan->stream->deliver.skip_errors;
}

static int64_t
batch_length(const struct plan_builder *builder, const struct plan_node *node)
{
    return is_literal_true(node, "drop_remainder") && !may_be_short(builder)
               ? build_literal(node, "batch_size", -1)
               : -1;
}

/* Fully static columns stack; one with an unknown dimension becomes ragged down to the last. */
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

/* The shape that padded_shapes gives a column, or NULL: the batch's longest. */
static const struct spec_value *
padded_shape(const struct plan_node *node, const struct column_spec *column)
{
    const struct spec_value *shapes = spec_get(node->stage, "padded_shapes");

    if (shapes == NULL || shapes->kind == SPEC_NULL)
        return NULL;
    return shapes->kind == SPEC_MAP ? spec_map_get(shapes, column->name) : shapes;
}

static tundish_status
padded_columns(struct plan_builder *builder, struct plan_node *node, int64_t length)
{
    tundish_status status = batch_columns(builder, node, length);

    node->batch_wide = true;
    for (uint32_t i = 0; status == TUNDISH_OK && i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        const struct spec_value *shape = padded_shape(node, column);

        if (column->kind != TUNDISH_DENSE)
            return build_complain(builder, node,
                                  "%s pads dense columns only, and '%s' is %s: to_dense before it, "
                                  "or batch",
                                  node->name, column->name,
                                  column->kind == TUNDISH_SPARSE ? "sparse" : "ragged");
        if (column->rank == RANK_UNKNOWN && (shape == NULL || shape->kind != SPEC_LIST))
            return build_complain(builder, node,
                                  "%s: column '%s' has an unknown number of dimensions: "
                                  "padded_shapes gives it one",
                                  node->name, column->name);
        if (shape == NULL || shape->kind != SPEC_LIST)
            continue;
        if (shape->count >= RANK_MAX)
            return build_complain(builder, node,
                                  "padded_shapes has %u dimensions for column '%s': with the "
                                  "batch's, a column has at most %d",
                                  shape->count, column->name, RANK_MAX);
        if (column->rank == RANK_UNKNOWN) {
            column->rank = (int)shape->count + 1;
            column->shape[0] = length;
            for (int k = 1; k < RANK_MAX; k++)
                column->shape[k] = -1;
        }
        if ((int)shape->count != column->rank - 1)
            return build_complain(builder, node,
                                  "padded_shapes has %u dimensions for column '%s', which has %d",
                                  shape->count, column->name, column->rank - 1);
        for (uint32_t k = 0; k < shape->count; k++) {
            int64_t wanted = shape->items[k].kind == SPEC_INTEGER ? shape->items[k].integer : -1;

            if (wanted >= 0 && column->shape[k + 1] > wanted)
                return build_complain(
                    builder, node, "column '%s' cannot be padded to %lld: dimension %u is %lld",
                    column->name, (long long)wanted, k, (long long)column->shape[k + 1]);
            column->shape[k + 1] = wanted;
        }
    }
    return status;
}

/* Has the column rows? */
static tundish_status
check_rows(struct plan_builder *builder, const struct plan_node *node,
           const struct column_spec *column)
{
    if (column->rank == 0)
        return build_complain(builder, node, "%s: column '%s' is a scalar", node->name,
                              column->name);
    if (column->kind == TUNDISH_SPARSE && column->rank == 1)
        return build_complain(builder, node,
                              "%s: column '%s' is sparse with one dimension, so that its rows "
                              "would have none: to_dense before it, or to_sparse behind it",
                              node->name, column->name);
    return TUNDISH_OK;
}

/* The size asked for, if it is the same for every batch. */
static int64_t
rebatch_size(const struct plan_node *node)
{
    const struct spec_value *sizes = spec_get(node->stage, "batch_size");

    if (sizes->kind != SPEC_LIST || sizes->count == 0)
        return build_literal(node, "batch_size", -1);
    for (uint32_t i = 0; i < sizes->count; i++)
        if (sizes->items[i].kind != SPEC_INTEGER ||
            sizes->items[i].integer != sizes->items[0].integer)
            return -1;
    return sizes->items[0].integer;
}

/* Known where no batch can be partial: what remains is dropped, or the rows of a batch that comes
 * in are known and a multiple. */
static int64_t
rebatched_length(const struct plan_builder *builder, const struct plan_node *node,
                 const struct schema *input)
{
    int64_t size = may_be_short(builder) ? -1 : rebatch_size(node);

    if (size < 1 || is_literal_true(node, "drop_remainder"))
        return size;
    for (uint32_t i = 0; i < input->count; i++)
        if (input->columns[i].rank > 0 && input->columns[i].shape[0] >= 0)
            return input->columns[i].shape[0] % size == 0 ? size : -1;
    return -1;
}

/* Ragged columns stay ragged, whatever their rows are. Elements that were never batched are now. */
static tundish_status
rebatched_columns(struct plan_builder *builder, struct plan_node *node)
{
    int64_t length = rebatched_length(builder, node, &node->inputs[0]->schema);

    same_columns(node);
    if (node->depth == 0)
        node->depth = 1;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status = check_rows(builder, node, column);

        if (status != TUNDISH_OK)
            return status;
        if (column->rank > 0)
            column->shape[0] = length;
    }
    return TUNDISH_OK;
}

static tundish_status
unbatched_columns(struct plan_builder *builder, struct plan_node *node)
{
    same_columns(node);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status = check_rows(builder, node, column);

        if (status != TUNDISH_OK)
            return status;
        if (column->rank == RANK_UNKNOWN)
            continue;
        column->rank--;
        memmove(&column->shape[0], &column->shape[1],
                (size_t)column->rank * sizeof column->shape[0]);
        if (column->kind == TUNDISH_RAGGED && --column->ragged_rank == 0) {
            column->kind = TUNDISH_DENSE;
            column->row_of_ragged = true;
        }
    }
    if (node->depth > 0)
        node->depth--;
    return TUNDISH_OK;
}

static tundish_status
united_columns(struct plan_builder *builder, struct plan_node *node)
{
    node->depth = node->inputs[0]->depth;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct schema *input = &node->inputs[i]->schema;

        if (node->inputs[i]->depth < node->depth)
            node->depth = node->inputs[i]->depth;
        for (uint32_t k = 0; k < input->count; k++) {
            if (schema_find(&node->schema, input->columns[k].name) >= 0)
                return build_complain(builder, node,
                                      "zip: two datasets have a column '%s': rename one (name: of "
                                      "the source, or rename)",
                                      input->columns[k].name);
            schema_pass(&node->schema, input, k)->passed_from = -1;
        }
    }
    return TUNDISH_OK;
}

/* What holds for both: unlike dimensions become unknown. */
static tundish_status
merge_column(struct plan_builder *builder, struct plan_node *node, struct column_spec *into,
             const struct column_spec *other)
{
    bool ranks_differ = into->rank != other->rank;

    if (strcmp(into->name, other->name) != 0)
        return build_complain(builder, node,
                              "%s: column '%s' here, '%s' there: datasets must have "
                              "the same columns in the same order",
                              node->name, into->name, other->name);
    if (into->dtype != other->dtype || into->kind != other->kind)
        return build_complain(builder, node, "%s: column '%s' is %s here, %s there", node->name,
                              into->name, tnd_dtype_name(into->dtype),
                              tnd_dtype_name(other->dtype));
    if (!other->has_range)
        into->has_range = false;
    if (other->minimum < into->minimum)
        into->minimum = other->minimum;
    if (other->maximum > into->maximum)
        into->maximum = other->maximum;
    if (into->kind != TUNDISH_DENSE && (ranks_differ || into->ragged_rank != other->ragged_rank))
        return build_complain(builder, node,
                              "%s: column '%s' has %d dimensions here, %d there, and only those of "
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

static tundish_status
merged_columns(struct plan_builder *builder, struct plan_node *node, uint32_t input_count)
{
    same_columns(node);
    for (uint32_t k = 0; k < node->schema.count; k++)
        node->schema.columns[k].passed_from = -1;
    for (uint32_t i = 1; i < input_count; i++) {
        const struct plan_node *input = node->inputs[i];

        if (input->schema.count != node->schema.count)
            return build_complain(builder, node, "%s: one dataset has %u columns, another %u",
                                  node->name, node->schema.count, input->schema.count);
        if (input->depth < node->depth)
            node->depth = input->depth;
        for (uint32_t k = 0; k < node->schema.count; k++) {
            tundish_status status =
                merge_column(builder, node, &node->schema.columns[k], &input->schema.columns[k]);

            if (status != TUNDISH_OK)
                return status;
        }
    }
    return TUNDISH_OK;
}

static tundish_status
enumerated_columns(struct plan_builder *builder, struct plan_node *node)
{
    struct schema *input = &node->inputs[0]->schema;

    if (schema_find(input, "index") >= 0)
        return build_complain(builder, node, "enumerate: there is a column 'index' already");
    schema_add(&node->schema, "index", TUNDISH_INT64);
    schema_pass_all(&node->schema, input);
    node->depth = node->inputs[0]->depth;
    return TUNDISH_OK;
}

static tundish_status
bucket_columns(struct plan_builder *builder, struct plan_node *node)
{
    const struct schema *input = &node->inputs[0]->schema;
    const char *name = spec_text(node->stage, "column");
    int32_t index = schema_find(input, name);

    if (index < 0)
        return build_complain(builder, node, "%s: there is no column '%s' to take the length of",
                              node->name, name);
    if (input->columns[index].rank == 0)
        return build_complain(
            builder, node,
            "%s: column '%s' is a scalar, which has no length: name a column with "
            "a dimension",
            node->name, name);
    return is_literal_true(node, "no_padding") ? batch_columns(builder, node, -1)
                                               : padded_columns(builder, node, -1);
}

/* Numbers of datasets, the last input. */
static tundish_status
choice_columns(struct plan_builder *builder, struct plan_node *node)
{
    const struct schema *choice = &node->inputs[node->input_count - 1]->schema;
    const struct column_spec *column = &choice->columns[0];

    if (choice->count != 1)
        return build_complain(
            builder, node,
            "%s: choice_dataset must have one column, an int64 scalar, and has %u "
            "columns: add a `select` to it",
            node->name, choice->count);
    if (column->dtype != TUNDISH_INT64 || column->kind != TUNDISH_DENSE)
        return build_complain(builder, node,
                              "%s: choice_dataset must be of int64 scalars, and its column '%s' is "
                              "%s: add `cast: int64` to it",
                              node->name, column->name,
                              column->kind == TUNDISH_DENSE ? tnd_dtype_name(column->dtype)
                                                            : "ragged or sparse");
    if (column->rank != 0)
        return build_complain(
            builder, node,
            "%s: choice_dataset must be of int64 scalars, and its column '%s' has "
            "a shape: take its batch away, or add `unbatch`",
            node->name, column->name);
    return TUNDISH_OK;
}

static tundish_status
body_columns(struct plan_builder *builder, struct plan_node *node)
{
    (void)builder;
    schema_pass_all(&node->schema, &node->body->root->schema);
    for (uint32_t i = 0; i < node->schema.count; i++)
        node->schema.columns[i].passed_from = -1;
    node->depth = node->body->root->depth;
    return TUNDISH_OK;
}

tundish_status
build_order_types(struct plan_builder *builder, struct plan_node *node)
{
    tundish_status status = TUNDISH_OK;

    if (node_is(node, "batch"))
        status = batch_columns(builder, node, batch_length(builder, node));
    else if (node_is(node, "padded_batch"))
        status = padded_columns(builder, node, batch_length(builder, node));
    else if (node_is(node, "ragged_batch"))
        status = batch_columns(builder, node, batch_length(builder, node));
    else if (node_is(node, "window"))
        status = batch_columns(builder, node, -1); /* a batch(size) behind it, which may be short */
    else if (node_is(node, "bucket_by_sequence_length"))
        status = bucket_columns(builder, node);
    else if (node_is(node, "unbatch"))
        status = unbatched_columns(builder, node);
    else if (node_is(node, "rebatch"))
        status = rebatched_columns(builder, node);
    else if (node_is(node, "enumerate"))
        status = enumerated_columns(builder, node);
    else if (node_is(node, "zip"))
        status = united_columns(builder, node);
    else if (node_is(node, "concatenate") || node_is(node, "sample_from_datasets"))
        status = merged_columns(builder, node, node->input_count);
    else if (node_is(node, "choose_from_datasets")) {
        status = choice_columns(builder, node);
        if (status == TUNDISH_OK)
            status = merged_columns(builder, node, node->input_count - 1);
    } else if (node_is(node, "interleave") || node_is(node, "flat_map"))
        status = body_columns(builder, node);
    else
        same_columns(node);
    if (status == TUNDISH_OK && node_is(node, "ragged_batch"))
        for (uint32_t i = 0; i < node->schema.count; i++)
            make_ragged(&node->schema.columns[i]);
    return status;
}
