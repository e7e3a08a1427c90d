/* expression_literal.c - literals, which have no dtype until they meet an operand that has one.
 * Integers are computed in 128 bits, so that a result beyond 64 is refused and does not wrap. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "content/expression/operand.h"
#include "core/bytes.h"
#include "core/memory.h"

#define INTEGER_END ((tree_integer)1 << 64)

bool
operand_is_scalar_literal(struct operand operand)
{
    return operand.kind == OPERAND_INTEGER || operand.kind == OPERAND_NUMBER;
}

struct operand
operand_integer(struct checker *checker, uint32_t at, tree_integer value)
{
    if (value >= INTEGER_END || value <= -INTEGER_END)
        return operand_complain(checker, at, "an integer that does not fit 64 bits");
    return (struct operand){
        .kind = OPERAND_INTEGER, .at = at, .integer = value, .number = (double)value
    };
}

struct operand
operand_number(uint32_t at, double value)
{
    return (struct operand){ .kind = OPERAND_NUMBER, .at = at, .number = value };
}

/* Whether an integer is in the range of an integer dtype. */
static bool
fits(tree_integer value, tundish_dtype dtype)
{
    unsigned bits = (unsigned)tnd_dtype_bytes(dtype) * 8;

    switch (dtype) {
    case TUNDISH_UINT8:
    case TUNDISH_UINT16:
    case TUNDISH_UINT32:
    case TUNDISH_UINT64:
        return value >= 0 && value < (tree_integer)1 << bits;
    default:
        return value >= -((tree_integer)1 << (bits - 1)) && value < (tree_integer)1 << (bits - 1);
    }
}

/* The dtype that TensorFlow gives a Python number: float32, or int32 if it fits. */
static tundish_dtype
default_dtype(struct operand operand)
{
    if (operand.kind == OPERAND_NUMBER)
        return TUNDISH_FLOAT32;
    return fits(operand.integer, TUNDISH_INT32)   ? TUNDISH_INT32
           : fits(operand.integer, TUNDISH_INT64) ? TUNDISH_INT64
                                                  : TUNDISH_UINT64;
}

/* Why an integer is not a value of it; the dtype's name follows. */
static const char *
why_not(tundish_dtype dtype)
{
    if (dtype == TUNDISH_STRING)
        return "is a number: quote it, or use the stage string_to_number before; the other operand "
               "is a ";
    if (dtype == TUNDISH_BOOL)
        return "is a number: use cast(..., int64) on the other operand, which is a ";
    return "does not fit ";
}

/* Store a literal as one value of `dtype`, or complain that it does not fit. */
bool
operand_store(struct checker *checker, struct operand operand, tundish_dtype dtype, void *ret_value)
{
    uint64_t bits = (uint64_t)operand.integer;

    if (operand.kind == OPERAND_NUMBER && !tnd_dtype_is_float(dtype)) {
        operand_complain(checker, operand.at,
                         "%.9g is not a valid %s, the dtype of the other operand", operand.number,
                         tnd_dtype_name(dtype));
        return false;
    }
    if (tnd_dtype_is_float(dtype)) {
        /* Integers round once, directly to the dtype: through double they could round twice. */
        float single =
            operand.kind == OPERAND_INTEGER ? (float)operand.integer : (float)operand.number;

        if (dtype == TUNDISH_FLOAT64)
            memcpy(ret_value, &operand.number, sizeof operand.number);
        else
            convert_values(dtype, ret_value, TUNDISH_FLOAT32, &single, 1);
        return true;
    }
    if (dtype == TUNDISH_BOOL || dtype == TUNDISH_STRING || !fits(operand.integer, dtype)) {
        tree_integer value = operand.integer;

        operand_complain(checker, operand.at, "%s%llu %s%s", value < 0 ? "-" : "",
                         (unsigned long long)(value < 0 ? -value : value), why_not(dtype),
                         tnd_dtype_name(dtype));
        return false;
    }
    memcpy(ret_value, &bits, tnd_dtype_bytes(dtype)); /* little-endian: the low bytes first */
    return true;
}

