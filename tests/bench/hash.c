/* hash.c - which hash vocabulary tables should use: hash
 *
 * Looks terms up in tables laid out as content/vocabulary/vocab_table.h says (five keys to a cache
 * line), in blocks whose lines are asked for ahead, once for each candidate, and prints one JSON
 * object a line: what a lookup takes, what hashing alone takes, and how many terms had no room in
 * their own line. The fastest pass of each block counts, so that other work on the machine disturbs
 * little. `product` is what the tables use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "content/vocabulary/vocab_table.h"
#include "core/clock.h"
#include "core/memory.h"
#include "draw.h"

enum { BLOCK = 256, BLOCKS = 256, TERMS = BLOCK * BLOCKS, PASSES = 15, TERM_ROOM = 64 };

#define SEED UINT64_C(0x2D358DCCAA6C78A5)
#define OTHER_SEED UINT64_C(0x8BB84B93962EACC9)
#define TERMS_PER_BUCKET 2.5 /* as content/vocabulary/vocab_build.c fills them */

static inline uint64_t
hash_fold(struct byte_view term)
{
    return term.size <= 8 ? vocab_fold(vocab_short_key(term), SEED) : vocab_hash_long(term, SEED);
}

/* One multiplication, of which the upper bits are used: the least there is. */
static inline uint64_t
hash_product(struct byte_view term)
{
    return term.size <= 8 ? vocab_hash_short(vocab_short_key(term), SEED)
                          : vocab_hash_long(term, SEED);
}

