/* vector.h - arithmetic on arrays: one kernel for each operation and dtype.
 *
 * Every kernel exists twice, compiled for any CPU and for AVX2, from the same source without
 * contraction, so that the bits do not depend on the machine. They run between flush_begin
 * and flush_end (flush.h).
 */
#ifndef COLUMN_VECTOR_H
#define COLUMN_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"

/* Operands have the kernel's dtype unless said otherwise. */
enum vector_op {
    VECTOR_ADD,
    VECTOR_SUBTRACT,
    VECTOR_MULTIPLY,
    VECTOR_DIVIDE,       /* floats */
    VECTOR_FLOOR_DIVIDE, /* integers: a divisor of 0 is bad */
    VECTOR_MODULO,       /* the divisor's sign; integers: a divisor of 0 is bad */
    VECTOR_POWER,        /* integers: a negative exponent is bad */
    VECTOR_MINIMUM,      /* NaN if either is; the first of equals */
    VECTOR_MAXIMUM,
    VECTOR_LESS, /* these four give bool */
    VECTOR_LESS_EQUAL,
    VECTOR_EQUAL, /* also bool and string */
    VECTOR_NOT_EQUAL,
    VECTOR_AND, /* bool */
    VECTOR_OR,
    VECTOR_NOT,
    VECTOR_NEGATE,
    VECTOR_ABSOLUTE,
    VECTOR_SIGN,
    VECTOR_SQUARE_ROOT,
    VECTOR_EXP,
    VECTOR_LOG,
    VECTOR_LOG1P,
    VECTOR_EXPM1,
    VECTOR_FLOOR,
    VECTOR_CEIL,
    VECTOR_ROUND, /* half to even */
    VECTOR_SIN,
    VECTOR_COS,
    VECTOR_TANH,
    VECTOR_SIGMOID,
    VECTOR_IS_NAN, /* bool */
    VECTOR_IS_FINITE,
    VECTOR_LENGTH, /* string: bytes, int32 */
    VECTOR_SELECT, /* a: bool; b where true, else c; any dtype */
    VECTOR_OP_COUNT
};

struct vector_kernel {
    /* out[i] = a[i] op b[i]. Returns how many values are bad; their results have no
     * meaning. Unused operands are NULL. out must not overlap the others. */
    size_t (*run)(void *out, const void *a, const void *b, const void *c, size_t count);
};

/* The kernel for this CPU, or NULL: the operation is not defined for the dtype. The 16-bit floats
 * have none but SELECT: they are computed in float32. */
const struct vector_kernel *vector_kernel(enum vector_op op, tundish_dtype dtype);

#endif