/* Repeat a constant over a whole block, so that kernels need no variant for scalars. */
static void *
block_of(const void *value, size_t bytes)
{
    uint8_t *block = tnd_zalloc(BLOCK_VALUES, bytes);

    for (size_t i = 0; i < BLOCK_VALUES; i++)
        memcpy(block + i * bytes, value, bytes);
    return block;
}

struct operand
operand_constant(struct checker *checker, uint32_t at, tundish_dtype dtype, const void *value)
{
    struct expression_step step = operand_step(STEP_CONSTANT, at);

    step.type.spec.dtype = dtype;
    step.constant = block_of(value, expression_value_bytes(dtype));
    return operand_emit(checker, &step);
}

struct operand
operand_text(struct checker *checker, const struct tree *tree)
{
    struct expression_step step = operand_step(STEP_CONSTANT, tree->at);
    struct byte_view view = { .size = tree->text_bytes };

    step.type.spec.dtype = TUNDISH_STRING;
    step.text = tnd_zalloc(tree->text_bytes + 64, 1); /* parsers may read 64 bytes past the end */
    memcpy(step.text, tree->text, tree->text_bytes);
    view.data = (const uint8_t *)step.text;
    step.constant = block_of(&view, sizeof view);
    return operand_emit(checker, &step);
}

/* Whether an item is dense and has the first one's shape, which must be known. */
static bool
can_be_stacked(const struct column_spec *item, const struct column_spec *first)
{
    if (item->kind != TUNDISH_DENSE || item->rank < 0 || item->rank >= RANK_MAX ||
        item->rank != first->rank)
        return false;
    for (int k = 0; k < item->rank; k++)
        if (item->shape[k] < 0 || item->shape[k] != first->shape[k])
            return false;
    return true;
}

/* Stack items of one dtype and shape along a new first dimension. */
static struct operand
stack(struct checker *checker, uint32_t at, struct operand *items, uint32_t count)
{
    struct expression_step step = operand_step(STEP_STACK, at);
    const struct column_spec *first = count > 0 ? &operand_type(checker, items[0])->spec : NULL;

    for (uint32_t i = 0; i < count; i++)
        if (!can_be_stacked(&operand_type(checker, items[i])->spec, first))
            return operand_complain(checker, items[i].at,
                                    "the items of [...] must be scalars in each element, or of "
                                    "one shape that is known");
    step.more = tnd_zalloc(count, sizeof *step.more);
    step.more_count = count;
    step.type.spec.dtype = count > 0 ? first->dtype : TUNDISH_FLOAT32;
    step.type.spec.rank = count > 0 ? first->rank + 1 : 1;
    step.type.spec.shape[0] = count;
    for (int k = 1; k < step.type.spec.rank; k++)
        step.type.spec.shape[k] = first->shape[k - 1];
    for (uint32_t i = 0; i < count; i++) {
        step.more[i] = items[i].step;
        operand_crosses_rows(checker, items[i]);
    }
    return operand_emit(checker, &step);
}

static tundish_dtype common_default(struct checker *checker, const struct operand *operands,
                                    uint32_t count);

/* Vectors of literals among literals take the dtype common to all. */
static bool
unify_literals(struct checker *checker, struct operand *items, uint32_t count)
{
    tundish_dtype dtype;
    bool has_vector = false;

    for (uint32_t i = 0; i < count; i++) {
        if (items[i].kind == OPERAND_STEP)
            return true;
        has_vector = has_vector || items[i].kind == OPERAND_VECTOR;
    }
    if (!has_vector)
        return true;
    dtype = common_default(checker, items, count);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = operand_as(checker, items[i], dtype);
        if (items[i].kind == OPERAND_BAD)
            return false;
    }
    return true;
}

