/* expression_run_group.c - run groups of kernels on blocks of values that stay in the cache. */
#include "content/expression/expression_run.h"

#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "core/must.h"

static const char *
fault_of(enum vector_op op)
{
    return op == VECTOR_POWER ? "an integer to a negative power" : "division by zero";
}

/* A block has bad values: run the kernel on each value to find their elements. This is rare. */
static void
reject_values(struct expression_run *run, const struct group_op *op, const struct column *structure,
              bool shared, int64_t first, const void *const operands[STEP_INPUTS_MAX], size_t count)
{
    const struct expression_step *step = &run->expression->steps[op->step];
    size_t bytes = expression_value_bytes(step->type.spec.dtype);

    for (size_t i = 0; i < count; i++) {
        uint8_t ignored[16];

        if (step->kernel->run(ignored, (const uint8_t *)operands[0] + i * bytes,
                              (const uint8_t *)operands[1] + i * bytes, NULL, 1) != 0)
            run_reject(run, op->step, shared, column_element_of(structure, first + (int64_t)i),
                       fault_of(step->op));
    }
}

/* Concatenate pairs of texts. One allocation serves all texts of the block. */
static void
join_texts(struct scratch *scratch, struct byte_view *out, const struct byte_view *a,
           const struct byte_view *b, size_t count)
{
    uint64_t total = 0;
    uint8_t *text;

    for (size_t i = 0; i < count; i++)
        total += a[i].size + b[i].size;
    text = scratch_alloc(scratch, total);
    for (size_t i = 0; i < count; i++) {
        /* Empty texts may have no address, which memcpy must not get. */
        out[i] = (struct byte_view){ text, a[i].size + b[i].size };
        if (a[i].size > 0)
            memcpy(text, a[i].data, a[i].size);
        if (b[i].size > 0)
            memcpy(text + a[i].size, b[i].data, b[i].size);
        text += out[i].size;
    }
}

/* The values of a group's leaves, over one structure. */
struct group_data {
    const struct column *structure;
    bool shared;
    const uint8_t **leaves;
    uint8_t *blocks, *result;
    size_t block_bytes; /* of one; small, to stay in the first-level cache */
};

static void *
location_address(const struct expression_run *run, const struct group_data *data,
                 struct location location, size_t bytes, int64_t first)
{
    size_t offset = (size_t)first * bytes;

    switch (location.kind) {
    case LOCATION_LEAF:
        return (uint8_t *)(uintptr_t)data->leaves[location.number] + offset;
    case LOCATION_CONSTANT:
        return run->expression->steps[location.number].constant;
    case LOCATION_BLOCK:
        return data->blocks + (size_t)location.number * data->block_bytes;
    case LOCATION_RESULT:
        return data->result + offset;
    default:
        return NULL;
    }
}

static void
run_op(struct expression_run *run, const struct group_op *op, const struct group_data *data,
       int64_t first, size_t count)
{
    const struct expression_step *steps = run->expression->steps, *step = &steps[op->step];
    const void *operands[STEP_INPUTS_MAX] = { NULL };
    void *out = location_address(run, data, op->output,
                                 expression_value_bytes(step->type.spec.dtype), first);

    for (int k = 0; k < STEP_INPUTS_MAX && step->inputs[k] != NO_STEP; k++)
        operands[k] =
            location_address(run, data, op->inputs[k],
                             expression_value_bytes(steps[step->inputs[k]].type.spec.dtype), first);
    if (step->kind == STEP_CONVERT)
        convert_values(step->type.spec.dtype, out, steps[step->inputs[0]].type.spec.dtype,
                       operands[0], count);
    else if (step->kind == STEP_JOIN)
        join_texts(run->output->scratch, out, operands[0], operands[1], count);
    else if (step->kernel->run(out, operands[0], operands[1], operands[2], count) != 0)
        reject_values(run, op, data->structure, data->shared, first, operands, count);
}

/* Whether all leaves have one structure, which is the usual case and needs no broadcasting. */
static bool
leaves_agree(const struct expression_run *run, const struct expression_group *group)
{
    /* Leaves that are all shared agree too: the group then has one value for all elements. */
    for (uint32_t i = 1; i < group->leaf_count; i++)
        if (run->is_shared[group->leaves[i]] != run->is_shared[group->leaves[0]] ||
            !column_same_structure(&run->columns[group->leaves[0]],
                                   &run->columns[group->leaves[i]]))
            return false;
    return true;
}

/* Broadcast the leaves' dimensions of one element. */
static bool
element_dims(const struct expression_run *run, const struct expression_group *group,
             int64_t element, int64_t dims[RANK_MAX], uint32_t *rank)
{
    *rank = 0;
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        const struct column *leaf = &run->columns[group->leaves[i]];
        int64_t own[RANK_MAX];

        column_dims(leaf, run->is_shared[group->leaves[i]] ? 0 : element, own);
        if (!dims_broadcast(dims, *rank, own, leaf->level_count, dims, rank))
            return false;
    }
    return true;
}

