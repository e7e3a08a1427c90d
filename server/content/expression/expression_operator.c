/* expression_operator.c - the meaning of operators: on literals as in Python, on columns as in
 * TensorFlow. */
#include "content/expression/operand.h"

#include "core/must.h"

static const char *
dtype_name(const struct checker *checker, struct operand operand)
{
    return tnd_dtype_name(operand_dtype(checker, operand));
}

static const char *
sign_of(enum tree_kind kind)
{
    switch (kind) {
    case TREE_NEGATE:
    case TREE_SUBTRACT:
        return "-";
    case TREE_NOT:
        return "not";
    case TREE_ADD:
        return "+";
    case TREE_MULTIPLY:
        return "*";
    case TREE_DIVIDE:
        return "/";
    case TREE_FLOOR_DIVIDE:
        return "//";
    case TREE_MODULO:
        return "%";
    case TREE_POWER:
        return "**";
    case TREE_AND:
        return "and";
    case TREE_OR:
        return "or";
    case TREE_EQUAL:
        return "==";
    case TREE_NOT_EQUAL:
        return "!=";
    default:
        return "an order comparison";
    }
}

static bool
is_number(tundish_dtype dtype)
{
    return tnd_dtype_is_integer(dtype) || tnd_dtype_is_float(dtype);
}

static bool
is_unsigned(tundish_dtype dtype)
{
    return dtype == TUNDISH_UINT8 || dtype == TUNDISH_UINT16 || dtype == TUNDISH_UINT32 ||
           dtype == TUNDISH_UINT64;
}

static struct operand
refuse_dtype(struct checker *checker, uint32_t at, const char *sign, tundish_dtype dtype)
{
    return operand_complain(checker, at, "%s is not defined for %s", sign, tnd_dtype_name(dtype));
}

/* + on texts concatenates, as tf.strings.join does. */
static struct operand
join(struct checker *checker, uint32_t at, const struct operand *operands)
{
    struct expression_step step = operand_step(STEP_JOIN, at);

    step.type = *operand_type(checker, operands[0]);
    step.inputs[0] = operands[0].step;
    step.inputs[1] = operands[1].step;
    if (!operand_broadcast(checker, at, &step.type, operand_type(checker, operands[1])))
        return operand_bad();
    return operand_emit(checker, &step);
}

/* tf.truediv: integers become floats first, float32 for up to 16 bits and float64 above. */
static struct operand
check_divide(struct checker *checker, uint32_t at, struct operand left, struct operand right)
{
    struct operand operands[2] = { left, right };
    tundish_dtype dtype;

    if (!operand_unify(checker, operands, 2))
        return operand_bad();
    dtype = operand_dtype(checker, operands[0]);
    if (!is_number(dtype))
        return refuse_dtype(checker, at, "/", dtype);
    if (tnd_dtype_is_integer(dtype)) {
        tundish_dtype real = tnd_dtype_bytes(dtype) < 4 ? TUNDISH_FLOAT32 : TUNDISH_FLOAT64;
        bool is_literal = operand_is_literal(right) && right.kind == OPERAND_INTEGER;

        operands[0] = operand_convert(checker, operands[0], real, at);
        operands[1] = is_literal ? operand_as(checker, right, real)
                                 : operand_convert(checker, operands[1], real, at);
    }
    return operand_kernel(checker, VECTOR_DIVIDE, at, operands, 2);
}

/* The powers that TensorFlow's graph optimizer (Grappler) replaces; their rounding differs from
 * pow's. */
static bool
check_known_power(struct checker *checker, uint32_t at, const struct operand *operands,
                  double exponent, struct operand *ret)
{
    struct operand base = operands[0], pair[2] = { base, base };
    uint64_t one = 0;
    tundish_dtype dtype = operand_dtype(checker, base);

    /* Integers are exact either way. */
    if (!tnd_dtype_is_float(dtype))
        return false;
    if (exponent == 1)
        *ret = base;
    else if (exponent == 2)
        *ret = operand_kernel(checker, VECTOR_MULTIPLY, at, pair, 2);
    else if (exponent == 3) {
        pair[1] = operand_kernel(checker, VECTOR_MULTIPLY, at, pair, 2);
        *ret = operand_kernel(checker, VECTOR_MULTIPLY, at, pair, 2);
    } else if (exponent == 0.5)
        *ret = operand_kernel(checker, VECTOR_SQUARE_ROOT, at, pair, 1);
    else if (exponent == -0.5 || exponent == -1) {
        operand_store(checker, operand_number(at, 1), dtype, &one);
        pair[0] = operand_constant(checker, at, dtype, &one);
        if (exponent == -0.5)
            pair[1] = operand_kernel(checker, VECTOR_SQUARE_ROOT, at, &base, 1);
        *ret = operand_kernel(checker, VECTOR_DIVIDE, at, pair, 2);
    } else
        return false;
    return true;
}

