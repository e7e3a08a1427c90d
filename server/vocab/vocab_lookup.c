/* vocab_lookup.c - terms to lines, a block at a time.
 *
 * A lookup is a hash and one cache line, but waiting for that line costs ten times the work. So a
 * block of terms is hashed and its buckets asked for first, and compared when they have come.
 */
#include "vocab/vocab_lookup.h"

#include <stdatomic.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/must.h"

#define LINE_MASK ((UINT32_C(1) << VOCAB_KIND_SHIFT) - 1)
#define LONG_KIND ((uint32_t)VOCAB_LONG << VOCAB_KIND_SHIFT)

/* A block on its way. `kinds` are enum vocab_kind, where a value has them. */
struct block {
    uint64_t keys[VOCAB_BLOCK]; /* of LONG terms the hash */
    uint32_t homes[VOCAB_BLOCK];
    uint32_t kinds[VOCAB_BLOCK];
    size_t   count;
    size_t   long_count;
};

static inline void
ask(const struct vocab *vocab, struct block *block, size_t i, uint64_t hash)
{
    block->homes[i] = (uint32_t)vocab_home(hash, vocab->bucket_count);
    __builtin_prefetch(&vocab->buckets[block->homes[i]]);
}

static void
ask_for_strings(const struct vocab *vocab, const struct byte_view *terms, struct block *block)
{
    block->long_count = 0;
    for (size_t i = 0; i < block->count; i++) {
        struct byte_view term = terms[i];
        uint64_t         hash;

        if (__builtin_expect(term.size <= 8, 1)) {
            block->keys[i] = vocab_short_key(term);
            block->kinds[i] = (uint32_t)vocab_short_kind(term) << VOCAB_KIND_SHIFT;
            hash = vocab_hash_word(block->keys[i], vocab->seed);
        } else {
            hash = vocab_hash_long(term, vocab->seed);
            block->keys[i] = hash;
            block->kinds[i] = LONG_KIND;
            block->long_count++;
        }
        ask(vocab, block, i, hash);
    }
}

static void
ask_for_integers(const struct vocab *vocab, const int64_t *terms, struct block *block)
{
    block->long_count = 0;
    for (size_t i = 0; i < block->count; i++) {
        block->keys[i] = (uint64_t)terms[i];
        block->kinds[i] = (uint32_t)VOCAB_WORD << VOCAB_KIND_SHIFT;
        ask(vocab, block, i, vocab_hash_word(block->keys[i], vocab->seed));
    }
}

/* Any kind of term, from its home on; `long_term` is NULL unless it is a LONG one. */
static int64_t
probe(const struct vocab *vocab, uint64_t at, uint64_t key, uint32_t kind,
      const struct byte_view *long_term)
{
    for (uint64_t left = vocab->longest_probe; left > 0; left--) {
        const struct vocab_bucket *bucket = &vocab->buckets[at];

        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            const uint64_t   stored = bucket->keys[i];
            const uint32_t   line = bucket->values[i] - kind;
            struct byte_view term;
            uint64_t         next;

            if (line >= vocab->count) /* another kind, or a damaged table */
                continue;
            if (long_term == NULL ? stored == key
                                  : stored >> VOCAB_TAG_SHIFT == vocab_tag(key) &&
                                        vocab_term_at(vocab,
                                                      stored & ((UINT64_C(1) << VOCAB_TAG_SHIFT) - 1),
                                                      &term, &next) &&
                                        bytes_are_equal(term, *long_term))
                return line;
        }
        if (!bucket->has_overflown)
            break;
        at = at + 1 == vocab->bucket_count ? 0 : at + 1;
    }
    return -1;
}

/* Where short terms stand in their home buckets. `match` gives a bit for each key that is equal;
 * the one beside a matching value, if it is of the same kind, is the term. Nothing matching in a
 * bucket that has not overflown means absent; what is left is rare. */
