/* literal.h - values written in the pipeline file, as values of a dtype. */
#ifndef COLUMN_LITERAL_H
#define COLUMN_LITERAL_H

#include "core/bytes.h"
#include "spec/spec.h"

/* Store a scalar at `to` (strings: a struct byte_view whose bytes are copied, never NULL, with
 * zeros after them as bytes.h asks; the caller frees them). `what` names it in a complaint: numbers
 * for numbers, within the dtype's range, and text for strings. */
tundish_status literal_store(const struct spec_value *value, tundish_dtype dtype, const char *what,
                             struct spec_errors *errors, void *to);

/* A copy of some text with 64 zeros after it; the caller frees its data. */
struct byte_view literal_text(const char *text, size_t bytes);

/* The scalars in nested lists, or 1 for a scalar; -1 if lists of one depth differ in length. */
int64_t literal_count(const struct spec_value *value);

/* All of them, in row-major order. On failure nothing is left for the caller to free. */
tundish_status literal_store_all(const struct spec_value *value, tundish_dtype dtype,
                                 const char *what, struct spec_errors *errors, void *to);

/* Bytes of one value as it is kept in memory: a string is a struct byte_view. */
size_t literal_bytes(tundish_dtype dtype);

/* Free `count` values stored by the above, and the array. Accepts NULL. */
void literal_free(void *values, tundish_dtype dtype, int64_t count);

#endif