static struct operand
check_power(struct checker *checker, uint32_t at, struct operand left, struct operand right)
{
    struct operand operands[2] = { left, right }, known;
    tundish_dtype dtype;

    if (!operand_unify(checker, operands, 2))
        return operand_bad();
    dtype = operand_dtype(checker, operands[0]);
    if (!is_number(dtype) || is_unsigned(dtype))
        return refuse_dtype(checker, at, "**", dtype);
    if (operand_is_scalar_literal(right) &&
        check_known_power(checker, at, operands, right.number, &known))
        return known;
    return operand_kernel(checker, VECTOR_POWER, at, operands, 2);
}

/* Check an arithmetic operator. Two literals are computed here and stay a literal. */
static struct operand
check_arithmetic(struct checker *checker, enum tree_kind kind, uint32_t at, struct operand left,
                 struct operand right)
{
    static const enum vector_op ops[] = {
        [TREE_ADD] = VECTOR_ADD,           [TREE_SUBTRACT] = VECTOR_SUBTRACT,
        [TREE_MULTIPLY] = VECTOR_MULTIPLY, [TREE_FLOOR_DIVIDE] = VECTOR_FLOOR_DIVIDE,
        [TREE_MODULO] = VECTOR_MODULO,
    };
    struct operand operands[2] = { left, right };
    tundish_dtype dtype;

    if (operand_is_scalar_literal(left) && operand_is_scalar_literal(right))
        return operand_fold(checker, kind, at, left, right);
    if (kind == TREE_DIVIDE)
        return check_divide(checker, at, left, right);
    if (kind == TREE_POWER)
        return check_power(checker, at, left, right);
    if (!operand_unify(checker, operands, 2))
        return operand_bad();
    dtype = operand_dtype(checker, operands[0]);
    if (kind == TREE_ADD && dtype == TUNDISH_STRING)
        return join(checker, at, operands);
    /* The one arithmetic operator that TensorFlow has for bools. */
    if (kind == TREE_MULTIPLY && dtype == TUNDISH_BOOL)
        return operand_kernel(checker, VECTOR_AND, at, operands, 2);
    if (!is_number(dtype))
        return refuse_dtype(checker, at, sign_of(kind), dtype);
    return operand_kernel(checker, ops[kind], at, operands, 2);
}

static struct operand
check_comparison(struct checker *checker, enum tree_kind kind, uint32_t at, struct operand left,
                 struct operand right)
{
    bool swaps = kind == TREE_GREATER || kind == TREE_GREATER_EQUAL;
    bool orders = kind != TREE_EQUAL && kind != TREE_NOT_EQUAL;
    struct operand operands[2] = { left, right }, other;
    tundish_dtype dtype;

    if (!operand_unify(checker, operands, 2))
        return operand_bad();
    dtype = operand_dtype(checker, operands[0]);
    if (orders && !is_number(dtype))
        return operand_complain(checker, at, "%ss compare with == and != only",
                                tnd_dtype_name(dtype));
    /* a > b is computed as b < a, which halves the kernels. */
    if (swaps) {
        other = operands[0];
        operands[0] = operands[1];
        operands[1] = other;
    }
    switch (kind) {
    case TREE_LESS:
    case TREE_GREATER:
        return operand_kernel(checker, VECTOR_LESS, at, operands, 2);
    case TREE_LESS_EQUAL:
    case TREE_GREATER_EQUAL:
        return operand_kernel(checker, VECTOR_LESS_EQUAL, at, operands, 2);
    case TREE_EQUAL:
        return operand_kernel(checker, VECTOR_EQUAL, at, operands, 2);
    default:
        return operand_kernel(checker, VECTOR_NOT_EQUAL, at, operands, 2);
    }
}

