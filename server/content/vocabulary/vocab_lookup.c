/* vocab_lookup.c - terms to lines, a block at a time. A lookup is a hash and one cache line, but
 * the wait for that line costs ten times the work. So hash a block of terms and prefetch their
 * buckets first (vocab_block.h), and compare afterwards. */
#include "content/vocabulary/vocab_lookup.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "content/vocabulary/vocab_block.h"
#include "core/cpu.h"
#include "core/must.h"

#define POSITION_MASK ((UINT64_C(1) << VOCAB_TAG_SHIFT) - 1)

/* Compare terms of the same length, over 8 bytes. Up to 16 bytes, two overlapping words compare
 * without a call. */
static inline bool
is_equal_long(const uint8_t *a, const uint8_t *b, uint64_t size)
{
    if (size <= 16)
        return ((load_u64(a) ^ load_u64(b)) | (load_u64(a + size - 8) ^ load_u64(b + size - 8))) ==
               0;
    return memcmp(a, b, size) == 0;
}

static inline bool
term_stands_at(const struct vocab *vocab, uint64_t position, struct byte_view term)
{
    struct byte_view found;
    uint64_t next;

    return vocab_term_at(vocab, position, &found, &next) && found.size == term.size &&
           is_equal_long(found.data, term.data, term.size);
}

/* The line of a value of a bucket; no line of the table if the slot is empty or damaged. */
static inline uint32_t
line_of(uint32_t value)
{
    return value - 1;
}

static inline bool
has_passed_on(const struct vocab_bucket *bucket, uint64_t key)
{
    return (bucket->passed_on & vocab_pass_bit(key)) != 0;
}

/* Search from the home bucket on, for any kind of term. `long_term` is NULL unless it is a LONG
 * one. The length of the search is bounded by the table's longest probe, so a damaged table cannot
 * loop forever. Returns a line, or one that the table has not. */
static __attribute__((noinline)) uint32_t
probe(const struct vocab *vocab, uint64_t key, const struct vocab_bucket *home,
      const struct byte_view *long_term)
{
    const struct vocab_bucket *const end = vocab->buckets + vocab->bucket_count;
    const struct vocab_bucket *bucket = home;

    for (uint64_t left = vocab->longest_probe; left > 0; left--) {
        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            const uint64_t stored = bucket->keys[i];
            const uint32_t line = line_of(bucket->values[i]);

            if (line >= vocab->count)
                continue;
            if (long_term == NULL ? stored == key
                                  : stored >> VOCAB_TAG_SHIFT == key >> VOCAB_TAG_SHIFT &&
                                        term_stands_at(vocab, stored & POSITION_MASK, *long_term))
                return line;
        }
        if (!has_passed_on(bucket, key))
            break;
        bucket = bucket + 1 == end ? vocab->buckets : bucket + 1;
    }
    return UINT32_MAX;
}

static inline int64_t
probe_in_block(const struct vocab *vocab, const struct vocab_block *block, size_t i,
               const struct byte_view *long_term)
{
    const uint32_t line = probe(vocab, block->keys[i], block->homes[i], long_term);

    return line < vocab->count ? line + block->offset : block->absent;
}

/* Find short terms in their home buckets. `match` gives a bit for each equal key. Without a match,
 * a bucket that has not passed the term on means absent. The rest is rare. The results
 * of LONG terms mean nothing here. */