#define COMPARE_AT_HOME(name, options, match)                                                      \
    options static void name(const struct vocab *vocab, const struct block *block,                 \
                             int64_t *ret_lines)                                                   \
    {                                                                                              \
        for (size_t i = 0; i < block->count; i++) {                                                \
            const struct vocab_bucket *bucket = &vocab->buckets[block->homes[i]];                  \
            const unsigned             matching = match(bucket, block->keys[i]);                   \
                                                                                                   \
            if (matching != 0) {                                                                   \
                const uint32_t line =                                                              \
                    bucket->values[__builtin_ctz(matching)] - block->kinds[i];                     \
                                                                                                   \
                if (__builtin_expect(line < vocab->count, 1)) {                                    \
                    ret_lines[i] = line;                                                           \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            ret_lines[i] = (matching | bucket->has_overflown) == 0                                 \
                               ? -1                                                                \
                               : probe(vocab, block->homes[i], block->keys[i], block->kinds[i],    \
                                       NULL);                                                      \
        }                                                                                          \
    }

static inline unsigned
match_portably(const struct vocab_bucket *bucket, uint64_t key)
{
    unsigned matching = 0;

    for (unsigned i = 0; i < VOCAB_BUCKET_TERMS; i++)
        matching |= (unsigned)(bucket->keys[i] == key) << i;
    return matching;
}

COMPARE_AT_HOME(compare_portably, , match_portably)

#ifdef __x86_64__
#define WITH_AVX2   __attribute__((target("avx2")))
#define WITH_AVX512 __attribute__((target("avx512f")))

WITH_AVX2 static inline unsigned
match_avx2(const struct vocab_bucket *bucket, uint64_t key)
{
    const __m256i four = _mm256_load_si256((const __m256i *)(const void *)bucket->keys);
    const __m256i equal = _mm256_cmpeq_epi64(four, _mm256_set1_epi64x((long long)key));

    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(equal)) |
           (unsigned)(bucket->keys[4] == key) << 4;
}

/* The whole line is loaded; what follows the keys is masked off. */
WITH_AVX512 static inline unsigned
match_avx512(const struct vocab_bucket *bucket, uint64_t key)
{
    const __m512i line = _mm512_load_si512(bucket);

    return _mm512_mask_cmpeq_epi64_mask(0x1F, line, _mm512_set1_epi64((long long)key));
}

COMPARE_AT_HOME(compare_avx2, WITH_AVX2, match_avx2)
COMPARE_AT_HOME(compare_avx512, WITH_AVX512, match_avx512)
#endif

typedef void compare_function(const struct vocab *vocab, const struct block *block,
                              int64_t *ret_lines);

static compare_function *
function_of(enum vocab_path path)
{
#ifdef __x86_64__
    if (path == VOCAB_PATH_AVX512 && __builtin_cpu_supports("avx512f"))
        return compare_avx512;
    if (path == VOCAB_PATH_AVX2 && __builtin_cpu_supports("avx2"))
        return compare_avx2;
#endif
    return path == VOCAB_PATH_PORTABLE ? compare_portably : NULL;
}

static _Atomic(compare_function *) compare;

bool
vocab_lookup_use(enum vocab_path path)
{
    compare_function *function = function_of(path);

    if (function != NULL)
        atomic_store_explicit(&compare, function, memory_order_relaxed);
    return function != NULL;
}

/* Threads that come here together choose alike. */
static compare_function *
best_compare(void)
{
    compare_function *function = atomic_load_explicit(&compare, memory_order_relaxed);

    if (__builtin_expect(function == NULL, 0)) {
        if (!vocab_lookup_use(VOCAB_PATH_AVX512) && !vocab_lookup_use(VOCAB_PATH_AVX2))
            (void)vocab_lookup_use(VOCAB_PATH_PORTABLE);
        function = atomic_load_explicit(&compare, memory_order_relaxed);
    }
    return function;
}

/* LONG terms are compared where they stand among the terms: a second miss. The first one with the
 * term's tag is asked for in one pass and compared in the next. */
static void
find_long(const struct vocab *vocab, const struct byte_view *terms, const struct block *block,
          int64_t *ret_lines)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct vocab_bucket *bucket = &vocab->buckets[block->homes[i]];

        if (block->kinds[i] != LONG_KIND)
            continue;
        for (size_t j = 0; j < VOCAB_BUCKET_TERMS; j++)
            if (bucket->keys[j] >> VOCAB_TAG_SHIFT == vocab_tag(block->keys[i]) &&
                bucket->values[j] >= LONG_KIND) {
                uint64_t position = bucket->keys[j] & ((UINT64_C(1) << VOCAB_TAG_SHIFT) - 1);

                __builtin_prefetch(vocab->terms + position);
                break;
            }
    }
    for (size_t i = 0; i < block->count; i++)
        if (block->kinds[i] == LONG_KIND)
            ret_lines[i] = probe(vocab, block->homes[i], block->keys[i], LONG_KIND, &terms[i]);
}

void
vocab_lookup_block(const struct vocab *vocab, const struct byte_view *terms, size_t count,
                   int64_t *ret_lines)
{
    struct block block; /* filled as far as it is read: clearing 4 KiB would show */

    block.count = count;
    ask_for_strings(vocab, terms, &block);
    if (block.long_count < count)
        best_compare()(vocab, &block, ret_lines);
    if (block.long_count > 0)
        find_long(vocab, terms, &block, ret_lines);
}

void
vocab_lookup_integer_block(const struct vocab *vocab, const int64_t *terms, size_t count,
                           int64_t *ret_lines)
{
    struct block block;

    block.count = count;
    ask_for_integers(vocab, terms, &block);
    best_compare()(vocab, &block, ret_lines);
}

void
vocab_lookup(const struct vocab *vocab, const struct byte_view *terms, size_t count,
             int64_t *ret_lines)
{
    must(vocab->keys == VOCAB_STRINGS);
    for (size_t from = 0; from < count; from += VOCAB_BLOCK)
        vocab_lookup_block(vocab, terms + from,
                           count - from < VOCAB_BLOCK ? count - from : VOCAB_BLOCK,
                           ret_lines + from);
}

void
vocab_lookup_integers(const struct vocab *vocab, const int64_t *terms, size_t count,
                      int64_t *ret_lines)
{
    must(vocab->keys == VOCAB_INTEGERS);
    for (size_t from = 0; from < count; from += VOCAB_BLOCK)
        vocab_lookup_integer_block(vocab, terms + from,
                                   count - from < VOCAB_BLOCK ? count - from : VOCAB_BLOCK,
                                   ret_lines + from);
}
