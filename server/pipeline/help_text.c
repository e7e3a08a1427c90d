/* help_text.c - texts for people: on a terminal and in a manual page. */
#include "pipeline/help_text.h"

#include <stdbool.h>
#include <string.h>

/* A terminal has 80 columns. */
enum { TEXT_COLUMNS = 78 };

void
help_print_wrapped(const char *text, int indent, FILE *out)
{
    int column = 0;

    while (*text != '\0') {
        int bytes = (int)strcspn(text, " ");

        if (column > 0 && column + 1 + bytes > TEXT_COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column = fprintf(out, "%*s%.*s", indent, "", bytes, text);
        else
            column += fprintf(out, " %.*s", bytes, text);
        text += bytes;
        text += *text == ' ';
    }
    fputc('\n', out);
}

void
help_print_roff(const char *text, FILE *out)
{
    for (bool line_start = true; *text != '\0'; line_start = *text++ == '\n') {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
    }
}
