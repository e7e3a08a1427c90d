/* fuzz_regex.c - a pattern, a zero, and a text: refused with a complaint, or matched without harm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "inference/transform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { PATTERN_BYTES = 40, TEXT_BYTES = 60 };

/* As a quoted scalar of YAML: letters beyond ASCII stand for those of Latin 1. */
static void
quote(const uint8_t *pattern, size_t bytes, char *to)
{
    *to++ = '"';
    for (size_t i = 0; i < bytes; i++)
        to += sprintf(to, "\\x%02x", pattern[i]);
    strcpy(to, "\"");
}

static struct transform *
open_pattern(const uint8_t *pattern, size_t bytes)
{
    char quoted[4 * PATTERN_BYTES + 3], text[sizeof quoted + 256];
    const struct transform_options options = { .path = "rows", .root = "/", .text = text };
    struct spec_errors errors = { 0 };
    struct transform *transform = NULL;

    quote(pattern, bytes, quoted);
    snprintf(text, sizeof text,
             "streams:\n  a:\n    dataset:\n      - from_tensor_slices: {x: [text]}\n"
             "      - regex_replace: {pattern: %s, rewrite: \"<\\\\0>\"}\n",
             quoted);
    must(transform_open(&options, &errors, &transform) == TUNDISH_OK || errors.count > 0);
    spec_errors_close(&errors);
    return transform;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *zero = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    size_t pattern_bytes = zero != NULL ? (size_t)(zero - data) : bytes;
    size_t size = zero != NULL ? bytes - pattern_bytes - 1 : 0;
    struct transform *transform;
    struct transformer *transformer;
    const struct output_column *columns;
    struct byte_view record;
    uint8_t *copy;

    if (pattern_bytes > PATTERN_BYTES || size > TEXT_BYTES)
        return 0;
    transform = open_pattern(data, pattern_bytes);
    if (transform == NULL)
        return 0;
    transformer = transformer_open(transform);
    copy = scratch_alloc(transformer_begin(transformer), size + 64);
    if (size > 0)
        memcpy(copy, zero + 1, size);
    record = (struct byte_view){ copy, size };
    (void)transformer_run_records(transformer, &record, 1, &columns);
    transformer_close(transformer);
    transform_close(transform);
    return 0;
}
