/* expression_group.c - decide which steps run together, and where their operands are. */
#include <stdlib.h>
#include <string.h>

#include "content/expression/expression_program.h"
#include "core/memory.h"
#include "core/must.h"

/* Only steps of one shape can run in one loop. */
static bool
has_same_shape(const struct value_type *a, const struct value_type *b)
{
    if (a->spec.kind != b->spec.kind || a->structure != b->structure ||
        a->spec.rank != b->spec.rank)
        return false;
    for (int k = 0; k < a->spec.rank; k++)
        if (a->spec.shape[k] != b->spec.shape[k])
            return false;
    return true;
}

/* Note that `user` reads `step`: either both run in one group, or the step becomes a root, whose
 * whole column is kept. */
static void
note_use(struct expression *expression, int32_t user, int32_t input)
{
    const struct expression_step *reader = &expression->steps[user];
    struct expression_step *step = &expression->steps[input];
    /* A step with two readers in different groups is computed once and kept, rather than twice. */
    bool together = step_is_by_value(reader) && step_is_by_value(step) &&
                    has_same_shape(&reader->type, &step->type);

    if (!together || (step->group != NO_STEP && step->group != reader->group))
        step->is_root = true;
    else
        step->group = reader->group;
}

/* Find the roots from the result backwards, so that a reader's group is known before its inputs'. A
 * step that becomes a root starts its own group. */
static void
find_roots(struct expression *expression)
{
    bool *used = tnd_zalloc(expression->step_count, sizeof *used);

    for (uint32_t i = 0; i < expression->step_count; i++)
        expression->steps[i].group = NO_STEP;
    expression->steps[expression->result].is_root = true;
    used[expression->result] = true;
    for (int32_t i = expression->result; i >= 0; i--) {
        struct expression_step *step = &expression->steps[i];

        if (!used[i])
            continue;
        if (step->is_root || !step_is_by_value(step))
            step->group = i;
        for (uint32_t k = 0; k < STEP_INPUTS_MAX + step->more_count; k++) {
            int32_t input = k < STEP_INPUTS_MAX ? step->inputs[k] : step->more[k - STEP_INPUTS_MAX];

            if (input == NO_STEP)
                continue;
            used[input] = true;
            note_use(expression, i, input);
        }
    }
    /* Nobody reads these: their operators were folded into literals or replaced. */
    for (uint32_t i = 0; i < expression->step_count; i++)
        if (!used[i])
            expression->steps[i].is_root = false;
    free(used);
}

static struct location
leaf_location(struct expression_group *group, int32_t step)
{
    /* A leaf that several ops read is broadcast once. */
    for (uint32_t i = 0; i < group->leaf_count; i++)
        if (group->leaves[i] == step)
            return (struct location){ LOCATION_LEAF, i };
    group->leaves = tnd_realloc(group->leaves, group->leaf_count + 1, sizeof *group->leaves);
    group->leaves[group->leaf_count] = step;
    return (struct location){ LOCATION_LEAF, group->leaf_count++ };
}

/* Block buffers, by linear-scan allocation: a buffer is free after the last op that reads it. */
struct block_pool {
    uint32_t *last_use; /* by op: the last op that reads its output */
    bool *taken;
    uint32_t count;
};

static uint32_t
take_block(struct block_pool *pool)
{
    uint32_t number = 0;

    while (number < pool->count && pool->taken[number])
        number++;
    if (number == pool->count)
        pool->count++;
    pool->taken[number] = true;
    return number;
}

static uint32_t
op_of(const struct expression_group *group, int32_t step)
{
    uint32_t op = 0;

    while (group->ops[op].step != step)
        op++;
    return op;
}

static struct location
input_location(struct expression *expression, struct expression_group *group, int32_t input)
{
    const struct expression_step *step = input == NO_STEP ? NULL : &expression->steps[input];

    if (step == NULL)
        return (struct location){ LOCATION_NONE, 0 };
    /* Constants are not leaves: they have no structure to broadcast. */
    if (step->kind == STEP_CONSTANT)
        return (struct location){ LOCATION_CONSTANT, (uint32_t)input };
    if (step->is_root)
        return leaf_location(group, input);
    return group->ops[op_of(group, input)].output;
}

static void
locate_operands(struct expression *expression, struct expression_group *group)
{
    struct block_pool pool = {
        .last_use = tnd_zalloc(group->op_count, sizeof(uint32_t)),
        .taken = tnd_zalloc(group->op_count, sizeof(bool)),
    };

    for (uint32_t i = 0; i < group->op_count; i++)
        for (int k = 0; k < STEP_INPUTS_MAX; k++) {
            int32_t input = expression->steps[group->ops[i].step].inputs[k];

            if (input != NO_STEP && step_is_by_value(&expression->steps[input]) &&
                !expression->steps[input].is_root)
                pool.last_use[op_of(group, input)] = i;
        }
    for (uint32_t i = 0; i < group->op_count; i++) {
        struct group_op *op = &group->ops[i];

        for (int k = 0; k < STEP_INPUTS_MAX; k++)
            op->inputs[k] =
                input_location(expression, group, expression->steps[op->step].inputs[k]);
        /* Take the output's block before the inputs' are returned: kernels do not work in place. */
        op->output = op->step == group->root
                         ? (struct location){ LOCATION_RESULT, 0 }
                         : (struct location){ LOCATION_BLOCK, take_block(&pool) };
        for (uint32_t j = 0; j < i; j++)
            if (pool.last_use[j] == i && group->ops[j].output.kind == LOCATION_BLOCK)
                pool.taken[group->ops[j].output.number] = false;
    }
    group->block_count = pool.count;
    free(pool.last_use);
    free(pool.taken);
}

/* Collect the steps of a root in order of evaluation. */
static void
add_group(struct expression *expression, int32_t root)
{
    struct expression_group *group;

    expression->groups =
        tnd_realloc(expression->groups, expression->group_count + 1, sizeof *expression->groups);
    group = &expression->groups[expression->group_count++];
    *group = (struct expression_group){ .root = root };
    group->ops = tnd_zalloc((size_t)root + 1, sizeof *group->ops);
    for (int32_t i = 0; i <= root; i++)
        if (step_is_by_value(&expression->steps[i]) && expression->steps[i].group == root)
            group->ops[group->op_count++].step = i;
    locate_operands(expression, group);
}

void
expression_group(struct expression *expression)
{
    find_roots(expression);
    for (uint32_t i = 0; i < expression->step_count; i++)
        if (expression->steps[i].is_root && step_is_by_value(&expression->steps[i]))
            add_group(expression, (int32_t)i);
}
