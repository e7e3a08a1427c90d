/* vector.c - which of the two sets of kernels this CPU takes. */
#include "column/vector.h"

#include "core/cpu.h"

enum { DTYPES = TUNDISH_STRING + 1 };

extern const struct vector_kernel vector_kernels_portable[VECTOR_OP_COUNT][DTYPES];
#ifdef VECTOR_HAS_AVX2
extern const struct vector_kernel vector_kernels_avx2[VECTOR_OP_COUNT][DTYPES];
#endif

const struct vector_kernel *
vector_kernel(enum vector_op op, tundish_dtype dtype)
{
    const struct vector_kernel *kernel = &vector_kernels_portable[op][dtype];

#ifdef VECTOR_HAS_AVX2
    if (tnd_cpu_has(TND_CPU_AVX2))
        kernel = &vector_kernels_avx2[op][dtype];
#endif
    return kernel->run == NULL ? NULL : kernel;
}
