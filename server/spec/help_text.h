/* help_text.h - texts for people: on a terminal and in a manual page. */
#ifndef SPEC_HELP_TEXT_H
#define SPEC_HELP_TEXT_H

#include <stdio.h>

/* Print text in indented lines of at most 78 columns, and an end of line. */
void help_print_wrapped(const char *text, int indent, FILE *out);

/* The same beside what stands on the line already, which fills `column` columns: the first `bytes`
 * of text, whose further lines are indented alike. */
void help_print_beside(const char *text, int bytes, int column, FILE *out);

/* Escape text for roff: a dot or an apostrophe at the beginning of a line is a request, a backslash
 * is an escape, and a plain - is a hyphen. The text begins a line. */
void help_print_roff(const char *text, FILE *out);

#endif
