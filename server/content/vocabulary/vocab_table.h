/* vocab_table.h - the bytes of a compiled vocabulary.
 *
 *   header, one page | buckets | terms, by line
 *
 * A bucket is one cache line: five keys, five values, and a filter of the terms that belong here
 * but had to go further. A term's home is found by its hash; terms are placed in the order of their
 * lines, so where a vocabulary is sorted by frequency, as most are, frequent terms are at home.
 * A value is the line + 1, and 0 in an empty slot. A key of strings is one of three kinds, which
 * its top byte tells apart:
 *
 *   1 to 8   a term of up to 7 bytes, and their number + 1 in the top byte
 *   9 up     a term of 8 bytes, if its last byte is one of these
 *   0        LONG, any other term: 16 bits of its hash above its 40-bit position among the terms
 *
 * so that nearly all terms of up to 8 bytes are compared in the bucket, without another miss.
 *
 * Terms stand one after the other with their length in front: a byte, or the byte 255 and four
 * more. The start of every 16th is in an array before them. Integers are an array.
 *
 * A file is as hostile as any: nothing in it is believed until it is checked. The checksums find
 * damage, and not malice; so each use also checks the positions that it uses.
 */
#ifndef CONTENT_VOCABULARY_VOCAB_TABLE_H
#define CONTENT_VOCABULARY_VOCAB_TABLE_H

#include "content/vocabulary/vocab.h"
#include "core/hash_farm.h"

#define VOCAB_VERSION 2
#define VOCAB_BYTE_ORDER UINT32_C(0x01020304)
#define VOCAB_HASH 2 /* vocab_hash_short, vocab_hash_long */

#define VOCAB_HEADER_BYTES 4096 /* so that buckets do not straddle pages */
#define VOCAB_BUCKET_TERMS 5
#define VOCAB_INDEX_STEP 16 /* lines from one entry of the term index to the next */

#define VOCAB_MAX_COUNT (UINT64_C(1) << 30)
#define VOCAB_MAX_TERM_BYTES (UINT64_C(0xFFFFFFFF))
#define VOCAB_MAX_TEXT_BYTES (UINT64_C(1) << 40)

#define VOCAB_TAG_SHIFT 40

/* The content that the table was made from, to compare with a text. */
struct vocab_content {
    uint64_t bytes;
    uint64_t hash; /* Fingerprint64 */
    uint32_t crc;  /* CRC-32C, so that a false match would need both hashes to collide */
    uint32_t reserved;
};

struct vocab_header {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    uint32_t keys; /* enum vocab_keys */
    uint32_t hash; /* VOCAB_HASH */
    uint64_t seed;
    uint64_t count;
    uint64_t bucket_count;
    uint64_t longest_probe; /* buckets that the unluckiest term is looked for in */
    uint64_t terms_bytes;   /* after the index; of integers, 8 * count */
    uint64_t fingerprint;
    struct vocab_content content;
    uint64_t file_bytes;
    uint32_t body_crc;   /* of everything after the header's page */
    uint32_t header_crc; /* of the header up to here */
};

struct vocab_bucket {
    uint64_t keys[VOCAB_BUCKET_TERMS];
    uint32_t values[VOCAB_BUCKET_TERMS];
    uint32_t passed_on; /* bits of the terms that had no room, as vocab_pass_bit gives them */
};
_Static_assert(sizeof(struct vocab_bucket) == 64, "a bucket is a cache line");
_Static_assert(sizeof(struct vocab_header) <= VOCAB_HEADER_BYTES, "the header fits its page");

struct vocab {
    const struct vocab_bucket *buckets;
    uint64_t bucket_count;
    uint64_t longest_probe;
    uint64_t seed;
    uint32_t count;
    enum vocab_keys keys;
    const uint64_t *index; /* strings only */
    const uint8_t *terms;
    uint64_t terms_bytes;
    uint64_t fingerprint;
    struct tnd_mapped *file;
    uint64_t mapped_bytes;
};

/* Where the parts of a table lie. */
struct vocab_layout {
    uint64_t buckets, index, terms, file_bytes;
};

/* False if the numbers are out of their ranges, so that no sum can overflow. */
bool vocab_layout(enum vocab_keys keys, uint64_t count, uint64_t bucket_count, uint64_t terms_bytes,
                  struct vocab_layout *ret_layout);

/* Map an open table file, and compare its checksums, for which all of it is read. `content`, if not
 * NULL, is what it must have been made from. TUNDISH_E_CORRUPT if it is not a table, or of another
 * version or text, or damaged: build it again. The file may be closed afterwards. */
tundish_status vocab_table_map(int file, enum vocab_keys keys, const struct vocab_content *content,
                               struct vocab **ret_vocab);

/* The term at a position among the terms, or false. *ret_next is where the next one begins. */
static inline bool
vocab_term_at(const struct vocab *vocab, uint64_t position, struct byte_view *ret_term,
              uint64_t *ret_next)
{
    uint64_t left, prefix = 1, bytes;

    if (position >= vocab->terms_bytes)
        return false;
    left = vocab->terms_bytes - position;
    bytes = vocab->terms[position];
    if (bytes == 255) {
        prefix = 5;
        if (left < prefix)
            return false;
        bytes = load_u32(vocab->terms + position + 1);
    }
    if (bytes > left - prefix)
        return false;
    *ret_term = (struct byte_view){ vocab->terms + position + prefix, bytes };
    *ret_next = position + prefix + bytes;
    return true;
}

