/* text_ids_pad.c - lists of ids to rows of given lengths: cut, or filled up with zeros. */
#include <string.h>

#include "content/text/text_ids.h"
#include "core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static int64_t
length_at(const int64_t *splits, int64_t list)
{
    return splits[list + 1] - splits[list];
}

static void
pad_portably(const struct id_lists *lists, int64_t list_count, const int64_t *splits, int64_t *to)
{
    for (int64_t l = 0; l < list_count; l++) {
        const int64_t length = length_at(splits, l), own = length_at(lists->splits, l);
        const int64_t count = own < length ? own : length;

        memcpy(&to[splits[l]], &lists->ids[lists->splits[l]], (size_t)count * sizeof *to);
        memset(&to[splits[l] + count], 0, (size_t)(length - count) * sizeof *to);
    }
}

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512dq,bmi2")))

static AVX512 inline __mmask8
first_of_eight(int64_t count)
{
    return (__mmask8)_bzhi_u32(0xFF, count < 0 ? 0 : count < 8 ? (unsigned)count : 8);
}

/* Eight ids at a time, as often for each row of one length, however many ids it has: a copy of as
 * many bytes as there are would take its branches by a length that nobody can guess. */
static AVX512 void
pad_avx512(const struct id_lists *lists, int64_t list_count, const int64_t *splits, int64_t *to)
{
    for (int64_t l = 0; l < list_count; l++) {
        const int64_t length = length_at(splits, l), own = length_at(lists->splits, l);
        const int64_t *ids = lists->ids + lists->splits[l];
        int64_t *row = to + splits[l];
        int64_t at = 0;

        for (; at + 8 <= length; at += 8)
            _mm512_storeu_si512(row + at,
                                _mm512_maskz_loadu_epi64(first_of_eight(own - at), ids + at));
        if (at < length)
            _mm512_mask_storeu_epi64(row + at, first_of_eight(length - at),
                                     _mm512_maskz_loadu_epi64(first_of_eight(own - at), ids + at));
    }
}
#endif

void
text_ids_pad(const struct id_lists *lists, int64_t list_count, const int64_t *splits, int64_t *to)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512)) {
        pad_avx512(lists, list_count, splits, to);
        return;
    }
#endif
    pad_portably(lists, list_count, splits, to);
}
