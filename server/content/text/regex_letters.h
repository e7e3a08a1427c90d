/* regex_letters.h - patterns that are one letter of a set, like [.,] or \s, or a run of such
 * letters, like [^a-z]+. They are common, and a table finds them in a fraction of the time of an
 * automaton.
 */
#ifndef CONTENT_TEXT_REGEX_LETTERS_H
#define CONTENT_TEXT_REGEX_LETTERS_H

#include "content/text/regex.h"

enum regex_letter {
    LETTER_OUT,   /* of the set */
    LETTER_IN,    /* of the set */
    LETTER_UNSURE /* part of a character of several bytes, which the automaton must judge */
};

struct regex_letters {
    bool in_runs;      /* a match is as long a run as can be */
    uint8_t kind[256]; /* of each byte */
};

/* False: the pattern, which `regex` was made of, is something else. */
bool regex_letters_open(const struct regex *regex, const char *pattern, size_t bytes,
                        struct regex_letters *ret_letters);

#endif
