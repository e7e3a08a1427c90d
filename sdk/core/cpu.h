/* cpu.h - the instruction sets of this processor. Code that exists in several versions takes the
 * one for the highest level available. The results are the same at every level.
 */
#ifndef TND_CORE_CPU_H
#define TND_CORE_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

/* Each has all that those before it have. */
enum tnd_cpu_level {
    TND_CPU_PORTABLE,
    TND_CPU_SSE42,  /* and popcnt, pclmul */
    TND_CPU_AVX2,   /* and bmi */
    TND_CPU_AVX512, /* f, bw, dq, vl, and bmi2 */
    TND_CPU_VBMI2,  /* and vpclmulqdq */
    TND_CPU_LEVELS
};

/* The level in use. Any thread. */
enum tnd_cpu_level tnd_cpu(void);

static inline bool
tnd_cpu_has(enum tnd_cpu_level level)
{
    return tnd_cpu() >= level;
}

/* For tests: do as if there were nothing beyond `level`. False, and nothing is done, if this
 * processor has not as much. */
bool tnd_cpu_use(enum tnd_cpu_level level);

/* For tests: what there really is. */
enum tnd_cpu_level tnd_cpu_best(void);

#endif
