/* errors.c - the list of complaints, and the word that was probably meant. */
#include "spec/errors.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"
#include "core/redact.h"

enum { ERRORS_MAX = 100, WORD_MAX = 64 };

/* A dataset that is named several times is checked for each, and each finds the same error. */
static bool
is_known(const struct spec_errors *errors, uint32_t line, uint32_t column, const char *text)
{
    for (size_t i = 0; i < errors->count; i++) {
        const struct spec_error *error = &errors->list[i];

        if (error->line == line && error->column == column && strcmp(error->text, text) == 0)
            return true;
    }
    return false;
}

tundish_status
spec_complain(struct spec_errors *errors, uint32_t line, uint32_t column, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    tnd_must_have(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    tnd_redact(text);
    if (errors->count >= ERRORS_MAX || is_known(errors, line, column, text)) {
        free(text);
        return TUNDISH_E_PIPELINE;
    }
    if (errors->list == NULL)
        /* Allocated whole, so that pointers into the list stay valid. */
        errors->list = tnd_zalloc(ERRORS_MAX, sizeof *errors->list);
    errors->list[errors->count++] = (struct spec_error){ line, column, text };
    return TUNDISH_E_PIPELINE;
}

static int
by_position(const void *left_, const void *right_)
{
    const struct spec_error *left = *(const struct spec_error *const *)left_;
    const struct spec_error *right = *(const struct spec_error *const *)right_;

    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    if (left->column != right->column)
        return left->column < right->column ? -1 : 1;
    return left < right ? -1
                        : left > right; /* equal positions: in the order in which they were found */
}

/* By position, as compilers report errors: checks are not in the order of the file. */
char *
spec_errors_text(const struct spec_errors *errors)
{
    const struct spec_error *sorted[ERRORS_MAX];
    const char *path = errors->path != NULL ? errors->path : "pipeline file";
    char *text;
    size_t text_bytes;
    FILE *out = open_memstream(&text, &text_bytes);

    tnd_must_have(out != NULL);
    for (size_t i = 0; i < errors->count; i++)
        sorted[i] = &errors->list[i];
    qsort(sorted, errors->count, sizeof sorted[0], by_position);
    for (size_t i = 0; i < errors->count; i++) {
        if (sorted[i]->line > 0)
            fprintf(out, "%s:%u:%u: %s\n", path, sorted[i]->line, sorted[i]->column,
                    sorted[i]->text);
        else
            fprintf(out, "%s: %s\n", path, sorted[i]->text);
    }
    if (errors->count == ERRORS_MAX)
        fprintf(out, "%s: these are the first %d errors; there may be more\n", path, ERRORS_MAX);
    tnd_must_have(fclose(out) == 0);
    return text;
}

void
spec_errors_close(struct spec_errors *errors)
{
    if (errors == NULL)
        return;
    for (size_t i = 0; i < errors->count; i++)
        free(errors->list[i].text);
    free(errors->list);
    errors->list = NULL;
    errors->count = 0;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The restricted Damerau-Levenshtein distance (optimal string alignment): letters that are
 * inserted, deleted or replaced, and neighbours that are swapped. */
static size_t
distance(const char *left, size_t left_bytes, const char *right, size_t right_bytes)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= right_bytes; j++)
        last[j] = j;
    for (size_t i = 1; i <= left_bytes; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= right_bytes; j++) {
            row[j] =
                least(last[j - 1] + (left[i - 1] != right[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[right_bytes];
}

const char *
spec_nearest(const char *word, const char *const *words, size_t count)
{
    size_t word_bytes = strlen(word);
    /* A third of the letters may be wrong: more would suggest unrelated words. */
    size_t best = word_bytes / 3 > 1 ? word_bytes / 3 : 1;
    const char *nearest = NULL;

    if (word_bytes > WORD_MAX)
        return NULL;
    /* A difference of case alone counts as none. */
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(words[i], word) == 0)
            return words[i];
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(words[i]);
        size_t edits;

        if (bytes > WORD_MAX)
            continue;
        edits = distance(word, word_bytes, words[i], bytes);
        if (edits < best || (edits == best && nearest == NULL)) {
            best = edits;
            nearest = words[i];
        }
    }
    return nearest;
}

struct spec_hint
spec_hint(const char *nearest, const char *quote)
{
    struct spec_hint hint = { "" };

    if (nearest != NULL)
        snprintf(hint.text, sizeof hint.text, "; did you mean %s%s%s?", quote, nearest, quote);
    return hint;
}
