/* unpack_any.h - what is in a packed file, whatever libarchive can tell it was packed with. */
#ifndef CONTENT_UNPACK_ANY_H
#define CONTENT_UNPACK_ANY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct unpack_any;

/* The file behind `descriptor`, which stays the caller's, is read from its first byte. What is
 * wrong with it, the first call of next says. */
struct unpack_any *unpack_any_open(int descriptor);
void unpack_any_close(struct unpack_any *unpack); /* accepts NULL */

/* As unpacker_next. */
tundish_status unpack_any_next(struct unpack_any *unpack, uint8_t *to, size_t bytes,
                               size_t *ret_bytes);

#endif
