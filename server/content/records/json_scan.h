/* json_scan.h - JSON (RFC 8259) that nobody wants, passed over as Python's json reads it.
 *
 * NaN, Infinity and -Infinity are numbers, and half of a surrogate pair is a character. Nothing is
 * stored, and nesting costs no stack. Each function leaves *at after what it read, and returns
 * NULL; or the fault, with *at at it.
 */
#ifndef CONTENT_RECORDS_JSON_SCAN_H
#define CONTENT_RECORDS_JSON_SCAN_H

#include "core/bytes.h"

static inline void
json_scan_blanks(const uint8_t **at, const uint8_t *end)
{
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\n' || **at == '\r'))
        ++*at;
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?, NaN or -?Infinity */
const char *json_scan_number(const uint8_t **at, const uint8_t *end);

/* true, false and null */
const char *json_scan_word(const uint8_t **at, const uint8_t *end, const char *word);

/* Any value, blanks before it included. */
const char *json_scan_value(const uint8_t **at, const uint8_t *end);

#endif
