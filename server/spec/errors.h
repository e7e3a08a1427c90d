/* errors.h - everything that is wrong with a pipeline file, all at once.
 *
 * Parser, plan and stages add to one list; the command prints it as file:line:column: sentence.
 */
#ifndef SPEC_ERRORS_H
#define SPEC_ERRORS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct spec_error {
    uint32_t line, column; /* from 1; 0: the file as a whole */
    char *text;
};

struct spec_errors {
    const char *path; /* for printing; set by spec_open */
    size_t count;
    struct spec_error *list;
};

/* Add an error and return TUNDISH_E_PIPELINE. Errors at the same position with the same text are
 * kept once. At most 100 are kept. */
tundish_status spec_complain(struct spec_errors *errors, uint32_t line, uint32_t column,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* All of them, sorted by position, one a line. */
char *spec_errors_text(const struct spec_errors *errors); /* the caller frees */

void spec_errors_close(struct spec_errors *errors);

/* The nearest of `count` words to `word`, letter case aside (else edit distance at most a third of
 * its length, at least 1), or NULL. */
const char *spec_nearest(const char *word, const char *const *words, size_t count);

/* "; did you mean WORD?" of what spec_nearest found, with a quote on both sides; "" for NULL. */
struct spec_hint {
    char text[96];
};
struct spec_hint spec_hint(const char *nearest, const char *quote);

#endif