static struct operand
check_logic(struct checker *checker, enum tree_kind kind, uint32_t at, struct operand *operands,
            uint32_t count)
{
    /* `and`, `or` and `not` compute all operands, as TensorFlow's logical functions do. */
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = operand_default(checker, operands[i]);
        if (operands[i].kind == OPERAND_BAD)
            return operands[i];
        if (operand_dtype(checker, operands[i]) != TUNDISH_BOOL)
            return operand_complain(checker, operands[i].at, "'%s' takes bools, not %s",
                                    sign_of(kind), dtype_name(checker, operands[i]));
    }
    return operand_kernel(checker,
                          kind == TREE_AND  ? VECTOR_AND
                          : kind == TREE_OR ? VECTOR_OR
                                            : VECTOR_NOT,
                          at, operands, count);
}

struct operand
operand_binary(struct checker *checker, enum tree_kind kind, uint32_t at, struct operand left,
               struct operand right)
{
    struct operand operands[2] = { left, right };

    if (left.kind == OPERAND_BAD || right.kind == OPERAND_BAD)
        return operand_bad();
    if (kind == TREE_AND || kind == TREE_OR)
        return check_logic(checker, kind, at, operands, 2);
    if (kind >= TREE_LESS)
        return check_comparison(checker, kind, at, left, right);
    return check_arithmetic(checker, kind, at, left, right);
}

/* Emit where(condition, yes, no). Both branches are computed for every element, as tf.where
 * does. */
struct operand
operand_select(struct checker *checker, uint32_t at, struct operand condition, struct operand yes,
               struct operand no)
{
    struct operand branches[2] = { yes, no }, operands[3];
    struct expression_step step = operand_step(STEP_VECTOR, at);

    condition = operand_default(checker, condition);
    if (condition.kind == OPERAND_BAD || !operand_unify(checker, branches, 2))
        return operand_bad();
    if (operand_dtype(checker, condition) != TUNDISH_BOOL)
        return operand_complain(checker, condition.at, "a condition must be bool, not %s",
                                dtype_name(checker, condition));
    operands[0] = condition;
    operands[1] = branches[0];
    operands[2] = branches[1];
    /* Not operand_kernel: the condition has another dtype than the branches. */
    step.op = VECTOR_SELECT;
    step.type = *operand_type(checker, branches[0]);
    step.kernel = vector_kernel(VECTOR_SELECT, step.type.spec.dtype);
    for (uint32_t i = 0; i < 3; i++) {
        step.inputs[i] = operands[i].step;
        if (!operand_broadcast(checker, at, &step.type, operand_type(checker, operands[i])))
            return operand_bad();
    }
    return operand_emit(checker, &step);
}

static struct operand
check_negate(struct checker *checker, const struct tree *tree, struct operand operand)
{
    tundish_dtype dtype;

    /* Exact: literals are computed in more bits than any dtype has. */
    if (operand.kind == OPERAND_INTEGER)
        return operand_integer(checker, tree->at, -operand.integer);
    if (operand.kind == OPERAND_NUMBER)
        return operand_number(tree->at, -operand.number);
    operand = operand_default(checker, operand);
    if (operand.kind == OPERAND_BAD)
        return operand;
    dtype = operand_dtype(checker, operand);
    if (!is_number(dtype) || is_unsigned(dtype))
        return refuse_dtype(checker, tree->at, "-", dtype);
    return operand_kernel(checker, VECTOR_NEGATE, tree->at, &operand, 1);
}

struct operand
operand_operator(struct checker *checker, const struct tree *tree)
{
    struct operand first = operand_tree(checker, tree->children[0]), second, third;

    if (tree->kind == TREE_NEGATE)
        return check_negate(checker, tree, first);
    if (tree->kind == TREE_PLUS_SIGN)
        return first;
    if (tree->kind == TREE_NOT)
        return first.kind == OPERAND_BAD ? first
                                         : check_logic(checker, TREE_NOT, tree->at, &first, 1);
    second = operand_tree(checker, tree->children[1]);
    if (tree->kind != TREE_CONDITION)
        return operand_binary(checker, tree->kind, tree->at, first, second);
    third = operand_tree(checker, tree->children[2]);
    return operand_select(checker, tree->at, second, first, third);
}
