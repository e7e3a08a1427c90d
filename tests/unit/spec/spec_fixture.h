/* spec_fixture.h - pipeline files from strings, for the tests of server/spec. */
#ifndef TEST_SPEC_FIXTURE_H
#define TEST_SPEC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "spec/spec.h"

/* What is wrong with `text`, one error a line as line:column: sentence; "" if nothing is. The
 * caller frees. */
static inline char *
errors_in(const char *text)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    tundish_status status = spec_open_text(text, strlen(text), "f", ".", &errors, &file);
    char *listed = spec_errors_text(&errors);
    char *bare = calloc(strlen(listed) + 1, 1);
    char *line = strtok(listed, "\n");

    assert_int_equal(status, errors.count > 0 ? TUNDISH_E_PIPELINE : TUNDISH_OK);
    assert_true((file == NULL) == (errors.count > 0));
    for (; line != NULL; line = strtok(NULL, "\n")) {
        strcat(bare, line + 2);
        strcat(bare, "\n");
    }
    free(listed);
    spec_errors_close(&errors);
    spec_close(file);
    return bare;
}

/* Exactly these errors. */
static inline void
assert_errors(const char *text, const char *expected)
{
    char *found = errors_in(text);

    assert_string_equal(found, expected);
    free(found);
}

/* One of the errors holds these words. */
static inline void
assert_error_has(const char *text, const char *words)
{
    char *found = errors_in(text);

    if (strstr(found, words) == NULL)
        fail_msg("expected \"%s\" in:\n%s\nfor:\n%s", words, found, text);
    free(found);
}

static inline struct spec_file *
parse(const char *text)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    tundish_status status = spec_open_text(text, strlen(text), "f", ".", &errors, &file);

    if (status != TUNDISH_OK) {
        char *listed = spec_errors_text(&errors);

        fail_msg("%s\nfor:\n%s", listed, text);
    }
    spec_errors_close(&errors);
    return file;
}

/* A file with one stream `case` of these stages, each a flow mapping or a name: "range: 5". */
#define STREAM_OF(...) stream_of((const char *const[]){ __VA_ARGS__, NULL })

static inline const char *
stream_of(const char *const *stages)
{
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "streams:\n  case:\n    dataset:\n");

    for (; *stages != NULL; stages++)
        used += (size_t)snprintf(text + used, sizeof text - used, "      - %s\n", *stages);
    return text;
}

static inline const struct spec_stage *
stage_of(const struct spec_file *file, uint32_t index)
{
    assert_true(index < file->streams[0].dataset.stage_count);
    return &file->streams[0].dataset.stages[index];
}

#endif