/* The terms to build a table of: a text that was split, or else one of the two arrays. */
struct vocab_terms {
    const char *name; /* in messages */
    struct vocab_text
        *text; /* vocab_text.h; its bytes are freed as soon as they are in the table */
    const struct byte_view *strings;
    const int64_t *integers;
    uint64_t count;
    const char *line_word; /* "line" or "item", in messages; counted from 1 */
};

/* The bytes of a table, in memory that the caller frees. TUNDISH_E_PIPELINE names a repeated
 * term. */
tundish_status vocab_build(const struct vocab_terms *terms, const struct vocab_content *content,
                           uint8_t **ret_table, uint64_t *ret_table_bytes);

/* The hash of terms, the same for builder and lookup.
 *
 * It was chosen by measuring (tests/bench/hash.c). ns to hash a term of up to 8 bytes; ns to look
 * one up in a table of 1,000, 100,000 and 1,000,000 terms; and the share of terms that had no room
 * in their own bucket, for terms that are counted up, as "w0012f":
 *
 *                      hash   1,000  100,000  1,000,000   no room
 *   product             1.6     5.8      5.9        6.3      2-3%
 *   product, folded     1.8     6.2      5.7        6.8      1-3%
 *   two folds (wy)      2.2     6.8      6.0        7.2      2-3%
 *   Murmur's end        2.4     7.5      6.5        7.6        3%
 *   Fingerprint64       2.4     7.2      5.9        7.2        3%
 *   FNV-1a              3.3      76       30         20    55-98%
 *   CRC-32C twice       1.8     5.6      5.5        6.4      0-3%
 *
 * So the upper bits of a product with an odd seed are as good as the best, and vectors have it in
 * one instruction. A table that comes out badly is built again with another seed.
 */

__extension__ typedef unsigned __int128 vocab_product;

#define VOCAB_HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)

/* The 128-bit product folded: each bit of the word reaches each bit of the hash. */
static inline uint64_t
vocab_fold(uint64_t word, uint64_t seed)
{
    vocab_product product = (vocab_product)(word ^ seed) * VOCAB_HASH_FACTOR;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The hash of a key that is not LONG, and of an integer. The seed is odd. */
static inline uint64_t
vocab_hash_short(uint64_t key, uint64_t seed)
{
    return key * seed;
}

/* The hash of a LONG term: up to 16 bytes as two words that may overlap, longer ones by a hash made
 * for that. */
static inline uint64_t
vocab_hash_long(struct byte_view term, uint64_t seed)
{
    if (term.size <= 16) {
        uint64_t last = vocab_fold(load_u64(term.data + term.size - 8), seed + term.size);

        return vocab_fold(load_u64(term.data) ^ last, seed);
    }
    return vocab_fold(tnd_hash_farm(term.data, term.size), seed);
}

/* The bucket of the upper bits of a hash. A table has fewer than 2^32 buckets. */
static inline uint64_t
vocab_home(uint64_t hash, uint64_t bucket_count)
{
    return (hash >> 32) * bucket_count >> 32;
}

static inline const struct vocab_bucket *
vocab_bucket_of(const struct vocab *vocab, uint64_t hash)
{
    return &vocab->buckets[vocab_home(hash, vocab->bucket_count)];
}

/* The key of a LONG term but for its position, which is in the lower bits. */
static inline uint64_t
vocab_long_key(uint64_t hash)
{
    return (hash & 0xFFFF) << VOCAB_TAG_SHIFT; /* home uses the upper bits */
}

/* The bit of a term in a bucket's `passed_on`, from its key; of a LONG one from vocab_long_key. */
static inline uint32_t
vocab_pass_bit(uint64_t key)
{
    return UINT32_C(1) << (key * VOCAB_HASH_FACTOR >> 59);
}

/* The key of a short term. The fast way reads 8 bytes whatever the term's length,
 * which cannot fault as long as they lie in one page; sanitizers cannot know that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VOCAB_READS_BEYOND 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer)
#define VOCAB_READS_BEYOND 0
#endif
#endif
#ifndef VOCAB_READS_BEYOND
#define VOCAB_READS_BEYOND 1
#endif

static inline uint64_t
vocab_short_key(struct byte_view term)
{
    static const uint64_t masks[9] = { 0,
                                       0xFF,
                                       0xFFFF,
                                       0xFFFFFF,
                                       0xFFFFFFFF,
                                       UINT64_C(0xFFFFFFFFFF),
                                       UINT64_C(0xFFFFFFFFFFFF),
                                       UINT64_C(0xFFFFFFFFFFFFFF),
                                       UINT64_MAX };
    static const uint64_t lengths[9] = { UINT64_C(1) << 56, UINT64_C(2) << 56, UINT64_C(3) << 56,
                                         UINT64_C(4) << 56, UINT64_C(5) << 56, UINT64_C(6) << 56,
                                         UINT64_C(7) << 56, UINT64_C(8) << 56, 0 };
    static const uint8_t nothing[8] = { 0 };
    const uint8_t *from = term.size > 0 ? term.data : nothing; /* a select, not a branch */
    uint64_t word = 0;

    if (VOCAB_READS_BEYOND && __builtin_expect(((uintptr_t)from & 4095) <= 4096 - 8, 1))
        word = load_u64(from) & masks[term.size];
    else
        memcpy(&word, from, term.size);
    return word | lengths[term.size];
}

static inline bool
vocab_is_short(struct byte_view term)
{
    return term.size < 8 || (term.size == 8 && term.data[7] > 8);
}

#endif
