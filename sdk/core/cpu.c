/* cpu.c - the processor is asked once. */
#include "core/cpu.h"

/* 0 until first asked for; else one more than the level. Threads that come together find the same.
 */
static _Atomic int in_use;

enum tnd_cpu_level
tnd_cpu_best(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt") ||
        !__builtin_cpu_supports("pclmul"))
        return TND_CPU_PORTABLE;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi"))
        return TND_CPU_SSE42;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("bmi2"))
        return TND_CPU_AVX2;
    if (!__builtin_cpu_supports("avx512vbmi2") || !__builtin_cpu_supports("vpclmulqdq"))
        return TND_CPU_AVX512;
    return TND_CPU_VBMI2;
#else
    return TND_CPU_PORTABLE;
#endif
}

enum tnd_cpu_level
tnd_cpu(void)
{
    int known = atomic_load_explicit(&in_use, memory_order_relaxed);

    if (__builtin_expect(known == 0, 0)) {
        known = (int)tnd_cpu_best() + 1;
        atomic_store_explicit(&in_use, known, memory_order_relaxed);
    }
    return (enum tnd_cpu_level)(known - 1);
}

bool
tnd_cpu_use(enum tnd_cpu_level level)
{
    if (level > tnd_cpu_best())
        return false;
    atomic_store_explicit(&in_use, (int)level + 1, memory_order_relaxed);
    return true;
}
