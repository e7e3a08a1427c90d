/* number_store.h - a number as it is written, as a value of a dtype. */
#ifndef CONTENT_RECORDS_NUMBER_STORE_H
#define CONTENT_RECORDS_NUMBER_STORE_H

#include "column/schema.h"

/* Store it at `to`: integers (and bool, 0 or 1) are digits that fit, floats as number.h has them.
 * Strings are not numbers. 64 bytes after the text can be read. */
bool number_store(tundish_dtype dtype, const uint8_t *text, uint64_t size, void *to);

#endif
