/* expression_call.c - the functions of the language. */
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "content/expression/operand.h"
#include "core/memory.h"
#include "core/plural.h"
#include "spec/stages.h"

enum { ARGUMENTS_MAX = 3 };

struct function {
    const char *name;
    uint32_t least, most; /* arguments */
    bool takes_axis;
    struct operand (*check)(struct checker *checker, const struct tree *tree,
                            const struct function *function);
    enum vector_op op;     /* of by-value functions */
    enum reduce_op reduce; /* of reductions */
};

static struct operand
argument(struct checker *checker, const struct tree *tree, uint32_t index)
{
    return operand_tree(checker, tree->children[index]);
}

static struct operand
refuse(struct checker *checker, const struct tree *tree, struct operand operand, const char *hint)
{
    return operand_complain(checker, tree->at, "%s is not defined for %s%s", tree->text,
                            tnd_dtype_name(operand_dtype(checker, operand)), hint);
}

/* Check a function of one float. */
static struct operand
check_float_function(struct checker *checker, const struct tree *tree,
                     const struct function *function)
{
    struct operand operand = operand_default(checker, argument(checker, tree, 0));

    if (operand.kind == OPERAND_BAD)
        return operand;
    if (!tnd_dtype_is_float(operand_dtype(checker, operand)))
        return refuse(checker, tree, operand, ": cast(..., float32) first");
    return operand_kernel(checker, function->op, tree->at, &operand, 1);
}

/* abs and sign take signed numbers. round leaves integers alone. */
static struct operand
check_signed_function(struct checker *checker, const struct tree *tree,
                      const struct function *function)
{
    struct operand operand = operand_default(checker, argument(checker, tree, 0));
    tundish_dtype dtype;

    if (operand.kind == OPERAND_BAD)
        return operand;
    dtype = operand_dtype(checker, operand);
    if (function->op == VECTOR_ROUND && tnd_dtype_is_integer(dtype))
        return operand;
    if (dtype == TUNDISH_BOOL || dtype == TUNDISH_STRING || dtype == TUNDISH_UINT8 ||
        dtype == TUNDISH_UINT16 || dtype == TUNDISH_UINT32 || dtype == TUNDISH_UINT64)
        return refuse(checker, tree, operand, "");
    return operand_kernel(checker, function->op, tree->at, &operand, 1);
}

/* Emit a minimum or maximum of two numbers. */
static struct operand
check_extremum(struct checker *checker, const struct tree *tree, enum vector_op op,
               struct operand left, struct operand right)
{
    struct operand operands[2] = { left, right };
    tundish_dtype dtype;

    if (!operand_unify(checker, operands, 2))
        return operand_bad();
    dtype = operand_dtype(checker, operands[0]);
    if (!tnd_dtype_is_integer(dtype) && !tnd_dtype_is_float(dtype))
        return refuse(checker, tree, operands[0], "");
    return operand_kernel(checker, op, tree->at, operands, 2);
}

/* tf.clip_by_value: first the minimum with high, then the maximum with low. The order matters if
 * low is above high. */
static struct operand
check_clip(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand x = argument(checker, tree, 0);
    struct operand low = argument(checker, tree, 1);
    struct operand high = argument(checker, tree, 2);
    struct operand all[3] = { x, low, high };

    (void)function;
    if (!operand_unify(checker, all, 3))
        return operand_bad();
    x = check_extremum(checker, tree, VECTOR_MINIMUM, all[0], all[2]);
    return x.kind == OPERAND_BAD ? x : check_extremum(checker, tree, VECTOR_MAXIMUM, x, all[1]);
}

static struct operand
check_pow(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand operands[2] = { argument(checker, tree, 0), argument(checker, tree, 1) };

    (void)function;
    /* A function's result has a dtype, but the operator on literals alone has none, so give these
     * one. */
    if (operand_is_literal(operands[0]) && operand_is_literal(operands[1]) &&
        !operand_unify(checker, operands, 2))
        return operand_bad();
    return operand_binary(checker, TREE_POWER, tree->at, operands[0], operands[1]);
}

static struct operand
check_where(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand condition = argument(checker, tree, 0);
    struct operand yes = argument(checker, tree, 1);

    (void)function;
    return operand_select(checker, tree->at, condition, yes, argument(checker, tree, 2));
}

