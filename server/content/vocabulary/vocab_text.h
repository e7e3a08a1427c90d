/* vocab_text.h - the lines of a vocabulary's text. */
#ifndef CONTENT_VOCAB_TEXT_H
#define CONTENT_VOCAB_TEXT_H

#include "content/vocabulary/vocab_table.h"

/* A text file that has been read. All zeros is one that has not. */
struct vocab_text {
    const char *path; /* the caller's */
    uint8_t *bytes;
    uint64_t size;
    struct vocab_content content;
    struct byte_view *strings; /* after vocab_text_split; into `bytes` */
    int64_t *integers;         /* after vocab_text_split, if asked for */
    uint64_t count;
};

/* Read all of an open file of `size` bytes and fingerprint it. */
tundish_status vocab_text_read(int file, const char *path, uint64_t size,
                               struct vocab_text *ret_text);

/* Find its terms, by the rules of vocab_open_file. */
tundish_status vocab_text_split(struct vocab_text *text, enum vocab_keys keys);

void vocab_text_close(struct vocab_text *text);

#endif
