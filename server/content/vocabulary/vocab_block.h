/* vocab_block.h - a block of terms on its way through a lookup, between its two passes. */
#ifndef CONTENT_VOCABULARY_VOCAB_BLOCK_H
#define CONTENT_VOCABULARY_VOCAB_BLOCK_H

#include "content/vocabulary/vocab_lookup.h"

/* The result of a term is line + offset, or `absent`. */
struct vocab_block {
    uint64_t keys[VOCAB_BLOCK]; /* of LONG terms vocab_long_key */
    const struct vocab_bucket *homes[VOCAB_BLOCK];
    uint16_t longs[VOCAB_BLOCK]; /* which terms are LONG */
    size_t count;
    size_t long_count;
    uint64_t shortest; /* bytes of the shortest term */
    int64_t offset;
    int64_t absent;
};

/* First pass: keys and homes of the terms, whose buckets are prefetched. */
void vocab_block_ask(const struct vocab *vocab, const struct byte_view *terms,
                     struct vocab_block *block);
void vocab_block_ask_integers(const struct vocab *vocab, const int64_t *terms,
                              struct vocab_block *block);

#endif