static struct operand
check_cast(struct checker *checker, const struct tree *tree, const struct function *function)
{
    const struct tree *name = tree->children[1];
    struct operand operand = argument(checker, tree, 0);
    /* The dtype is written as a name, which parses as a column, or as a text. */
    tundish_dtype dtype =
        name->kind == TREE_COLUMN || name->kind == TREE_TEXT ? tnd_dtype_by_name(name->text) : 0;

    (void)function;
    if (dtype == 0)
        return operand_complain(checker, name->at, "a dtype such as float32 was expected here");
    operand = operand_default(checker, operand);
    return operand_convert(checker, operand, dtype, tree->at);
}

/* length counts a text's bytes, or the items of dimension 0; size always counts items. */
static struct operand
check_length(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand operand = operand_default(checker, argument(checker, tree, 0));
    struct expression_step step = { .kind = STEP_LENGTH, .at = tree->at };
    const struct value_type *type;

    if (operand.kind == OPERAND_BAD)
        return operand;
    type = operand_type(checker, operand);
    if (type->spec.dtype == TUNDISH_STRING && strcmp(function->name, "length") == 0)
        return operand_kernel(checker, VECTOR_LENGTH, tree->at, &operand, 1);
    if (type->spec.rank == 0)
        return operand_complain(checker, tree->at, "%s of a scalar: it has no dimension 0",
                                tree->text);
    if (type->spec.kind == TUNDISH_SPARSE)
        return operand_complain(checker, tree->at, "%s is not defined for sparse columns",
                                tree->text);
    /* Dimension 0 of a batch is the batch: its length depends on all rows. */
    operand_crosses_rows(checker, operand);
    step.inputs[0] = operand.step;
    step.inputs[1] = step.inputs[2] = NO_STEP;
    step.type = (struct value_type){
        .spec = { .dtype = TUNDISH_INT64, .kind = TUNDISH_DENSE, .passed_from = -1 },
        .structure = -1,
    };
    return operand_emit(checker, &step);
}

/* Check half of a stateless seed: a scalar of int32 or int64, as TensorFlow demands. */
static struct operand
check_seed(struct checker *checker, const struct tree *tree, uint32_t index)
{
    struct operand seed = operand_as(checker, argument(checker, tree, index), TUNDISH_INT64);

    if (seed.kind == OPERAND_BAD)
        return seed;
    if (operand_type(checker, seed)->spec.rank != 0)
        return operand_complain(
            checker, tree->children[index]->at,
            "a seed must be a scalar in each element: seed must have shape [2]");
    if (operand_dtype(checker, seed) != TUNDISH_INT32 &&
        operand_dtype(checker, seed) != TUNDISH_INT64)
        return operand_complain(checker, tree->children[index]->at,
                                "a seed must be int32 or int64, not %s",
                                tnd_dtype_name(operand_dtype(checker, seed)));
    return operand_convert(checker, seed, TUNDISH_INT64, tree->at);
}

static struct operand
check_uniform(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct expression_step step = { .kind = STEP_UNIFORM, .at = tree->at, .uniform_count = -1 };
    struct operand first = check_seed(checker, tree, 0), second = check_seed(checker, tree, 1);

    (void)function;
    if (first.kind == OPERAND_BAD || second.kind == OPERAND_BAD)
        return operand_bad();
    step.type = (struct value_type){
        .spec = { .dtype = TUNDISH_FLOAT32, .kind = TUNDISH_DENSE, .passed_from = -1 },
        .structure = -1,
    };
    if (tree->child_count == 3) {
        struct operand count = argument(checker, tree, 2);

        if (count.kind == OPERAND_BAD)
            return count;
        if (count.kind != OPERAND_INTEGER || count.integer < 0 || count.integer > INT32_MAX)
            return operand_complain(checker, count.at,
                                    "how many values there are must be an integer literal");
        step.uniform_count = (int64_t)count.integer;
        step.type.spec.rank = 1;
        step.type.spec.shape[0] = step.uniform_count;
    }
    step.inputs[0] = first.step;
    step.inputs[1] = second.step;
    step.inputs[2] = NO_STEP;
    return operand_emit(checker, &step);
}