/* Make a vector; dtype 0: its items decide. */
static struct operand
vector_of(struct checker *checker, const struct tree *tree, tundish_dtype dtype)
{
    struct operand *items = tnd_zalloc(tree->child_count + 1, sizeof *items);
    struct operand result = operand_bad();
    bool ok = true;

    for (uint32_t i = 0; i < tree->child_count; i++) {
        items[i] = operand_tree(checker, tree->children[i]);
        if (dtype != 0 && operand_is_literal(items[i]))
            items[i] = operand_as(checker, items[i], dtype);
        ok &= items[i].kind != OPERAND_BAD;
    }
    if (ok && unify_literals(checker, items, tree->child_count) &&
        operand_unify(checker, items, tree->child_count))
        result = stack(checker, tree->at, items, tree->child_count);
    free(items);
    return result;
}

/* Whether a vector contains only numbers, or vectors of numbers. */
static bool
has_only_literals(const struct tree *vector)
{
    for (uint32_t i = 0; i < vector->child_count; i++) {
        const struct tree *item = vector->children[i];

        while ((item->kind == TREE_NEGATE || item->kind == TREE_PLUS_SIGN) && item->child_count > 0)
            item = item->children[0];
        if (item->kind == TREE_VECTOR ? !has_only_literals(item)
                                      : item->kind != TREE_INTEGER && item->kind != TREE_NUMBER)
            return false;
    }
    return true;
}

struct operand
operand_vector(struct checker *checker, const struct tree *tree)
{
    if (!has_only_literals(tree))
        return vector_of(checker, tree, (tundish_dtype)0);
    return (struct operand){ .kind = OPERAND_VECTOR, .at = tree->at, .tree = tree };
}

struct operand
operand_as(struct checker *checker, struct operand operand, tundish_dtype dtype)
{
    uint64_t value[2] = { 0 };

    if (operand.kind == OPERAND_STEP || operand.kind == OPERAND_BAD)
        return operand;
    if (operand.kind == OPERAND_VECTOR)
        return vector_of(checker, operand.tree, dtype);
    if (!operand_store(checker, operand, dtype, value))
        return operand_bad();
    return operand_constant(checker, operand.at, dtype, value);
}

struct operand
operand_default(struct checker *checker, struct operand operand)
{
    if (operand.kind == OPERAND_VECTOR)
        return vector_of(checker, operand.tree, (tundish_dtype)0);
    if (!operand_is_literal(operand))
        return operand;
    return operand_as(checker, operand, default_dtype(operand));
}

/* The dtype that a vector of literals has by itself. */
static tundish_dtype
vector_default(struct checker *checker, const struct tree *tree)
{
    struct operand *items = tnd_zalloc((size_t)tree->child_count + 1, sizeof *items);
    tundish_dtype dtype;

    for (uint32_t i = 0; i < tree->child_count; i++)
        items[i] = operand_tree(checker, tree->children[i]);
    dtype = common_default(checker, items, tree->child_count);
    free(items);
    return dtype;
}

/* The dtype common to several literals: a float if any is one, else the widest. */
static tundish_dtype
common_default(struct checker *checker, const struct operand *operands, uint32_t count)
{
    tundish_dtype dtype = TUNDISH_INT32;

    for (uint32_t i = 0; i < count; i++) {
        tundish_dtype own = operands[i].kind == OPERAND_VECTOR
                                ? vector_default(checker, operands[i].tree)
                                : default_dtype(operands[i]);

        if (own == TUNDISH_FLOAT32 || (dtype != TUNDISH_FLOAT32 && own != TUNDISH_INT32))
            dtype = own;
    }
    return dtype;
}

bool
operand_unify(struct checker *checker, struct operand *operands, uint32_t count)
{
    const struct operand *typed = NULL;
    tundish_dtype dtype;

    for (uint32_t i = 0; i < count; i++)
        if (operands[i].kind == OPERAND_BAD)
            return false;
    for (uint32_t i = 0; i < count && typed == NULL; i++)
        if (operands[i].kind == OPERAND_STEP)
            typed = &operands[i];
    /* A vector of literals that meets only literals decides by its own items. */
    for (uint32_t i = 0; i < count && typed == NULL; i++)
        if (operands[i].kind == OPERAND_VECTOR) {
            operands[i] = operand_default(checker, operands[i]);
            if (operands[i].kind == OPERAND_BAD)
                return false;
            typed = &operands[i];
        }
    dtype =
        typed != NULL ? operand_dtype(checker, *typed) : common_default(checker, operands, count);
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = operand_as(checker, operands[i], dtype);
        if (operands[i].kind == OPERAND_BAD)
            return false;
        if (operand_dtype(checker, operands[i]) != dtype) {
            operand_complain(checker, operands[i].at,
                             "%s meets %s here: dtypes are not mixed, use cast(..., dtype)",
                             tnd_dtype_name(dtype),
                             tnd_dtype_name(operand_dtype(checker, operands[i])));
            return false;
        }
    }
    return true;
}