static inline uint64_t
multiply(uint64_t a, uint64_t b)
{
    vocab_product product = (vocab_product)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* As wyhash does it: 16 bytes a multiplication, and one more at the end. */
static inline uint64_t
hash_wy(struct byte_view term)
{
    const uint8_t *at = term.data;
    uint64_t hash = SEED, left = term.size;

    if (left <= 8)
        return multiply(OTHER_SEED ^ term.size, multiply(vocab_short_key(term) ^ OTHER_SEED, SEED));
    for (; left > 16; left -= 16, at += 16)
        hash = multiply(load_u64(at) ^ OTHER_SEED, load_u64(at + 8) ^ hash);
    if (left <= 8)
        at -= 8 - left, left = 8;
    return multiply(OTHER_SEED ^ term.size,
                    multiply(load_u64(at) ^ OTHER_SEED, load_u64(at + left - 8) ^ hash));
}

/* Murmur's end, in which every bit reaches every other. */
static inline uint64_t
hash_murmur(struct byte_view term)
{
    uint64_t hash = term.size <= 8 ? vocab_short_key(term) : vocab_hash_long(term, SEED);

    hash = (hash ^ hash >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    hash = (hash ^ hash >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return hash ^ hash >> 33;
}

static inline uint64_t
hash_fnv(struct byte_view term)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (uint64_t i = 0; i < term.size; i++)
        hash = (hash ^ term.data[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static inline uint64_t
hash_farm(struct byte_view term)
{
    return tnd_hash_farm(term.data, term.size);
}

#ifdef __x86_64__
/* The processor's instruction gives 32 bits: the second half is for the tag. */
__attribute__((target("sse4.2"))) static inline uint64_t
hash_crc(struct byte_view term)
{
    uint64_t low = 1, high = 2, left = term.size;
    const uint8_t *at = term.data;

    if (left <= 8) {
        uint64_t key = vocab_short_key(term);

        return _mm_crc32_u64(high, key) << 32 | _mm_crc32_u64(low, key);
    }
    for (; left > 8; left -= 8, at += 8) {
        low = _mm_crc32_u64(low, load_u64(at));
        high = _mm_crc32_u64(high, load_u64(at));
    }
    low = _mm_crc32_u64(low, load_u64(at + left - 8));
    return _mm_crc32_u64(high, load_u64(at + left - 8)) << 32 | low;
}
#endif

struct table {
    struct vocab_bucket *buckets;
    uint64_t bucket_count;
    const struct byte_view *terms; /* by line */
    uint32_t count, away;          /* terms, and those that are not in their own bucket */
};

static inline int64_t
find(const struct table *table, uint64_t key, uint64_t at, struct byte_view term)
{
    for (;; at = at + 1 == table->bucket_count ? 0 : at + 1) {
        const struct vocab_bucket *bucket = &table->buckets[at];

        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            if (bucket->keys[i] != key || bucket->values[i] == 0)
                continue;
            if (term.size <= 8 || bytes_are_equal(table->terms[bucket->values[i] - 1], term))
                return bucket->values[i];
        }
        if (bucket->passed_on == 0)
            return 0;
    }
}

static void
put(struct table *table, uint64_t key, uint64_t at, uint32_t line)
{
    for (uint64_t home = at;; at = at + 1 == table->bucket_count ? 0 : at + 1) {
        struct vocab_bucket *bucket = &table->buckets[at];

        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            if (bucket->values[i] != 0)
                continue;
            bucket->keys[i] = key;
            bucket->values[i] = line + 1;
            table->away += at != home;
            return;
        }
        bucket->passed_on = 1;
    }
}

/* For each candidate: hash a block, look a block up, and build. */
#define CANDIDATE(name, options)                                                                   \
    options static void hash_block_##name(const struct table *table,                               \
                                          const struct byte_view *terms, int64_t *ret_values)      \
    {                                                                                              \
        for (size_t i = 0; i < BLOCK; i++)                                                         \
            ret_values[i] = (int64_t)vocab_home(hash_##name(terms[i]), table->bucket_count);       \
    }                                                                                              \
    options static void look_up_##name(const struct table *table, const struct byte_view *terms,   \
                                       int64_t *ret_values)                                        \
    {                                                                                              \
        uint64_t keys[BLOCK], homes[BLOCK];                                                        \
                                                                                                   \
        for (size_t i = 0; i < BLOCK; i++) {                                                       \
            const uint64_t hash = hash_##name(terms[i]);                                           \
                                                                                                   \
            keys[i] = terms[i].size <= 8 ? vocab_short_key(terms[i]) : hash;                       \
            homes[i] = vocab_home(hash, table->bucket_count);                                      \
            __builtin_prefetch(&table->buckets[homes[i]]);                                         \
        }                                                                                          \
        for (size_t i = 0; i < BLOCK; i++)                                                         \
            ret_values[i] = find(table, keys[i], homes[i], terms[i]);                              \
    }                                                                                              \
    options static void build_##name(struct table *table)                                          \
    {                                                                                              \
        for (uint32_t line = 0; line < table->count; line++) {                                     \
            const struct byte_view term = table->terms[line];                                      \
            const uint64_t hash = hash_##name(term);                                               \
                                                                                                   \
            put(table, term.size <= 8 ? vocab_short_key(term) : hash,                              \
                vocab_home(hash, table->bucket_count), line);                                      \
        }                                                                                          \
    }

CANDIDATE(fold, )
CANDIDATE(product, )
CANDIDATE(wy, )
CANDIDATE(murmur, )
CANDIDATE(fnv, )
CANDIDATE(farm, )
#ifdef __x86_64__
CANDIDATE(crc, __attribute__((target("sse4.2"))))
#endif

typedef void block_work(const struct table *table, const struct byte_view *terms,
                        int64_t *ret_values);

static const struct candidate {
    const char *name;
    void (*build)(struct table *table);
    block_work *hash, *look_up;
} candidates[] = {
    { "fold", build_fold, hash_block_fold, look_up_fold },
    { "product", build_product, hash_block_product, look_up_product },
    { "wy", build_wy, hash_block_wy, look_up_wy },
    { "murmur", build_murmur, hash_block_murmur, look_up_murmur },
    { "fnv", build_fnv, hash_block_fnv, look_up_fnv },
    { "farm", build_farm, hash_block_farm, look_up_farm },
#ifdef __x86_64__
    { "crc", build_crc, hash_block_crc, look_up_crc },
#endif
};

/* How terms are spelled; counted terms are alike but for their ends, as ids in a log are. */
static const struct spelling {
    const char *name, *format;
    bool is_scattered;
} spellings[] = {
    { "hex8", "%08" PRIx32, true },
    { "word6", "w%05" PRIx32, false },
    { "hex12", "user%08" PRIx32, true },
    { "url42", "https://example.org/articles/%08" PRIx32 ".html", true },
};

static struct byte_view
spell(const struct spelling *spelling, uint32_t rank, uint8_t *to)
{
    uint32_t value = spelling->is_scattered ? (uint32_t)draw_bits(1, rank, 0) : rank;

    return (struct byte_view){ to, (uint64_t)sprintf((char *)to, spelling->format, value) };
}

/* `count` different terms, then TERMS that are met, frequent ones often, 2% of them not among the
 * first. Numbers that come up twice are few and do not matter: the first line counts. */
static struct byte_view *
make_terms(const struct spelling *spelling, uint32_t count)
{
    struct byte_view *terms = tnd_zalloc(count + TERMS, sizeof *terms);
    uint8_t *text = tnd_zalloc(count + TERMS, TERM_ROOM);

    for (uint32_t i = 0; i < count; i++, text += TERM_ROOM)
        terms[i] = spell(spelling, i, text);
    for (uint32_t i = 0; i < TERMS; i++, text += TERM_ROOM) {
        uint32_t rank = draw_zipf(draw_uniform(2, i, 0), count);

        terms[count + i] =
            spell(spelling, draw_bits(2, i, 1) % 50 == 0 ? count + rank : rank, text);
    }
    return terms; /* never freed: the program ends soon */
}

/* Nanoseconds for each term. */
static double
measure(const struct table *table, block_work *work, int64_t *ret_sum)
{
    const struct byte_view *terms = table->terms + table->count;
    static int64_t best_ns[BLOCKS], values[BLOCK];
    int64_t all_ns = 0;

    *ret_sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t block = 0; block < BLOCKS; block++) {
            int64_t start_ns, spent_ns;
            unsigned touched = 0;

            for (size_t i = 0; i < BLOCK; i++) /* as a parser that has just found them */
                touched += terms[block * BLOCK + i].data[0];
            start_ns = tnd_clock_ns() + (touched == 1);
            work(table, terms + block * BLOCK, values);
            spent_ns = tnd_clock_ns() - start_ns;
            if (pass == 0 || spent_ns < best_ns[block])
                best_ns[block] = spent_ns;
            for (size_t i = 0; i < BLOCK && pass == 0; i++)
                *ret_sum += values[i];
        }
    }
    for (size_t block = 0; block < BLOCKS; block++)
        all_ns += best_ns[block];
    return (double)all_ns / TERMS;
}

