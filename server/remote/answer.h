/* answer.h - a server's answer to a request: its status line and headers, as far as they matter,
 * and what an error says in its body. All of it is hostile. No layer of HTTP: libcurl has cut the
 * lines.
 */
#ifndef REMOTE_ANSWER_H
#define REMOTE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_TAG_BYTES = 256, ANSWER_WORD_BYTES = 80, ANSWER_TEXT_BYTES = 256 };

struct answer {
    int code;
    bool has_length, has_range, has_total;
    bool is_chunked;                  /* so its length is not told */
    bool has_bad_length;              /* the length that is told is not a number */
    bool is_too_large;                /* it is a whole object where a piece was asked for */
    bool calls_expired;               /* the credentials, in its body */
    uint64_t look;                    /* ... which are of this one */
    uint64_t length;                  /* of the body */
    uint64_t first, last;             /* of the range that it is; `last` is in it */
    uint64_t total;                   /* of the whole object */
    int64_t retry_after_s;            /* -1: not said */
    int64_t retry_at_s, date_s;       /* the same as a date, and the server's own; 0: not said */
    char tag[ANSWER_TAG_BYTES];       /* ETag with its quotes, or "" */
    char modified[ANSWER_WORD_BYTES]; /* Last-Modified, or "" */
    char encoding[ANSWER_WORD_BYTES]; /* Content-Encoding, or "" */
    char region[ANSWER_WORD_BYTES];   /* of the bucket, where a store tells it */
};

/* Before the first line. A new status line (after a redirect) resets by itself. */
void answer_begin(struct answer *answer);

/* One line of the head, with or without its line end. */
void answer_line(struct answer *answer, const char *line, size_t bytes);

/* For how many seconds the server asks to be left alone; 0: it says nothing. `now_s` counts where
 * it does not tell its own time. */
int64_t answer_pause_s(const struct answer *answer, int64_t now_s);

/* The body of a store's error. */
struct answer_error {
    char code[ANSWER_WORD_BYTES]; /* AccessDenied ...; "": it has none */
    char message[ANSWER_TEXT_BYTES];
    char region[ANSWER_WORD_BYTES];
};

/* Whatever the body is, XML or not. */
void answer_read_error(const char *body, size_t bytes, struct answer_error *ret_error);

#endif
