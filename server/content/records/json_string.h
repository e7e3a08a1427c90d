/* json_string.h - the value of a JSON string (RFC 8259). */
#ifndef CONTENT_JSON_STRING_H
#define CONTENT_JSON_STRING_H

#include "core/bytes.h"

/* Scan from after the opening quote to the closing one, where *at is left. Returns NULL, or the
 * fault, with *at at it. Without escapes the string is the text between. */
const char *json_string_scan(const uint8_t **at, const uint8_t *end, bool *ret_has_escapes);

/* The same for a string that was scanned, its escapes undone at `to`, which needs no more room than
 * the string as it is written. */
const char *json_string_decode(const uint8_t **at, const uint8_t *end, uint8_t *to,
                               uint64_t *ret_size);

#endif
