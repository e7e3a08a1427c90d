/* newline.h - where the ends of lines are, 64 bytes at a time. */
#ifndef SOURCE_SCAN_NEWLINE_H
#define SOURCE_SCAN_NEWLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most this many bytes in one call. */
enum { NEWLINE_BLOCK = 16 << 10 };

/* Write the positions of all newlines among `bytes` bytes, in rising order. `positions` has room
 * for bytes + 8 of them. */
size_t newline_find(const uint8_t *data, size_t bytes, uint32_t *positions);

/* The same for newlines, carriage returns and (if `quotes`) double quotes. */
size_t newline_find_marks(const uint8_t *data, size_t bytes, bool quotes, uint32_t *positions);

/* Portable forms, for tests. */
size_t newline_find_portable(const uint8_t *data, size_t bytes, uint32_t *positions);
size_t newline_find_marks_portable(const uint8_t *data, size_t bytes, bool quotes,
                                   uint32_t *positions);

#endif