#define COMPARE_AT_HOME(name, options, match)                                                      \
    options static void name(const struct vocab *vocab, const struct vocab_block *block,           \
                             int64_t *ret_values)                                                  \
    {                                                                                              \
        const int64_t offset = block->offset, absent = block->absent;                              \
        const uint32_t lines = vocab->count;                                                       \
        const size_t count = block->count;                                                         \
                                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            const struct vocab_bucket *bucket = block->homes[i];                                   \
            const uint64_t key = block->keys[i], matching = match(bucket, key, 0);                 \
                                                                                                   \
            if (matching != 0) {                                                                   \
                const uint32_t line = line_of(bucket->values[__builtin_ctzll(matching)]);          \
                                                                                                   \
                if (__builtin_expect(line < lines, 1)) {                                           \
                    ret_values[i] = line + offset;                                                 \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            ret_values[i] = matching == 0 && !has_passed_on(bucket, key)                           \
                                ? absent                                                           \
                                : probe_in_block(vocab, block, i, NULL);                           \
        }                                                                                          \
    }

/* Find by tag the candidate slot of each LONG term, and prefetch the stored term (the second cache
 * miss). VOCAB_BUCKET_TERMS: there is no candidate. */
#define FIND_TAGS(name, options, match)                                                            \
    options static void name(const struct vocab *vocab, const struct vocab_block *block,           \
                             const struct byte_view *terms, uint8_t *ret_slots)                    \
    {                                                                                              \
        for (size_t j = 0; j < block->long_count; j++) {                                           \
            const size_t i = block->longs[j];                                                      \
            const struct vocab_bucket *bucket = block->homes[i];                                   \
            const unsigned slot = (unsigned)__builtin_ctz(                                         \
                match(bucket, block->keys[i] >> VOCAB_TAG_SHIFT, VOCAB_TAG_SHIFT) | NO_SLOT);      \
                                                                                                   \
            ret_slots[j] = (uint8_t)slot;                                                          \
            if (slot < VOCAB_BUCKET_TERMS)                                                         \
                expect_term(vocab, bucket->keys[slot] & POSITION_MASK, terms[i].size);             \
        }                                                                                          \
    }

#define NO_SLOT (1U << VOCAB_BUCKET_TERMS)

/* Start to load a stored term. A prefetch of a bad address does nothing, so the position needs no
 * check here. */
static inline void
expect_term(const struct vocab *vocab, uint64_t position, uint64_t size)
{
    const uintptr_t at = (uintptr_t)vocab->terms + position;

    __builtin_prefetch((const void *)at);
    __builtin_prefetch((const void *)(at + size));
}

/* A bit for each key that equals `key` after the lower `shift` bits are shifted out. */
static inline unsigned
match_portably(const struct vocab_bucket *bucket, uint64_t key, unsigned shift)
{
    unsigned matching = 0;

    for (unsigned i = 0; i < VOCAB_BUCKET_TERMS; i++)
        matching |= (unsigned)(bucket->keys[i] >> shift == key) << i;
    return matching;
}

static uint64_t
count_equal_portably(const int64_t *values, size_t count, int64_t value)
{
    uint64_t equal = 0;

    for (size_t i = 0; i < count; i++)
        equal += values[i] == value;
    return equal;
}

COMPARE_AT_HOME(compare_portably, , match_portably)
FIND_TAGS(find_tags_portably, , match_portably)

#ifdef __x86_64__
#define WITH_AVX2 __attribute__((target("avx2")))
#define WITH_AVX512 __attribute__((target("avx512f,avx512dq,bmi")))

WITH_AVX2 static inline unsigned
match_avx2(const struct vocab_bucket *bucket, uint64_t key, unsigned shift)
{
    const __m256i four = _mm256_load_si256((const __m256i *)(const void *)bucket->keys);
    const __m256i equal =
        _mm256_cmpeq_epi64(_mm256_srli_epi64(four, (int)shift), _mm256_set1_epi64x((long long)key));

    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(equal)) |
           (unsigned)(bucket->keys[4] >> shift == key) << 4;
}

WITH_AVX2 static inline __m256i
equal_four(const int64_t *values, __m256i wanted)
{
    return _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(const void *)values), wanted);
}

/* Count sixteen values at a time in two sums, which do not wait for each other. A comparison gives
 * -1 for equal, hence the subtraction. */
WITH_AVX2 static uint64_t
count_equal_avx2(const int64_t *values, size_t count, int64_t value)
{
    const __m256i wanted = _mm256_set1_epi64x((long long)value);
    __m256i even = _mm256_setzero_si256(), odd = even;
    uint64_t lanes[4];
    size_t i = 0;

    for (; i + 16 <= count; i += 16) {
        even = _mm256_sub_epi64(even, equal_four(values + i, wanted));
        odd = _mm256_sub_epi64(odd, equal_four(values + i + 4, wanted));
        even = _mm256_sub_epi64(even, equal_four(values + i + 8, wanted));
        odd = _mm256_sub_epi64(odd, equal_four(values + i + 12, wanted));
    }
    _mm256_storeu_si256((__m256i *)(void *)lanes, _mm256_add_epi64(even, odd));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] +
           count_equal_portably(values + i, count - i, value);
}

/* Load the whole bucket, which is one cache line, and mask off what follows the keys. */
WITH_AVX512 static inline unsigned
match_avx512(const struct vocab_bucket *bucket, uint64_t key, unsigned shift)
{
    const __m512i line = _mm512_load_si512(bucket);

    return _cvtmask8_u32(_mm512_mask_cmpeq_epi64_mask(0x1F, _mm512_srli_epi64(line, shift),
                                                      _mm512_set1_epi64((long long)key)));
}

COMPARE_AT_HOME(compare_avx2, WITH_AVX2, match_avx2)
COMPARE_AT_HOME(compare_avx512, WITH_AVX512, match_avx512)
FIND_TAGS(find_tags_avx2, WITH_AVX2, match_avx2)
FIND_TAGS(find_tags_avx512, WITH_AVX512, match_avx512)
#endif

/* The functions for one instruction set. */
struct functions {
    void (*compare)(const struct vocab *vocab, const struct vocab_block *block,
                    int64_t *ret_values);
    void (*find_tags)(const struct vocab *vocab, const struct vocab_block *block,
                      const struct byte_view *terms, uint8_t *ret_slots);
    uint64_t (*count_equal)(const int64_t *values, size_t count, int64_t value);
};

