/* vocab_lookup.h - the blocks that looking up is done in. */
#ifndef CONTENT_VOCABULARY_VOCAB_LOOKUP_H
#define CONTENT_VOCABULARY_VOCAB_LOOKUP_H

#include "content/vocabulary/vocab_table.h"

/* As many cache lines as are on their way at once. Half as many take as long. */
#define VOCAB_BLOCK 256

/* For each of at most VOCAB_BLOCK terms its line + offset, or `absent`. Returns the bytes of
 * the shortest term, if they are strings. */
uint64_t vocab_lookup_block(const struct vocab *vocab, const struct byte_view *terms, size_t count,
                            int64_t offset, int64_t absent, int64_t *ret_values);
void vocab_lookup_integer_block(const struct vocab *vocab, const int64_t *terms, size_t count,
                                int64_t offset, int64_t absent, int64_t *ret_values);

/* How many of them equal `value`. */
uint64_t vocab_count_equal(const int64_t *values, size_t count, int64_t value);

#endif
