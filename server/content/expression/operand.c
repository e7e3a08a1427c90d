/* operand.c - resolve names, and compute dtypes and shapes by TensorFlow's rules; emit the
 * steps. */
#include "content/expression/operand.h"

#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/dims.h"
#include "core/bytes.h"
#include "core/memory.h"
#include "core/must.h"

size_t
expression_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

struct operand
operand_bad(void)
{
    return (struct operand){ .kind = OPERAND_BAD };
}

bool
operand_is_literal(struct operand operand)
{
    return operand.kind == OPERAND_INTEGER || operand.kind == OPERAND_NUMBER ||
           operand.kind == OPERAND_VECTOR;
}

const struct value_type *
operand_type(const struct checker *checker, struct operand operand)
{
    must(operand.kind == OPERAND_STEP);
    return &checker->expression->steps[operand.step].type;
}

tundish_dtype
operand_dtype(const struct checker *checker, struct operand operand)
{
    return operand_type(checker, operand)->spec.dtype;
}

/* Append a step. Steps are in order of evaluation, since operands are emitted before their
 * users. */
struct operand
operand_emit(struct checker *checker, const struct expression_step *step)
{
    struct expression *expression = checker->expression;
    int32_t index = (int32_t)expression->step_count;

    expression->steps =
        tnd_realloc(expression->steps, expression->step_count + 1, sizeof *expression->steps);
    expression->steps[expression->step_count++] = *step;
    return (struct operand){ .kind = OPERAND_STEP, .at = step->at, .step = index };
}

struct expression_step
operand_step(enum step_kind kind, uint32_t at)
{
    return (struct expression_step){
        .kind = kind,
        .at = at,
        .inputs = { NO_STEP, NO_STEP, NO_STEP },
        .type = { .structure = -1, .spec = { .kind = TUNDISH_DENSE, .passed_from = -1 } }
    };
}

/* Names may stand for numbers that the run supplies, such as the number of replicas. */
static bool
find_literal(struct checker *checker, const struct tree *tree, struct operand *ret)
{
    const struct expression_config *config = checker->config;
    const char *prefix = tree->kind == TREE_OUTER ? "$" : "";

    for (uint32_t i = 0; i < config->literal_count; i++) {
        const char *name = config->literals[i].name;

        if (strncmp(name, prefix, strlen(prefix)) == 0 &&
            strcmp(name + strlen(prefix), tree->text) == 0) {
            *ret = operand_integer(checker, tree->at, config->literals[i].value);
            return true;
        }
    }
    return false;
}

static struct operand
unknown_name(struct checker *checker, const struct tree *tree, const struct schema *schema)
{
    const char *sign = tree->kind == TREE_OUTER ? "$" : "";
    const char **names = schema != NULL ? schema_names(schema) : NULL;
    const char *nearest = names != NULL ? spec_nearest(tree->text, names, schema->count) : NULL;
    struct operand bad;

    if (nearest != NULL)
        bad = operand_complain(checker, tree->at,
                               "there is no column '%s%s' here; did you mean '%s'?", sign,
                               tree->text, nearest);
    else if (tree->kind == TREE_OUTER)
        bad = operand_complain(checker, tree->at,
                               "there is no '$%s' here: $name is a column of the outer element, "
                               "inside interleave and flat_map",
                               tree->text);
    else
        bad = operand_complain(checker, tree->at, "there is no column '%s' here", tree->text);
    free(names);
    return bad;
}

static struct operand
check_name(struct checker *checker, const struct tree *tree)
{
    bool outer = tree->kind == TREE_OUTER;
    const struct schema *schema = outer ? checker->config->outer : checker->config->input;
    struct expression_step step = operand_step(outer ? STEP_OUTER : STEP_COLUMN, tree->at);
    struct operand literal;
    int32_t index;

    if (find_literal(checker, tree, &literal))
        return literal;
    index = schema == NULL ? -1 : schema_find(schema, tree->text);
    if (index < 0)
        return unknown_name(checker, tree, schema);
    step.column = (uint32_t)index;
    step.type.spec = schema->columns[index];
    step.type.spec.name = NULL;
    step.type.spec.passed_from = -1;
    /* The range of the column's values is not that of the expression's. */
    step.type.spec.has_range = false;
    step.type.is_batched = !outer && checker->config->depth > 0;
    if (step.type.spec.kind != TUNDISH_DENSE)
        /* Ragged and sparse columns combine only with themselves; the structure says which column
         * it is. */
        step.type.structure = outer ? -2 - index : index;
    return operand_emit(checker, &step);
}

