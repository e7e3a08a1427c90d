/* yaml_breaks.h - letters that end a line in YAML 1.1, and not in YAML 1.2.
 *
 * libyaml takes U+0085, U+2028 and U+2029 for line breaks: it folds them, and drops the blanks
 * around them. So it reads a copy in which private letters, which the file has none of, stand for
 * them. */
#ifndef SPEC_YAML_BREAKS_H
#define SPEC_YAML_BREAKS_H

#include <stdbool.h>
#include <stddef.h>

enum { YAML_BREAKS = 3 };

/* Begins with zeros. */
struct yaml_breaks {
    char *text; /* for libyaml: of as many characters as the file; NULL: it has no such letter */
    size_t text_bytes;
    unsigned char stand_ins[YAML_BREAKS][3];
};

/* False: the file uses all private letters. */
bool yaml_breaks_hide(const char *text, size_t text_bytes, struct yaml_breaks *ret_breaks);
void yaml_breaks_close(struct yaml_breaks *breaks);

/* Put the letters back into a scalar of that text, in place. Returns how many bytes it has. */
size_t yaml_breaks_restore(const struct yaml_breaks *breaks, char *scalar, size_t scalar_bytes);

#endif
