/* expression_run_step.c - steps that are not kernels, on whole columns. */
#include "content/expression/expression_run.h"

#include <string.h>

#include "column/dims.h"
#include "core/must.h"
#include "core/philox.h"

/* Reject an element, and name the part of the expression that has no value. */
static void
reject(struct expression_run *run, int32_t step, int64_t element, const char *what)
{
    frame_reject(run->output, element, "%s in \"%s\", at character %u", what, run->expression->text,
                 run->expression->steps[step].at + 1);
}

/* A fault in a shared column is every element's. */
void
run_reject(struct expression_run *run, int32_t step, bool shared, int64_t element, const char *what)
{
    if (!shared) {
        reject(run, step, element, what);
        return;
    }
    for (int64_t i = 0; i < run->input->count; i++)
        reject(run, step, i, what);
}

static void
run_reject_marked(struct expression_run *run, int32_t step, bool shared, const uint8_t *bad,
                  int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (bad[i])
            run_reject(run, step, shared, i, what);
}

/* Make room for a step's values: directly in the frame if it is the result. */
void *
run_values(struct expression_run *run, int32_t step, bool shared, int64_t value_count)
{
    size_t bytes = expression_value_bytes(run->expression->steps[step].type.spec.dtype);
    size_t total;

    /* Counts come from shapes that were checked, but a silent overflow would write outside. */
    must(!__builtin_mul_overflow((size_t)value_count, bytes, &total));
    if (step == run->expression->result && !shared)
        return frame_values(run->output, run->index, total);
    return scratch_alloc(run->output->scratch, total);
}

/* A constant is one value that all elements share. */
static void
set_constant(struct expression_run *run, int32_t step)
{
    struct column *column = &run->columns[step];

    column_clear(column);
    column->count = 1;
    column->value_count = 1;
    column->values = run->expression->steps[step].constant;
    run->is_shared[step] = true;
}

/* An input of a step that is not a kernel. */
static const struct column *
run_input(struct expression_run *run, int32_t input, bool *ret_shared)
{
    const struct expression_step *step = &run->expression->steps[input];

    if (step->kind == STEP_CONSTANT)
        set_constant(run, input);
    *ret_shared = run->is_shared[input];
    return &run->columns[input];
}

/* Stack columns along a new first dimension. Each element's values are gathered from every item. */
static void
run_stack(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];
    size_t bytes = expression_value_bytes(step->type.spec.dtype);
    struct column *column = &run->columns[index];
    bool all_shared = true, shared;
    const int64_t *dims = step->type.spec.shape;
    int64_t each = dims_product(dims + 1, (uint32_t)step->type.spec.rank - 1);
    uint8_t *values;

    /* One value for all elements if all items are shared, as in a vector of constants. */
    for (uint32_t i = 0; i < step->more_count; i++) {
        run_input(run, step->more[i], &shared);
        all_shared &= shared;
    }
    column_set_dims(column, all_shared ? 1 : run->input->count, (uint32_t)step->type.spec.rank,
                    dims);
    values = run_values(run, index, all_shared, column->value_count);
    for (uint32_t i = 0; i < step->more_count; i++) {
        const struct column *item = run_input(run, step->more[i], &shared);

        for (int64_t j = 0; j < column->count; j++) {
            uint8_t *to = values + (size_t)((j * step->more_count + i) * each) * bytes;
            int64_t begin, end;

            column_value_range(item, shared ? 0 : j, shared ? 1 : j + 1, &begin, &end);
            if (end - begin == each && each > 0)
                memcpy(to, (const uint8_t *)item->values + (size_t)begin * bytes,
                       (size_t)each * bytes);
            else /* a rejected element */
                memset(to, 0, (size_t)each * bytes);
        }
    }
    column->values = values;
    run->is_shared[index] = all_shared;
}

static uint8_t *
zeroed_marks(struct expression_run *run, int64_t count)
{
    uint8_t *marks = scratch_alloc(run->output->scratch, (size_t)count);

    memset(marks, 0, (size_t)count);
    return marks;
}

static void
run_reduce(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];
    const struct column *input = run_input(run, step->inputs[0], &run->is_shared[index]);
    uint8_t *bad = zeroed_marks(run, input->count);

    reduce_column(step->reduce, run->expression->steps[step->inputs[0]].type.spec.dtype, input,
                  step->axes, run->output->scratch, &run->columns[index], bad);
    run_reject_marked(run, index, run->is_shared[index], bad, input->count,
                      "a reduction of no values");
}

