/* vocabulary_order.c - which of two terms comes first. */
#include "learn/terms/vocabulary_order.h"

#include <nettle/sha1.h>

/* The sign bit is flipped and the highest byte is first, so that memcmp orders integers. */
void
vocabulary_integer_key(int64_t integer, uint8_t ret_key[8])
{
    uint64_t key = (uint64_t)integer ^ UINT64_C(1) << 63;

    for (int i = 0; i < 8; i++)
        ret_key[i] = (uint8_t)(key >> (56 - 8 * i));
}

int64_t
vocabulary_key_integer(const uint8_t key[8])
{
    uint64_t integer = 0;

    for (int i = 0; i < 8; i++)
        integer = integer << 8 | key[i];
    return (int64_t)(integer ^ UINT64_C(1) << 63);
}

/* The most frequent first. Among equals the greater text first, as tf.Transform and Keras order
 * them. */
static int
compare_counts(const struct term *a, const struct term *b)
{
    int order = (a->count < b->count) - (a->count > b->count);

    return order != 0 ? order : term_compare_text(b, a);
}

/* Counts are not negative. */
static void
key_of_count(const struct term *term, uint64_t ret_key[2])
{
    ret_key[0] = ~(uint64_t)term->count;
    ret_key[1] = ~term_text_word(term->text, 0);
}

const struct term_order vocabulary_order_count = { compare_counts, key_of_count };

static int
compare_weights(const struct term *a, const struct term *b)
{
    int order = (a->weight < b->weight) - (a->weight > b->weight);

    return order != 0 ? order : term_compare_text(b, a);
}

/* The bits of a float64 order as integers do, once those of negative numbers are turned. Adding 0
 * makes minus zero equal to zero. */
static void
key_of_weight(const struct term *term, uint64_t ret_key[2])
{
    double weight = term->weight + 0.0;
    uint64_t bits;

    memcpy(&bits, &weight, sizeof bits);
    ret_key[0] = (bits >> 63) != 0 ? bits : ~(bits | UINT64_C(1) << 63);
    ret_key[1] = ~term_text_word(term->text, 0);
}

const struct term_order vocabulary_order_weight = { compare_weights, key_of_weight };

static void
digest(struct byte_view text, uint8_t ret_digest[SHA1_DIGEST_SIZE])
{
    struct sha1_ctx context;

    sha1_init(&context);
    sha1_update(&context, text.size, text.data);
    sha1_digest(&context, SHA1_DIGEST_SIZE, ret_digest);
}

/* By a hash of the text: an order that is random but always the same. */
static int
compare_fingerprints(const struct term *a, const struct term *b)
{
    uint8_t left[SHA1_DIGEST_SIZE], right[SHA1_DIGEST_SIZE];
    int order;

    digest(a->text, left);
    digest(b->text, right);
    order = memcmp(left, right, sizeof left);
    return order != 0 ? order : term_compare_text(a, b);
}

static void
key_of_fingerprint(const struct term *term, uint64_t ret_key[2])
{
    uint8_t bytes[SHA1_DIGEST_SIZE];

    digest(term->text, bytes);
    ret_key[0] = __builtin_bswap64(load_u64(bytes));
    ret_key[1] = __builtin_bswap64(load_u64(bytes + 8));
}

const struct term_order vocabulary_order_fingerprint = { compare_fingerprints, key_of_fingerprint };