void
operand_crosses_rows(struct checker *checker, struct operand operand)
{
    if (operand_type(checker, operand)->is_batched)
        checker->expression->is_batch_wide = true;
}

/* Whether combining the two mixes rows of a batch: broadcasting would align another dimension with
 * the batch's. */
static bool
rows_meet(const struct value_type *a, const struct value_type *b)
{
    /* Shapes are aligned at their last dimensions, so equal ranks align the batches. */
    if (a->is_batched && b->is_batched)
        return a->spec.rank != b->spec.rank;
    if (!a->is_batched && !b->is_batched)
        return false;
    return a->is_batched ? b->spec.rank >= a->spec.rank : a->spec.rank >= b->spec.rank;
}

/* Broadcast two dense shapes. A scalar goes with an unknown rank, nothing else does. */
static bool
broadcast_dense(struct checker *checker, uint32_t at, struct value_type *a,
                const struct value_type *b)
{
    int64_t dims[RANK_MAX];
    char a_text[128], b_text[128];
    uint32_t rank;

    if (a->spec.rank == RANK_UNKNOWN || b->spec.rank == RANK_UNKNOWN) {
        if (a->spec.rank == 0)
            *a = *b;
        else if (b->spec.rank != 0) {
            operand_complain(checker, at,
                             "the number of dimensions is unknown here; use reshape first");
            return false;
        }
        return true;
    }
    if (!dims_broadcast(a->spec.shape, (uint32_t)a->spec.rank, b->spec.shape,
                        (uint32_t)b->spec.rank, dims, &rank)) {
        operand_complain(checker, at, "shapes %s and %s are incompatible",
                         dims_text(a->spec.shape, (uint32_t)a->spec.rank, a_text),
                         dims_text(b->spec.shape, (uint32_t)b->spec.rank, b_text));
        return false;
    }
    if (rows_meet(a, b))
        checker->expression->is_batch_wide = true;
    a->is_batched |= b->is_batched;
    a->spec.rank = (int)rank;
    memcpy(a->spec.shape, dims, sizeof dims);
    return true;
}

/* Broadcast `a` with `b`. The dtype stays. */
bool
operand_broadcast(struct checker *checker, uint32_t at, struct value_type *a,
                  const struct value_type *b)
{
    tundish_dtype dtype = a->spec.dtype;

    if (a->spec.kind == TUNDISH_DENSE && b->spec.kind == TUNDISH_DENSE)
        return broadcast_dense(checker, at, a, b);
    if (a->spec.kind != TUNDISH_DENSE && b->spec.kind != TUNDISH_DENSE) {
        if (a->structure == b->structure)
            return true;
        operand_complain(checker, at, "two ragged or sparse columns cannot be combined");
        return false;
    }
    if ((a->spec.kind == TUNDISH_DENSE ? a : b)->spec.rank != 0) {
        operand_complain(checker, at,
                         "a ragged or sparse column goes only with scalars, not with a %s",
                         (a->spec.kind == TUNDISH_DENSE ? a : b)->is_batched
                             ? "value for each row of a batch: put this stage before batch"
                             : "dense vector");
        return false;
    }
    if (a->spec.kind == TUNDISH_DENSE)
        *a = *b;
    a->spec.dtype = dtype;
    return true;
}

struct operand
operand_convert(struct checker *checker, struct operand operand, tundish_dtype dtype, uint32_t at)
{
    struct expression_step step = operand_step(STEP_CONVERT, at);

    if (operand.kind == OPERAND_BAD || operand_dtype(checker, operand) == dtype)
        return operand;
    step.type = *operand_type(checker, operand);
    if (!convert_is_possible(step.type.spec.dtype, dtype))
        return operand_complain(checker, at, "cannot cast %s to %s%s",
                                tnd_dtype_name(step.type.spec.dtype), tnd_dtype_name(dtype),
                                dtype == TUNDISH_STRING                  ? ": use as_string"
                                : step.type.spec.dtype == TUNDISH_STRING ? ": use string_to_number"
                                                                         : "");
    step.type.spec.dtype = dtype;
    step.inputs[0] = operand.step;
    return operand_emit(checker, &step);
}

