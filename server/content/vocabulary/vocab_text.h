/* vocab_text.h - the lines of a vocabulary's text. */
#ifndef CONTENT_VOCABULARY_VOCAB_TEXT_H
#define CONTENT_VOCABULARY_VOCAB_TEXT_H

#include "content/vocabulary/vocab_table.h"

/* A text file that has been read. All zeros is one that has not. */
struct vocab_text {
    const char *path; /* the caller's */
    uint8_t *bytes;
    uint64_t size;
    struct vocab_content content;
    int64_t *integers; /* after vocab_text_split, if asked for */
    uint64_t count;    /* after vocab_text_split */
};

/* Read all of an open file of `size` bytes and fingerprint it. */
tundish_status vocab_text_read(int file, const char *path, uint64_t size,
                               struct vocab_text *ret_text);

/* Find its terms, by the rules of vocab_open_file. */
tundish_status vocab_text_split(struct vocab_text *text, enum vocab_keys keys);

/* The term in the line that begins at *at, which moves to the next. There are `count` of them. */
struct byte_view vocab_text_next(const struct vocab_text *text, uint64_t *at);

/* Free the bytes. */
void vocab_text_forget(struct vocab_text *text);

void vocab_text_close(struct vocab_text *text);

#endif
