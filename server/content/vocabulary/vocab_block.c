/* vocab_block.c - the first pass of a lookup: which bucket each term would be in. */
#include "content/vocabulary/vocab_block.h"

#include "core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Start to load the home bucket, as far as the second cache: in the first it would take the place
 * of the terms themselves. */
static inline void
prefetch_home(const struct vocab_block *block, size_t i)
{
    __builtin_prefetch(block->homes[i], 0, 2);
}

static inline void
set_home(const struct vocab *vocab, struct vocab_block *block, size_t i, uint64_t hash)
{
    block->homes[i] = vocab_bucket_of(vocab, hash);
    prefetch_home(block, i);
}

static void
ask_one_by_one(const struct vocab *vocab, const struct byte_view *terms, size_t begin, size_t end,
               struct vocab_block *block)
{
    for (size_t i = begin; i < end; i++) {
        struct byte_view term = terms[i];
        uint64_t hash;

        if (term.size < block->shortest)
            block->shortest = term.size;
        if (__builtin_expect(vocab_is_short(term), 1)) {
            block->keys[i] = vocab_short_key(term);
            hash = vocab_hash_short(block->keys[i], vocab->seed);
        } else {
            hash = vocab_hash_long(term, vocab->seed);
            block->keys[i] = vocab_long_key(hash);
            block->longs[block->long_count++] = (uint16_t)i;
        }
        set_home(vocab, block, i, hash);
    }
}

void
vocab_block_ask_integers(const struct vocab *vocab, const int64_t *terms, struct vocab_block *block)
{
    block->long_count = 0;
    for (size_t i = 0; i < block->count; i++) {
        block->keys[i] = (uint64_t)terms[i];
        set_home(vocab, block, i, vocab_hash_short(block->keys[i], vocab->seed));
    }
}

#if defined(__x86_64__) && VOCAB_READS_BEYOND
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* Eight terms. */
struct eight {
    __m512i words; /* eight bytes from where each begins */
    __m512i sizes;
};

/* Returns those that are over 8 bytes, or end where eight bytes may not be read. */
AVX512 static inline __mmask8
load_eight(const struct byte_view *terms, struct eight *ret_eight)
{
    static const uint8_t nothing[8] = { 0 };
    const __m512i first = _mm512_loadu_si512(terms), second = _mm512_loadu_si512(terms + 4);
    const __m512i data =
        _mm512_permutex2var_epi64(first, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), second);
    const __m512i sizes =
        _mm512_permutex2var_epi64(first, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), second);
    const __mmask8 at_end = _mm512_cmpgt_epu64_mask(_mm512_and_si512(data, _mm512_set1_epi64(4095)),
                                                    _mm512_set1_epi64(4096 - 8));
    const __mmask8 some = _mm512_test_epi64_mask(sizes, sizes); /* the others may lie nowhere */
    const uint8_t *from[8];

    _mm512_storeu_si512(from,
                        _mm512_mask_mov_epi64(_mm512_set1_epi64((long long)(uintptr_t)nothing),
                                              some & (__mmask8)~at_end, data));
    ret_eight->sizes = sizes;
    ret_eight->words = _mm512_setr_epi64(
        (long long)load_u64(from[0]), (long long)load_u64(from[1]), (long long)load_u64(from[2]),
        (long long)load_u64(from[3]), (long long)load_u64(from[4]), (long long)load_u64(from[5]),
        (long long)load_u64(from[6]), (long long)load_u64(from[7]));
    return (_mm512_cmpgt_epu64_mask(sizes, _mm512_set1_epi64(8)) | at_end) & some;
}

/* As vocab_short_key. Adds what is not short to `left_out`: terms of 8 bytes with a small last
 * one. */
AVX512 static inline __m512i
keys_of(const struct eight *eight, __mmask8 *left_out)
{
    /* By sizes up to 7; 8 is taken for 0. */
    const __m512i masks = _mm512_setr_epi64(0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF,
                                            0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF);
    const __m512i lengths = _mm512_setr_epi64(1LL << 56, 2LL << 56, 3LL << 56, 4LL << 56, 5LL << 56,
                                              6LL << 56, 7LL << 56, 8LL << 56);
    const __mmask8 full = _mm512_cmpeq_epi64_mask(eight->sizes, _mm512_set1_epi64(8));
    const __m512i word = _mm512_or_si512(
        _mm512_and_si512(eight->words, _mm512_permutexvar_epi64(eight->sizes, masks)),
        _mm512_permutexvar_epi64(eight->sizes, lengths));

    *left_out |= _mm512_mask_cmplt_epu64_mask(full, eight->words, _mm512_set1_epi64(9LL << 56));
    return _mm512_mask_mov_epi64(word, full, eight->words);
}

/* As vocab_bucket_of. */
AVX512 static inline __m512i
homes_of(const struct vocab *vocab, __m512i keys)
{
    const __m512i hashes = _mm512_mullo_epi64(keys, _mm512_set1_epi64((long long)vocab->seed));
    const __m512i scaled = _mm512_mul_epu32(_mm512_srli_epi64(hashes, 32),
                                            _mm512_set1_epi64((long long)vocab->bucket_count));
    const __m512i homes = _mm512_slli_epi64(_mm512_srli_epi64(scaled, 32), 6);

    _Static_assert(sizeof(struct vocab_bucket) == 1 << 6, "as it is shifted");
    return _mm512_add_epi64(homes, _mm512_set1_epi64((long long)(uintptr_t)vocab->buckets));
}

/* Returns those that are left out. */
AVX512 static inline __mmask8
ask_eight(const struct vocab *vocab, const struct byte_view *terms, size_t at,
          struct vocab_block *block, __m512i *shortest)
{
    struct eight eight;
    __mmask8 left_out = load_eight(terms + at, &eight);
    const __m512i keys = keys_of(&eight, &left_out);

    *shortest = _mm512_min_epu64(*shortest, eight.sizes);
    _mm512_storeu_si512(block->keys + at, keys);
    _mm512_storeu_si512(block->homes + at, homes_of(vocab, keys));
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++)
        prefetch_home(block, at + i);
    return left_out;
}

AVX512 static void
ask_avx512(const struct vocab *vocab, const struct byte_view *terms, struct vocab_block *block)
{
    __m512i shortest = _mm512_set1_epi64(-1);
    size_t i = 0;

    for (; i + 8 <= block->count; i += 8) {
        unsigned left_out = ask_eight(vocab, terms, i, block, &shortest);

        for (; __builtin_expect(left_out != 0, 0); left_out &= left_out - 1) {
            size_t which = i + (size_t)__builtin_ctz(left_out);

            ask_one_by_one(vocab, terms, which, which + 1, block);
        }
    }
    block->shortest = _mm512_reduce_min_epu64(shortest);
    ask_one_by_one(vocab, terms, i, block->count, block);
}
#endif

void
vocab_block_ask(const struct vocab *vocab, const struct byte_view *terms, struct vocab_block *block)
{
    block->long_count = 0;
    block->shortest = UINT64_MAX;
#if defined(__x86_64__) && VOCAB_READS_BEYOND
    if (tnd_cpu_has(TND_CPU_AVX512)) {
        ask_avx512(vocab, terms, block);
        return;
    }
#endif
    ask_one_by_one(vocab, terms, 0, block->count, block);
}