/* The slice items of every element, with the bounds that are columns filled in. */
static struct slice_item *
items_of_each(struct expression_run *run, const struct expression_step *step, uint32_t rank)
{
    struct slice_item *items =
        scratch_array(run->output->scratch, (size_t)run->input->count * rank + 1, sizeof *items);

    for (int64_t i = 0; i < run->input->count; i++)
        memcpy(&items[i * rank], step->items, rank * sizeof *items);
    for (uint32_t k = 0; k < step->more_count; k++) {
        const int64_t *bounds;
        bool shared;

        if (step->more[k] == NO_STEP)
            continue;
        bounds = run_input(run, step->more[k], &shared)->values;
        for (int64_t i = 0; i < run->input->count; i++) {
            struct slice_item *item = &items[i * rank + k / 2];
            int64_t bound = bounds[shared ? 0 : i];

            /* As for literals: adding a size to half the range cannot overflow. */
            bound = bound > INT64_MAX / 2   ? INT64_MAX / 2
                    : bound < INT64_MIN / 2 ? INT64_MIN / 2
                                            : bound;
            *(k % 2 == 0 ? &item->start : &item->stop) = bound;
        }
    }
    return items;
}

static bool
has_column_bounds(const struct expression_step *step)
{
    for (uint32_t k = 0; k < step->more_count; k++)
        if (step->more[k] != NO_STEP)
            return true;
    return false;
}

static void
run_slice(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];
    const struct column *input = run_input(run, step->inputs[0], &run->is_shared[index]);
    size_t bytes = expression_value_bytes(step->type.spec.dtype);
    const struct slice_item *items = step->items;
    struct column every;
    size_t stride = 0;
    uint8_t *bad;

    /* Then each element has items of its own, `stride` apart. */
    if (has_column_bounds(step)) {
        items = items_of_each(run, step, input->level_count);
        stride = input->level_count;
        if (run->is_shared[index]) { /* one base, many indices */
            int64_t dims[RANK_MAX];
            void *values;

            column_dims(input, 0, dims);
            column_set_dims(&every, run->input->count, input->level_count, dims);
            values = scratch_array(run->output->scratch, (size_t)every.value_count, bytes);
            column_broadcast(input, &every, bytes, values);
            every.values = values;
            input = &every;
            run->is_shared[index] = false;
        }
    }
    bad = zeroed_marks(run, input->count);
    slice_column(input, bytes, items, stride, run->output->scratch, &run->columns[index], bad);
    run_reject_marked(run, index, run->is_shared[index], bad, input->count, "an index is outside");
}

/* The length of dimension 0; `length` of texts is a kernel. */
static void
run_length(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];
    const struct column *input = run_input(run, step->inputs[0], &run->is_shared[index]);
    int64_t *lengths = run_values(run, index, run->is_shared[index], input->count);

    for (int64_t i = 0; i < input->count; i++)
        lengths[i] = input->level_count == 0 ? 0 : level_length(&input->levels[0], i);
    column_set_scalars(&run->columns[index], input->count, lengths);
}

/* tf.random.stateless_uniform with the Philox generator, four numbers at a time. */
static void
fill_uniform(int64_t seed0, int64_t seed1, float *values, int64_t count)
{
    struct tnd_philox philox = tnd_philox_of_stateless_seed(seed0, seed1);

    /* Each element starts a generator of its own, so that its numbers do not depend on its
     * neighbours. */
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t words[4];

        tnd_philox_next(&philox, words);
        for (int64_t j = i; j < count && j < i + 4; j++)
            values[j] = tnd_uniform_float(words[j - i]);
    }
}

static void
run_uniform(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];
    int64_t each = step->uniform_count < 0 ? 1 : step->uniform_count;
    int64_t dims[RANK_MAX] = { each };
    bool shared[2];
    const int64_t *seeds[2];
    struct column *column = &run->columns[index];
    float *values;

    for (int k = 0; k < 2; k++)
        seeds[k] = run_input(run, step->inputs[k], &shared[k])->values;
    run->is_shared[index] = shared[0] && shared[1];
    column_set_dims(column, run->is_shared[index] ? 1 : run->input->count,
                    step->uniform_count < 0 ? 0 : 1, dims);
    values = run_values(run, index, run->is_shared[index], column->value_count);
    for (int64_t i = 0; i < column->count; i++)
        fill_uniform(seeds[0][shared[0] ? 0 : i], seeds[1][shared[1] ? 0 : i], values + i * each,
                     each);
    column->values = values;
}

void
run_step(struct expression_run *run, int32_t index)
{
    const struct expression_step *step = &run->expression->steps[index];

    switch (step->kind) {
    case STEP_CONSTANT:
        set_constant(run, index);
        break;
    case STEP_COLUMN:
        column_copy(&run->columns[index], &run->input->columns[step->column]);
        break;
    case STEP_OUTER:
        must(run->input->outer != NULL);
        run->columns[index] = run->input->outer->columns[step->column];
        break;
    case STEP_STACK:
        run_stack(run, index);
        break;
    case STEP_REDUCE:
        run_reduce(run, index);
        break;
    case STEP_SLICE:
        run_slice(run, index);
        break;
    case STEP_LENGTH:
        run_length(run, index);
        break;
    case STEP_UNIFORM:
        run_uniform(run, index);
        break;
    default:
        must(!step_is_by_value(step));
    }
}
