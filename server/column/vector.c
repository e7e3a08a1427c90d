/* vector.c - which of the two sets of kernels this CPU takes. */
#include "column/vector.h"

#include <stdbool.h>

enum { DTYPES = TUNDISH_STRING + 1 };

extern const struct vector_kernel vector_kernels_portable[VECTOR_OP_COUNT][DTYPES];
#ifdef VECTOR_HAS_AVX2
extern const struct vector_kernel vector_kernels_avx2[VECTOR_OP_COUNT][DTYPES];
#endif

static bool
has_avx2(void)
{
#ifdef VECTOR_HAS_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

const struct vector_kernel *
vector_kernel_of_set(unsigned set, enum vector_op op, tundish_dtype dtype)
{
    const struct vector_kernel *kernel = NULL;

    if (set == 0)
        kernel = &vector_kernels_portable[op][dtype];
#ifdef VECTOR_HAS_AVX2
    else if (set == 1 && has_avx2())
        kernel = &vector_kernels_avx2[op][dtype];
#endif
    return kernel == NULL || kernel->run == NULL ? NULL : kernel;
}

const struct vector_kernel *
vector_kernel(enum vector_op op, tundish_dtype dtype)
{
    return vector_kernel_of_set(has_avx2() ? 1 : 0, op, dtype);
}
