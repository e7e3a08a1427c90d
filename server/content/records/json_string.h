/* json_string.h - the value of a JSON string (RFC 8259). */
#ifndef CONTENT_RECORDS_JSON_STRING_H
#define CONTENT_RECORDS_JSON_STRING_H

#include "core/bytes.h"

/* Scan from after the opening quote to the closing one, where *at is left. Returns NULL, or the
 * fault, with *at at it. Without escapes the string is the text between. Half of a surrogate pair
 * passes, as in Python's json: only a string that is decoded must be UTF-8. 8 bytes after `end` can
 * be read. */
const char *json_string_scan(const uint8_t **at, const uint8_t *end, bool *ret_has_escapes);

/* The same for a string that was scanned, its escapes undone at `to`, which needs no more room than
 * the string as it is written. Returns NULL, or that it has half of a surrogate pair. */
const char *json_string_decode(const uint8_t **at, const uint8_t *end, uint8_t *to,
                               uint64_t *ret_size);

#endif