static bool
is_half(tundish_dtype dtype)
{
    return dtype == TUNDISH_FLOAT16 || dtype == TUNDISH_BFLOAT16;
}

static tundish_dtype
result_dtype(enum vector_op op, tundish_dtype dtype)
{
    switch (op) {
    case VECTOR_LESS:
    case VECTOR_LESS_EQUAL:
    case VECTOR_EQUAL:
    case VECTOR_NOT_EQUAL:
    case VECTOR_IS_NAN:
    case VECTOR_IS_FINITE:
        return TUNDISH_BOOL;
    case VECTOR_LENGTH:
        return TUNDISH_INT32;
    default:
        return dtype;
    }
}

/* Emit a kernel over the common shape of its operands. */
static struct operand
emit_vector(struct checker *checker, enum vector_op op, uint32_t at, tundish_dtype dtype,
            const struct operand *operands, uint32_t count)
{
    struct expression_step step = operand_step(STEP_VECTOR, at);

    step.op = op;
    step.kernel = vector_kernel(op, dtype);
    must(step.kernel != NULL);
    step.type = *operand_type(checker, operands[0]);
    for (uint32_t i = 0; i < count; i++) {
        step.inputs[i] = operands[i].step;
        if (i > 0 &&
            !operand_broadcast(checker, at, &step.type, operand_type(checker, operands[i])))
            return operand_bad();
    }
    step.type.spec.dtype = result_dtype(op, dtype);
    return operand_emit(checker, &step);
}

/* Emit a kernel. Halves are computed in float32 and rounded after each operation, as by Eigen. */
struct operand
operand_kernel(struct checker *checker, enum vector_op op, uint32_t at,
               const struct operand *operands, uint32_t count)
{
    tundish_dtype dtype = operand_dtype(checker, operands[0]);
    struct operand wide[STEP_INPUTS_MAX], result;

    if (!is_half(dtype))
        return emit_vector(checker, op, at, dtype, operands, count);
    if (op == VECTOR_FLOOR_DIVIDE) { /* two operations to Eigen: the quotient is rounded, too */
        result = operand_kernel(checker, VECTOR_DIVIDE, at, operands, count);
        return result.kind == OPERAND_BAD ? result
                                          : operand_kernel(checker, VECTOR_FLOOR, at, &result, 1);
    }
    for (uint32_t i = 0; i < count; i++)
        wide[i] = operand_convert(checker, operands[i], TUNDISH_FLOAT32, at);
    result = emit_vector(checker, op, at, TUNDISH_FLOAT32, wide, count);
    if (result.kind == OPERAND_BAD || result_dtype(op, dtype) != dtype)
        return result;
    return operand_convert(checker, result, dtype, at);
}

struct operand
operand_tree(struct checker *checker, const struct tree *tree)
{
    struct operand result;

    switch (tree->kind) {
    case TREE_INTEGER:
        result = operand_integer(checker, tree->at, tree->integer);
        break;
    case TREE_NUMBER:
        result = operand_number(tree->at, tree->number);
        break;
    case TREE_TEXT:
        result = operand_text(checker, tree);
        break;
    case TREE_COLUMN:
    case TREE_OUTER:
        result = check_name(checker, tree);
        break;
    case TREE_CALL:
        result = operand_call(checker, tree);
        break;
    case TREE_VECTOR:
        result = operand_vector(checker, tree);
        break;
    case TREE_INDEX:
        result = operand_index(checker, tree);
        break;
    case TREE_SLICE:
    case TREE_ELLIPSIS:
    case TREE_OMITTED:
        result = operand_complain(checker, tree->at, "this is allowed only inside [...]");
        break;
    default:
        result = operand_operator(checker, tree);
    }
    if (result.kind != OPERAND_BAD)
        result.at = tree->at;
    return result;
}

tundish_status
expression_check(const struct expression_config *config, const struct tree *root,
                 struct expression *expression)
{
    struct checker checker = { .config = config, .expression = expression };
    struct operand result = operand_default(&checker, operand_tree(&checker, root));

    if (checker.status != TUNDISH_OK)
        return checker.status;
    must(result.kind == OPERAND_STEP);
    expression->result = result.step;
    if (config->depth > 0 && !operand_type(&checker, result)->is_batched)
        expression->is_batch_wide = true; /* its first dimension, if any, is not the batch's */
    return TUNDISH_OK;
}