/* Mark one axis, which must be a literal because the rank of the result depends on it. */
static bool
add_axis(struct checker *checker, const struct tree *tree, int rank, uint32_t *axes)
{
    struct operand axis = operand_tree(checker, tree);
    tree_integer number = axis.integer;

    if (axis.kind == OPERAND_BAD)
        return false;
    if (axis.kind != OPERAND_INTEGER || number < -rank || number >= rank) {
        operand_complain(
            checker, tree->at,
            axis.kind == OPERAND_INTEGER
                ? "axis %lld is outside: the rank is %d"
                : "an axis is an integer literal, or a list of them: axis=0, axis=[0, 1]",
            (long long)number, rank);
        return false;
    }
    /* An axis that is named twice counts once. */
    *axes |= 1U << (number < 0 ? number + rank : number);
    return true;
}

/* Find the dimensions to reduce; by default all. */
static bool
find_axes(struct checker *checker, const struct tree *tree, int rank, uint32_t *ret_axes)
{
    const struct tree *axis = tree->axis != NULL       ? tree->axis
                              : tree->child_count == 2 ? tree->children[1]
                                                       : NULL;
    uint32_t axes = 0;

    if (axis == NULL)
        axes = (1U << rank) - 1;
    else if (axis->kind == TREE_VECTOR) {
        for (uint32_t i = 0; i < axis->child_count; i++)
            if (!add_axis(checker, axis->children[i], rank, &axes))
                return false;
    } else if (!add_axis(checker, axis, rank, &axes))
        return false;
    *ret_axes = axes;
    return true;
}

/* Remove the reduced dimensions from the shape. */
static void
drop_axes(struct value_type *type, uint32_t axes)
{
    int kept = 0;

    for (int k = 0; k < type->spec.rank; k++)
        if ((axes >> k & 1) == 0)
            type->spec.shape[kept++] = type->spec.shape[k];
    type->spec.rank = kept;
    /* Without its first dimension a batch is one value for all its rows. */
    type->is_batched &= (axes & 1) == 0;
}

/* Whether the set bits are contiguous: adding the lowest clears a single run. */
static bool
is_one_run(uint32_t axes)
{
    uint32_t lowest = axes & (0U - axes);

    return (axes & (axes + lowest)) == 0;
}

/* Emit a reduction of a dense column of known rank. */
static struct operand
reduce(struct checker *checker, const struct tree *tree, const struct function *function,
       struct operand operand)
{
    struct expression_step step = { .kind = STEP_REDUCE,
                                    .at = tree->at,
                                    .reduce = function->reduce };
    const struct value_type *type = operand_type(checker, operand);
    tundish_dtype dtype = type->spec.dtype;
    bool half = dtype == TUNDISH_FLOAT16 || dtype == TUNDISH_BFLOAT16;

    if (!reduce_is_defined(function->reduce, half ? TUNDISH_FLOAT32 : dtype))
        return refuse(checker, tree, operand, "");
    if (type->spec.kind != TUNDISH_DENSE)
        return operand_complain(checker, tree->at, "%s over a ragged or sparse column", tree->text);
    if (type->spec.rank == RANK_UNKNOWN)
        return operand_complain(checker, tree->at,
                                "the number of dimensions is unknown here; use reshape first");
    if (!find_axes(checker, tree, type->spec.rank, &step.axes))
        return operand_bad();
    if (function->reduce == REDUCE_ARGMAX && __builtin_popcount(step.axes) != 1)
        return operand_complain(checker, tree->at, "argmax needs one axis: argmax(x, axis=0)");
    /* Each run of axes would truncate its quotient, and TensorFlow truncates once. */
    if (function->reduce == REDUCE_MEAN && tnd_dtype_is_integer(dtype) && !is_one_run(step.axes))
        return operand_complain(
            checker, tree->at,
            "the mean of integers over axes that are not adjacent: use cast(..., float32) first");
    if (step.axes & 1)
        operand_crosses_rows(checker, operand);
    /* Halves are reduced in float32 and rounded once, as in TensorFlow. */
    if (half)
        operand = operand_convert(checker, operand, TUNDISH_FLOAT32, tree->at);
    step.inputs[0] = operand.step;
    step.inputs[1] = step.inputs[2] = NO_STEP;
    step.type = *operand_type(checker, operand);
    drop_axes(&step.type, step.axes);
    if (function->reduce == REDUCE_ARGMAX)
        step.type.spec.dtype = TUNDISH_INT64;
    operand = operand_emit(checker, &step);
    return half && function->reduce != REDUCE_ARGMAX
               ? operand_convert(checker, operand, dtype, tree->at)
               : operand;
}

