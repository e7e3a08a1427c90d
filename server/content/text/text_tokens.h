/* text_tokens.h - texts to tokens: standardized and split in one pass over the bytes. */
#ifndef CONTENT_TEXT_TEXT_TOKENS_H
#define CONTENT_TEXT_TEXT_TOKENS_H

#include <stdbool.h>

#include "column/scratch.h"
#include "core/bytes.h"

enum text_split { SPLIT_NONE, SPLIT_WHITESPACE, SPLIT_CHARACTER };

struct text_rules {
    bool lower; /* ASCII letters only */
    bool strip; /* drop the 32 ASCII punctuation bytes */
    enum text_split split;
    int64_t most; /* tokens of a text that are wanted; -1: all */
};

/* Tokens of some texts, and the bytes they are views of. Reused from text to text. */
struct text_tokens {
    struct scratch *scratch;
    struct byte_view *views;
    int64_t count, capacity;
    uint8_t *bytes; /* standardized texts */
    uint64_t used, bytes_capacity;
};

/* Append the tokens of a text with 64 readable bytes after it. Views stay valid until
 * text_tokens_clear. */
typedef void text_tokenize(const struct text_rules *rules, struct byte_view text,
                           struct text_tokens *tokens);

/* The fastest one that this machine has. All of them give the same. */
text_tokenize *text_tokenize_best(void);

/* Forget all tokens, and make room for texts of `bytes` bytes in all. */
void text_tokens_clear(struct text_tokens *tokens, uint64_t bytes, int64_t texts);

#endif