/* Whether every leaf's elements have one shape, which is usual. Then one element decides for
 * all. */
static bool
all_alike(const struct expression_run *run, const struct expression_group *group)
{
    int64_t dims[RANK_MAX];

    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (!column_same_dims(&run->columns[group->leaves[i]], dims))
            return false;
    return true;
}

/* Broadcast the leaves' shapes, once if all elements are alike, or for each element. */
static void
broadcast_dims(struct expression_run *run, const struct expression_group *group, int64_t count,
               bool shared, struct column *structure)
{
    bool alike = all_alike(run, group);
    int64_t dim_sets = alike && count > 0 ? 1 : count;
    uint32_t rank = 0;
    int64_t *dims;

    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (run->columns[group->leaves[i]].level_count > rank)
            rank = run->columns[group->leaves[i]].level_count;
    dims = scratch_array(run->output->scratch, (size_t)dim_sets * rank + RANK_MAX, sizeof *dims);
    for (int64_t i = 0; i < dim_sets; i++) {
        int64_t own[RANK_MAX];
        uint32_t own_rank;

        if (!element_dims(run, group, i, own, &own_rank)) {
            run_reject(run, group->root, shared || alike, i, "shapes are incompatible");
            memset(own, 0, sizeof own);
        }
        memcpy(&dims[i * rank], own, rank * sizeof *dims);
    }
    if (alike && count > 0)
        column_set_dims(structure, count, rank, dims);
    else
        column_set_dims_each(structure, count, rank, dims, run->output->scratch);
}

/* The structure that the leaves have together. A ragged or sparse leaf decides it. */
static void
common_structure(struct expression_run *run, const struct expression_group *group,
                 struct column *structure, bool *ret_shared)
{
    bool shared = true;

    for (uint32_t i = 0; i < group->leaf_count; i++)
        shared &= run->is_shared[group->leaves[i]];
    *ret_shared = shared;
    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (run->expression->steps[group->leaves[i]].type.spec.kind != TUNDISH_DENSE) {
            *structure = run->columns[group->leaves[i]];
            return;
        }
    broadcast_dims(run, group, shared ? 1 : run->input->count, shared, structure);
}

/* A leaf's values, as many as the structure has. Elements whose shapes do not match have none. */
static const uint8_t *
leaf_values(struct expression_run *run, int32_t leaf, const struct column *structure)
{
    const struct column *column = &run->columns[leaf];
    size_t bytes = expression_value_bytes(run->expression->steps[leaf].type.spec.dtype);
    uint8_t *values;

    if (!run->is_shared[leaf] && column_same_structure(column, structure))
        return column->values;
    values = scratch_array(run->output->scratch, (size_t)structure->value_count, bytes);
    column_broadcast(column, structure, bytes, values);
    return values;
}

void
run_group(struct expression_run *run, const struct expression_group *group)
{
    struct scratch *scratch = run->output->scratch;
    struct column structure;
    struct group_data data = { .structure = &structure, .shared = true };
    const uint8_t *few_leaves[FEW];
    _Alignas(64) uint8_t few_blocks[FEW * 64];

    column_clear(&structure);
    structure.count = structure.value_count = 1;
    data.leaves = group->leaf_count <= FEW
                      ? few_leaves
                      : scratch_array(scratch, group->leaf_count, sizeof *data.leaves);
    if (group->leaf_count > 0 && leaves_agree(run, group)) {
        column_copy(&structure, &run->columns[group->leaves[0]]);
        data.shared = run->is_shared[group->leaves[0]];
    } else if (group->leaf_count > 0)
        common_structure(run, group, &structure, &data.shared);
    for (uint32_t i = 0; i < group->leaf_count; i++)
        data.leaves[i] = leaf_values(run, group->leaves[i], &structure);
    /* 16 bytes a value, the largest (a text), so that any op can use any block. */
    data.block_bytes =
        16 * (size_t)(structure.value_count < BLOCK_VALUES ? structure.value_count : BLOCK_VALUES);
    data.blocks = group->block_count * data.block_bytes <= sizeof few_blocks
                      ? few_blocks
                      : scratch_array(scratch, group->block_count, data.block_bytes);
    data.result = run_values(run, group->root, data.shared, structure.value_count);
    /* All ops on one block before the next: what one writes is still in the cache for another. */
    for (int64_t first = 0; first < structure.value_count; first += BLOCK_VALUES) {
        int64_t left = structure.value_count - first;

        for (uint32_t i = 0; i < group->op_count; i++)
            run_op(run, &group->ops[i], &data, first,
                   left < BLOCK_VALUES ? (size_t)left : BLOCK_VALUES);
    }
    structure.values = data.result;
    column_copy(&run->columns[group->root], &structure);
    run->is_shared[group->root] = data.shared;
}