static struct operand
check_reduction(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand operand = operand_default(checker, argument(checker, tree, 0));

    if (operand.kind == OPERAND_BAD)
        return operand;
    if (tree->axis != NULL && tree->child_count == 2)
        return operand_complain(checker, tree->children[1]->at, "two axes: give one, or a list");
    return reduce(checker, tree, function, operand);
}

/* max(x, [0, 1]) would be the larger of x and these numbers; who writes it may well mean axes. */
static bool
may_be_axes(struct checker *checker, struct operand value, const struct tree *list)
{
    const struct value_type *type =
        value.kind == OPERAND_STEP ? operand_type(checker, value) : NULL;

    if (list->kind != TREE_VECTOR || type == NULL || type->spec.rank <= 0)
        return false;
    for (uint32_t i = 0; i < list->child_count; i++) {
        struct operand axis = operand_tree(checker, list->children[i]);

        if (axis.kind != OPERAND_INTEGER || axis.integer < -type->spec.rank ||
            axis.integer >= type->spec.rank)
            return false;
    }
    return true;
}

/* min and max: a reduction with one argument, by value with two. */
static struct operand
check_min_max(struct checker *checker, const struct tree *tree, const struct function *function)
{
    struct operand left;

    if (tree->child_count == 1)
        return check_reduction(checker, tree, function);
    if (tree->axis != NULL)
        return operand_complain(checker, tree->axis->at, "%s of two values has no axis",
                                tree->text);
    left = argument(checker, tree, 0);
    if (may_be_axes(checker, left, tree->children[1]))
        return operand_complain(checker, tree->children[1]->at,
                                "%s of a column and a list may mean numbers or axes: write "
                                "axis=[...] for axes, and numbers first: %s([...], x)",
                                tree->text, tree->text);
    return check_extremum(checker, tree, function->op, left, argument(checker, tree, 1));
}

static const struct function functions[] = {
/* The check comes first of the members. */
#define FUNCTION(function_name, form, fewest, greatest, takes, gives, help, example, result, ...)  \
    { .name = #function_name, .least = (fewest), .most = (greatest), .check = __VA_ARGS__ },
#include "spec/expressions.def"
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* The stage that does it, by its name or, for texts, by the end of that: lower is string_lower.
 * NULL: none. */
static const struct stage_info *
stage_instead(const char *function)
{
    size_t bytes = strlen(function);
    const struct stage_info *stage = stage_find(function);

    if (stage != NULL)
        return stage->kind == STAGE_CONTENT ? stage : NULL;
    for (uint32_t i = 0; i < stage_count; i++) {
        const char *name = stage_table[i].name;
        size_t name_bytes = strlen(name);

        if (strcmp(stage_table[i].group, "Text") == 0 && name_bytes > bytes &&
            name[name_bytes - bytes - 1] == '_' && strcmp(name + name_bytes - bytes, function) == 0)
            return &stage_table[i];
    }
    return NULL;
}

static struct operand
unknown_function(struct checker *checker, const struct tree *tree)
{
    const struct stage_info *stage = stage_instead(tree->text);
    const char *names[FUNCTIONS], *nearest;

    if (stage != NULL)
        return operand_complain(
            checker, tree->at, "there is no function '%s'; the stage %s does that, before this one",
            tree->text, stage->name);
    for (size_t i = 0; i < FUNCTIONS; i++)
        names[i] = functions[i].name;
    nearest = spec_nearest(tree->text, names, FUNCTIONS);
    return operand_complain(checker, tree->at, "there is no function '%s'%s", tree->text,
                            spec_hint(nearest, "'").text);
}

struct operand
operand_call(struct checker *checker, const struct tree *tree)
{
    const struct function *function = NULL;

    for (size_t i = 0; i < FUNCTIONS && function == NULL; i++)
        if (strcmp(functions[i].name, tree->text) == 0)
            function = &functions[i];
    if (function == NULL)
        return unknown_function(checker, tree);
    if (tree->child_count < function->least || tree->child_count > function->most) {
        if (function->least == function->most)
            return operand_complain(checker, tree->at, "%s takes %u argument%s, not %u", tree->text,
                                    function->least, TND_PLURAL(function->least),
                                    tree->child_count);
        return operand_complain(checker, tree->at, "%s takes %u to %u arguments, not %u",
                                tree->text, function->least, function->most, tree->child_count);
    }
    if (tree->axis != NULL && !function->takes_axis)
        return operand_complain(checker, tree->axis->at, "%s has no axis", tree->text);
    return function->check(checker, tree, function);
}
