/* help_text.c - texts for people: on a terminal and in a manual page. */
#include "spec/help_text.h"

#include <stdbool.h>
#include <string.h>

/* A terminal has 80 columns. */
enum { TEXT_COLUMNS = 78 };

/* Print `length` bytes of text; `column` is where the line stands, 0 at its beginning. */
static void
print_words(const char *text, int length, int column, int indent, FILE *out)
{
    const char *end = text + length;
    bool is_first = true;

    while (text < end) {
        int bytes = (int)strcspn(text, " ");

        bytes = bytes < end - text ? bytes : (int)(end - text);
        if (!is_first && column + 1 + bytes > TEXT_COLUMNS) {
            fputc('\n', out);
            column = 0;
            is_first = true;
        }
        if (is_first)
            column = fprintf(out, "%*s%.*s", column > 0 ? 0 : indent, "", bytes, text) + column;
        else
            column += fprintf(out, " %.*s", bytes, text);
        is_first = false;
        text += bytes;
        text += text < end && *text == ' ';
    }
    fputc('\n', out);
}

void
help_print_wrapped(const char *text, int indent, FILE *out)
{
    print_words(text, (int)strlen(text), 0, indent, out);
}

void
help_print_beside(const char *text, int bytes, int column, FILE *out)
{
    print_words(text, bytes, column, column, out);
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
