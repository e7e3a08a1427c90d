/* expression.c - open, close and run expressions: groups of kernels in blocks, other steps on whole
 * columns. */
#include "content/expression/expression.h"
#include "content/expression/expression_context.h"

#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "column/flush.h"
#include "content/expression/expression_run.h"
#include "core/memory.h"
#include "core/status.h"

tundish_status
expression_open(const struct expression_config *config, struct expression **ret_expression)
{
    struct expression *expression = tnd_zalloc(1, sizeof *expression);
    struct expression_config filled = *config;
    struct tree *nodes = NULL, *root = NULL;
    tundish_status status = expression_fill_in(config, &expression->text);

    filled.text = expression->text;
    if (status == TUNDISH_OK)
        status = tree_parse(&filled, &nodes, &root);
    if (status == TUNDISH_OK)
        status = expression_check(&filled, root, expression);
    tree_close(nodes);
    if (status != TUNDISH_OK) {
        expression_close(expression);
        return status;
    }
    expression_group(expression);
    *ret_expression = expression;
    return TUNDISH_OK;
}

void
expression_close(struct expression *expression)
{
    if (expression == NULL)
        return;
    for (uint32_t i = 0; i < expression->step_count; i++) {
        free(expression->steps[i].more);
        free(expression->steps[i].constant);
        free(expression->steps[i].text);
    }
    for (uint32_t i = 0; i < expression->group_count; i++) {
        free(expression->groups[i].ops);
        free(expression->groups[i].leaves);
    }
    free(expression->steps);
    free(expression->groups);
    free(expression->text);
    free(expression);
}

const struct column_spec *
expression_spec(const struct expression *expression)
{
    return &expression->steps[expression->result].type.spec;
}

bool
expression_is_batch_wide(const struct expression *expression)
{
    return expression->is_batch_wide;
}

bool
expression_reads(const struct expression *expression, uint32_t column)
{
    for (uint32_t i = 0; i < expression->step_count; i++)
        if (expression->steps[i].kind == STEP_COLUMN && expression->steps[i].column == column)
            return true;
    return false;
}

/* Repeat a result that is the same for all elements, so that each has its own. */
static void
unshare_result(struct expression_run *run)
{
    const struct expression *expression = run->expression;
    struct column *column = &run->columns[expression->result];
    size_t bytes = expression_value_bytes(expression->steps[expression->result].type.spec.dtype);
    int64_t dims[RANK_MAX];
    struct column all;
    void *values;

    column_dims(column, 0, dims);
    column_set_dims(&all, run->input->count, column->level_count, dims);
    values = frame_values(run->output, run->index, (size_t)all.value_count * bytes);
    column_broadcast(column, &all, bytes, values);
    all.values = values;
    *column = all;
}

void
expression_apply(const struct expression *expression, const struct frame *input,
                 struct frame *output, uint32_t index)
{
    struct expression_run run = {
        .expression = expression, .input = input, .output = output, .index = index
    };
    /* Usual expressions have few steps; their state needs no scratch memory. */
    struct column few_columns[FEW];
    bool few_shared[FEW];
    uint32_t group = 0;

    run.columns = few_columns;
    run.is_shared = few_shared;
    if (expression->step_count > FEW) {
        run.columns = scratch_array(output->scratch, expression->step_count, sizeof *run.columns);
        run.is_shared =
            scratch_array(output->scratch, expression->step_count, sizeof *run.is_shared);
    }
    memset(run.is_shared, 0, expression->step_count * sizeof *run.is_shared);
    for (uint32_t i = 0; i < expression->step_count; i++) {
        /* Other steps run inside the group of a root. */
        if (!expression->steps[i].is_root)
            continue;
        if (step_is_by_value(&expression->steps[i]))
            run_group(&run, &expression->groups[group++]);
        else
            run_step(&run, (int32_t)i);
    }
    if (run.is_shared[expression->result])
        unshare_result(&run);
    column_copy(&output->columns[index], &run.columns[expression->result]);
}
