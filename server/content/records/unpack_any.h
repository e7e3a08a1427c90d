/* unpack_any.h - the contents of a packed file in any format that libarchive recognizes. */
#ifndef CONTENT_RECORDS_UNPACK_ANY_H
#define CONTENT_RECORDS_UNPACK_ANY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct unpack_any;

/* The open file `descriptor`, which stays the caller's, is read from its first byte. The first call
 * of next reports errors in it. */
struct unpack_any *unpack_any_open(int descriptor);
void unpack_any_close(struct unpack_any *unpack); /* accepts NULL */

/* As unpacker_next. */
tundish_status unpack_any_next(struct unpack_any *unpack, uint8_t *to, size_t bytes,
                               size_t *ret_bytes);

#endif
