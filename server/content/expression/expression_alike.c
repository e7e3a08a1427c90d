/* expression_alike.c - run one expression for several columns at once. In small frames the cost of
 * starting kernels dominates. */
#include "content/expression/expression_alike.h"

#include <stdlib.h>
#include <string.h>

#include "content/expression/expression_program.h"
#include "core/memory.h"

/* In larger frames, copying the values together and back costs more than it saves. */
enum { FEW_ELEMENTS = 8 };

/* The step that reads the only column of an expression that works value by value; or NULL. */
static const struct expression_step *
only_column(const struct expression *expression)
{
    const struct expression_step *found = NULL;

    for (uint32_t i = 0; i < expression->step_count; i++) {
        const struct expression_step *step = &expression->steps[i];

        if (step->type.spec.dtype == TUNDISH_STRING)
            return NULL;
        if (step->kind == STEP_COLUMN) {
            if (found != NULL && found->column != step->column)
                return NULL;
            found = step;
        } else if (step->kind != STEP_CONSTANT && !step_is_by_value(step)) {
            return NULL;
        }
    }
    return found;
}

/* Whether two steps compute the same, whatever column they read. */
static bool
does_the_same(const struct expression_step *a, const struct expression_step *b)
{
    tundish_dtype dtype = a->type.spec.dtype;

    return a->kind == b->kind && dtype == b->type.spec.dtype &&
           memcmp(a->inputs, b->inputs, sizeof a->inputs) == 0 && a->kernel == b->kernel &&
           (a->kind != STEP_CONSTANT ||
            memcmp(a->constant, b->constant, expression_value_bytes(dtype)) == 0);
}

static bool
is_like(const struct expression *a, const struct expression *b)
{
    if (a->step_count != b->step_count || a->result != b->result)
        return false;
    for (uint32_t i = 0; i < a->step_count; i++)
        if (!does_the_same(&a->steps[i], &b->steps[i]))
            return false;
    return true;
}

bool
expression_alike_add(struct expression_alike *alike, const struct expression *expression,
                     uint32_t output)
{
    const struct expression_step *column = only_column(expression);
    uint32_t count = alike->count;

    if (count > 0 && (column == NULL || only_column(alike->list[0]) == NULL ||
                      !is_like(alike->list[0], expression)))
        return false;
    alike->list = tnd_realloc(alike->list, count + 1, sizeof *alike->list);
    alike->inputs = tnd_realloc(alike->inputs, count + 1, sizeof *alike->inputs);
    alike->outputs = tnd_realloc(alike->outputs, count + 1, sizeof *alike->outputs);
    alike->list[count] = expression;
    alike->inputs[count] = column != NULL ? column->column : 0;
    alike->outputs[count] = output;
    alike->count++;
    return true;
}

void
expression_alike_close(struct expression_alike *alike)
{
    free(alike->list);
    free(alike->inputs);
    free(alike->outputs);
}

/* Copy the columns' values into one column. False: they are not scalars. */
static bool
gather(const struct expression_alike *alike, size_t value, const struct frame *input,
       struct column *ret_column)
{
    size_t bytes = (size_t)input->count * value;
    uint8_t *values = scratch_array(input->scratch, alike->count, bytes);

    for (uint32_t i = 0; i < alike->count; i++) {
        const struct column *column = &input->columns[alike->inputs[i]];

        /* Only scalars: the elements of columns can then lie one after the other. */
        if (column->level_count != 0 || column->value_count != input->count)
            return false;
        memcpy(values + i * bytes, column->values, bytes);
    }
    column_set_scalars(ret_column, input->count * alike->count, values);
    return true;
}

/* Apply the expression to all columns together. False: that is not possible, and nothing was
 * written. */
static bool
apply_together(const struct expression_alike *alike, const struct frame *input,
               struct frame *output)
{
    const struct expression *expression = alike->list[0];
    size_t value = expression_value_bytes(only_column(expression)->type.spec.dtype);
    size_t bytes =
        (size_t)input->count * expression_value_bytes(expression_spec(expression)->dtype);
    struct frame_errors *errors = scratch_alloc(output->scratch, sizeof *errors);
    struct column *columns = scratch_array(output->scratch, input->column_count, sizeof *columns);
    struct frame from = *input, to = { .column_count = 1, .scratch = output->scratch };
    struct column result;

    if (!gather(alike, value, input, &columns[alike->inputs[0]]))
        return false;
    frame_errors_clear(errors);
    /* A frame with the elements of all columns, and errors of its own, which are thrown away. */
    from.columns = columns;
    from.count = to.count = input->count * alike->count;
    from.errors = to.errors = errors;
    to.columns = &result;
    expression_apply(expression, &from, &to, 0);
    if (errors->bad_count > 0 || result.level_count != 0)
        return false; /* one by one, each fault is reported with its column */
    for (uint32_t i = 0; i < alike->count; i++) {
        void *values = frame_values(output, alike->outputs[i], bytes);

        memcpy(values, (const uint8_t *)result.values + i * bytes, bytes);
        column_set_scalars(&output->columns[alike->outputs[i]], input->count, values);
    }
    return true;
}

void
expression_alike_apply(const struct expression_alike *alike, const struct frame *input,
                       struct frame *output)
{
    if (alike->count > 1 && input->count > 0 && input->count <= FEW_ELEMENTS &&
        apply_together(alike, input, output))
        return;
    for (uint32_t i = 0; i < alike->count; i++)
        expression_apply(alike->list[i], input, output, alike->outputs[i]);
}