static const struct functions portable = { compare_portably, find_tags_portably,
                                           count_equal_portably };
#ifdef __x86_64__
static const struct functions avx2 = { compare_avx2, find_tags_avx2, count_equal_avx2 };
static const struct functions avx512 = { compare_avx512, find_tags_avx512, count_equal_avx2 };
#endif

static const struct functions *
functions(void)
{
#ifdef __x86_64__
    const enum tnd_cpu_level level = tnd_cpu();

    if (level >= TND_CPU_AVX2)
        return level >= TND_CPU_AVX512 ? &avx512 : &avx2;
#endif
    return &portable;
}

/* Compare LONG terms with the stored ones, after all of the block were prefetched. */
static void
look_up_long(const struct vocab *vocab, const struct byte_view *terms,
             const struct vocab_block *block, int64_t *ret_values)
{
    uint8_t slots[VOCAB_BLOCK];

    functions()->find_tags(vocab, block, terms, slots);
    for (size_t j = 0; j < block->long_count; j++) {
        const size_t i = block->longs[j];
        const struct vocab_bucket *bucket = block->homes[i];

        if (slots[j] < VOCAB_BUCKET_TERMS) {
            const uint32_t line = line_of(bucket->values[slots[j]]);

            if (line < vocab->count &&
                term_stands_at(vocab, bucket->keys[slots[j]] & POSITION_MASK, terms[i])) {
                ret_values[i] = line + block->offset;
                continue;
            }
        }
        ret_values[i] = slots[j] == VOCAB_BUCKET_TERMS && !has_passed_on(bucket, block->keys[i])
                            ? block->absent
                            : probe_in_block(vocab, block, i, &terms[i]);
    }
}

uint64_t
vocab_lookup_block(const struct vocab *vocab, const struct byte_view *terms, size_t count,
                   int64_t offset, int64_t absent, int64_t *ret_values)
{
    struct vocab_block block; /* not cleared: 4 KiB for each call would show */

    block.count = count;
    block.offset = offset;
    block.absent = absent;
    vocab_block_ask(vocab, terms, &block);
    if (block.long_count < count)
        functions()->compare(vocab, &block, ret_values);
    if (block.long_count > 0)
        look_up_long(vocab, terms, &block, ret_values);
    return block.shortest;
}

void
vocab_lookup_integer_block(const struct vocab *vocab, const int64_t *terms, size_t count,
                           int64_t offset, int64_t absent, int64_t *ret_values)
{
    struct vocab_block block;

    block.count = count;
    block.offset = offset;
    block.absent = absent;
    vocab_block_ask_integers(vocab, terms, &block);
    functions()->compare(vocab, &block, ret_values);
}

uint64_t
vocab_count_equal(const int64_t *values, size_t count, int64_t value)
{
    return functions()->count_equal(values, count, value);
}

/* Only short terms, and only rules with a single index for absent terms. */
bool
vocab_ask(const struct vocab *vocab, const struct vocab_rule *rule, struct byte_view term,
          struct vocab_asked *ret_asked)
{
    if (!vocab_is_short(term) || rule->has_mask || rule->oov_count != 1)
        return false;
    ret_asked->key = vocab_short_key(term);
    ret_asked->home = vocab_bucket_of(vocab, vocab_hash_short(ret_asked->key, vocab->seed));
    __builtin_prefetch(ret_asked->home);
    return true;
}

int64_t
vocab_answer(const struct vocab *vocab, const struct vocab_rule *rule,
             const struct vocab_asked *asked)
{
    const uint32_t line = probe(vocab, asked->key, asked->home, NULL);

    return line < vocab->count ? line + rule->offset : rule->oov_first;
}

void
vocab_expect(const struct vocab *vocab, const struct byte_view *terms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(
            vocab_bucket_of(vocab, vocab_is_short(terms[i])
                                       ? vocab_hash_short(vocab_short_key(terms[i]), vocab->seed)
                                       : vocab_hash_long(terms[i], vocab->seed)));
}

void
vocab_lookup(const struct vocab *vocab, const struct byte_view *terms, size_t count,
             int64_t *ret_lines)
{
    must(vocab->keys == VOCAB_STRINGS);
    for (size_t from = 0; from < count; from += VOCAB_BLOCK)
        vocab_lookup_block(vocab, terms + from,
                           count - from < VOCAB_BLOCK ? count - from : VOCAB_BLOCK, 0, -1,
                           ret_lines + from);
}

void
vocab_lookup_integers(const struct vocab *vocab, const int64_t *terms, size_t count,
                      int64_t *ret_lines)
{
    must(vocab->keys == VOCAB_INTEGERS);
    for (size_t from = 0; from < count; from += VOCAB_BLOCK)
        vocab_lookup_integer_block(vocab, terms + from,
                                   count - from < VOCAB_BLOCK ? count - from : VOCAB_BLOCK, 0, -1,
                                   ret_lines + from);
}