static void
run(const struct candidate *candidate, const struct spelling *spelling,
    const struct byte_view *terms, uint32_t count)
{
    struct table table = { .terms = terms, .count = count };
    double hash_ns, lookup_ns;
    int64_t sum;

    table.bucket_count = (uint64_t)((double)count / TERMS_PER_BUCKET) + 1;
    table.buckets = aligned_alloc(64, table.bucket_count * sizeof *table.buckets);
    if (table.buckets == NULL)
        abort();
    memset(table.buckets, 0, table.bucket_count * sizeof *table.buckets);
    candidate->build(&table);
    hash_ns = measure(&table, candidate->hash, &sum);
    lookup_ns = measure(&table, candidate->look_up, &sum);
    printf("{\"hash\": \"%s\", \"terms\": \"%s\", \"term_count\": %" PRIu32
           ", \"hash_ns\": %.2f, \"lookup_ns\": %.2f, \"million_lookups_per_s\": %.0f, "
           "\"away_percent\": %.2f, \"sum\": %" PRId64 "}\n",
           candidate->name, spelling->name, count, hash_ns, lookup_ns, 1e3 / lookup_ns,
           100.0 * table.away / count, sum);
    fflush(stdout);
    free(table.buckets);
}

int
main(void)
{
    static const uint32_t counts[] = { 1000, 100000, 1000000 };

    for (size_t s = 0; s < sizeof spellings / sizeof *spellings; s++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            const struct byte_view *terms = make_terms(&spellings[s], counts[n]);

            for (size_t c = 0; c < sizeof candidates / sizeof *candidates; c++)
                run(&candidates[c], &spellings[s], terms, counts[n]);
        }
    return 0;
}