/* Python's //, which rounds down; C truncates. */
static tree_integer
floor_divide(tree_integer a, tree_integer b)
{
    tree_integer quotient = a / b;

    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

/* Python's ** on literals. Large exponents are only possible for 0, 1 and -1, where the parity
 * decides, so the loop stays short. */
static struct operand
fold_power(struct checker *checker, uint32_t at, struct operand left, struct operand right)
{
    tree_integer power = 1;

    if (left.kind != OPERAND_INTEGER || right.kind != OPERAND_INTEGER || right.integer < 0)
        return operand_number(at, pow(left.number, right.number));
    if (right.integer > 64 && (left.integer > 1 || left.integer < -1))
        return operand_complain(checker, at, "an integer that does not fit 64 bits");
    for (tree_integer i = right.integer > 64 ? right.integer % 2 + 2 : right.integer; i > 0; i--) {
        power *= left.integer;
        if (power >= INTEGER_END || power <= -INTEGER_END)
            return operand_complain(checker, at, "an integer that does not fit 64 bits");
    }
    return operand_integer(checker, at, power);
}

static struct operand
fold_integers(struct checker *checker, enum tree_kind kind, uint32_t at, tree_integer a,
              tree_integer b)
{
    /* Two factors of 64 bits or more could overflow the 128 bits of the product. */
    bool a_is_long = a >= INTEGER_END / 2 || a < -INTEGER_END / 2;
    bool b_is_long = b >= INTEGER_END / 2 || b < -INTEGER_END / 2;

    switch (kind) {
    case TREE_ADD:
        return operand_integer(checker, at, a + b);
    case TREE_SUBTRACT:
        return operand_integer(checker, at, a - b);
    case TREE_MULTIPLY:
        if (a_is_long && b_is_long)
            return operand_complain(checker, at, "an integer that does not fit 64 bits");
        return operand_integer(checker, at, a * b);
    case TREE_FLOOR_DIVIDE:
        return operand_integer(checker, at, floor_divide(a, b));
    default:
        return operand_integer(checker, at, a - floor_divide(a, b) * b);
    }
}

struct operand
operand_fold(struct checker *checker, enum tree_kind kind, uint32_t at, struct operand left,
             struct operand right)
{
    bool divides = kind == TREE_DIVIDE || kind == TREE_FLOOR_DIVIDE || kind == TREE_MODULO;
    double a = left.number, b = right.number, quotient;

    if (divides && b == 0)
        return operand_complain(checker, at, "division by zero");
    if (kind == TREE_POWER)
        return fold_power(checker, at, left, right);
    if (left.kind == OPERAND_INTEGER && right.kind == OPERAND_INTEGER && kind != TREE_DIVIDE)
        return fold_integers(checker, kind, at, left.integer, right.integer);
    quotient = divides ? floor(a / b) : 0;
    switch (kind) {
    case TREE_ADD:
        return operand_number(at, a + b);
    case TREE_SUBTRACT:
        return operand_number(at, a - b);
    case TREE_MULTIPLY:
        return operand_number(at, a * b);
    case TREE_DIVIDE:
        return operand_number(at, a / b);
    case TREE_FLOOR_DIVIDE:
        return operand_number(at, quotient);
    default:
        /* Python's % has the sign of the divisor. */
        a = fmod(a, b);
        return operand_number(at, a != 0 && (a < 0) != (b < 0) ? a + b : a);
    }
}
