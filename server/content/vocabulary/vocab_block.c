/* vocab_block.c - the first pass of a lookup: which bucket each term would be in. */
#include "content/vocabulary/vocab_block.h"

#include "core/cpu.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Start to load the home bucket, as far as the second cache: in the first it would take the place
 * of the terms themselves. */
static inline void
prefetch_home(const struct vocab *vocab, const struct vocab_block *block, size_t i)
{
    __builtin_prefetch(&vocab->buckets[block->homes[i]], 0, 2);
}

static inline void
set_home(const struct vocab *vocab, struct vocab_block *block, size_t i, uint64_t hash)
{
    block->homes[i] = (uint32_t)vocab_home(hash, vocab->bucket_count);
    prefetch_home(vocab, block, i);
}

/* Most terms have up to 8 bytes, which are a key by themselves. */
static void
ask_one_by_one(const struct vocab *vocab, const struct byte_view *terms, size_t begin, size_t end,
               struct vocab_block *block)
{
    for (size_t i = begin; i < end; i++) {
        struct byte_view term = terms[i];
        uint64_t hash;

        if (__builtin_expect(term.size <= 8, 1)) {
            block->keys[i] = vocab_short_key(term);
            block->kinds[i] = (uint32_t)vocab_short_kind(term) << VOCAB_KIND_SHIFT;
            hash = vocab_hash_word(block->keys[i], vocab->seed);
        } else {
            hash = vocab_hash_long(term, vocab->seed);
            block->keys[i] = hash;
            block->kinds[i] = (uint32_t)VOCAB_LONG << VOCAB_KIND_SHIFT;
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
        block->kinds[i] = (uint32_t)VOCAB_WORD << VOCAB_KIND_SHIFT;
        set_home(vocab, block, i, vocab_hash_word(block->keys[i], vocab->seed));
    }
}

#if defined(__x86_64__) && VOCAB_READS_BEYOND
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* Eight terms. */
struct eight {
    __m512i words; /* eight bytes from where each begins */
    __m512i sizes;
};

/* Terms that are not short, or end where eight bytes may not be read, are left out, and told. */
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
    const __mmask8 left_out =
        (_mm512_cmpgt_epu64_mask(sizes, _mm512_set1_epi64(8)) | at_end) & some;
    const uint8_t *from[8];

    _mm512_storeu_si512(from,
                        _mm512_mask_mov_epi64(_mm512_set1_epi64((long long)(uintptr_t)nothing),
                                              some & (__mmask8)~left_out, data));
    ret_eight->sizes = sizes;
    ret_eight->words = _mm512_setr_epi64(
        (long long)load_u64(from[0]), (long long)load_u64(from[1]), (long long)load_u64(from[2]),
        (long long)load_u64(from[3]), (long long)load_u64(from[4]), (long long)load_u64(from[5]),
        (long long)load_u64(from[6]), (long long)load_u64(from[7]));
    return left_out;
}

/* As vocab_short_key. */
AVX512 static inline __m512i
keys_of(const struct eight *eight, __mmask8 full)
{
    const __m512i bits_left =
        _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_slli_epi64(eight->sizes, 3));
    const __m512i bytes =
        _mm512_and_si512(/* a shift by 64 leaves nothing */
                         eight->words, _mm512_srlv_epi64(_mm512_set1_epi64(-1), bits_left));
    const __m512i lengths =
        _mm512_slli_epi64(_mm512_add_epi64(eight->sizes, _mm512_set1_epi64(1)), 56);

    return _mm512_mask_or_epi64(bytes, (__mmask8)~full, bytes, lengths);
}

/* The upper halves of products, from four products of 32 bits. */
AVX512 static inline __m512i
multiply_high(__m512i words, uint64_t factor)
{
    const __m512i low = _mm512_set1_epi64((long long)(factor & UINT32_MAX));
    const __m512i high = _mm512_set1_epi64((long long)(factor >> 32));
    const __m512i upper = _mm512_srli_epi64(words, 32);
    const __m512i middle = _mm512_add_epi64(_mm512_mul_epu32(upper, low),
                                            _mm512_srli_epi64(_mm512_mul_epu32(words, low), 32));
    const __m512i other = _mm512_add_epi64(_mm512_mul_epu32(words, high),
                                           _mm512_and_si512(middle, _mm512_set1_epi64(UINT32_MAX)));

    return _mm512_add_epi64(
        _mm512_mul_epu32(upper, high),
        _mm512_add_epi64(_mm512_srli_epi64(middle, 32), _mm512_srli_epi64(other, 32)));
}

/* As vocab_hash_word and vocab_home. A table has fewer than 2^32 buckets. */
AVX512 static inline __m512i
homes_of(const struct vocab *vocab, __m512i keys)
{
    const __m512i buckets = _mm512_set1_epi64((long long)vocab->bucket_count);
    const __m512i words = _mm512_xor_si512(keys, _mm512_set1_epi64((long long)vocab->seed));
    const __m512i hashes =
        _mm512_xor_si512(_mm512_mullo_epi64(words, _mm512_set1_epi64((long long)VOCAB_HASH_FACTOR)),
                         multiply_high(words, VOCAB_HASH_FACTOR));
    const __m512i lower = _mm512_srli_epi64(_mm512_mul_epu32(hashes, buckets), 32);

    return _mm512_srli_epi64(
        _mm512_add_epi64(_mm512_mul_epu32(_mm512_srli_epi64(hashes, 32), buckets), lower), 32);
}

AVX512 static void
ask_eight(const struct vocab *vocab, const struct eight *eight, size_t at,
          struct vocab_block *block)
{
    const __mmask8 full = _mm512_cmpeq_epi64_mask(eight->sizes, _mm512_set1_epi64(8));
    const __m512i keys = keys_of(eight, full), homes = homes_of(vocab, keys);
    const __m256i words = _mm256_set1_epi32(VOCAB_WORD << VOCAB_KIND_SHIFT);
    const __m256i fulls = _mm256_set1_epi32((int)((uint32_t)VOCAB_FULL << VOCAB_KIND_SHIFT));

    _mm512_storeu_si512(block->keys + at, keys);
    _mm256_storeu_si256((void *)(block->kinds + at), _mm256_mask_mov_epi32(words, full, fulls));
    _mm256_storeu_si256((void *)(block->homes + at), _mm512_cvtepi64_epi32(homes));
    for (size_t i = 0; i < 8; i++)
        prefetch_home(vocab, block, at + i);
}

AVX512 static void
ask_avx512(const struct vocab *vocab, const struct byte_view *terms, struct vocab_block *block)
{
    size_t i = 0;

    for (; i + 8 <= block->count; i += 8) {
        struct eight eight;
        unsigned left_out = load_eight(terms + i, &eight);

        ask_eight(vocab, &eight, i, block);
        for (; __builtin_expect(left_out != 0, 0); left_out &= left_out - 1) {
            size_t which = i + (size_t)__builtin_ctz(left_out);

            ask_one_by_one(vocab, terms, which, which + 1, block);
        }
    }
    ask_one_by_one(vocab, terms, i, block->count, block);
}
#endif

void
vocab_block_ask(const struct vocab *vocab, const struct byte_view *terms, struct vocab_block *block)
{
    block->long_count = 0;
#if defined(__x86_64__) && VOCAB_READS_BEYOND
    if (tnd_cpu_has(TND_CPU_AVX512)) {
        ask_avx512(vocab, terms, block);
        return;
    }
#endif
    ask_one_by_one(vocab, terms, 0, block->count, block);
}
