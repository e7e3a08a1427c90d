/* file_kind.h - what a file is by its first bytes, for sentences about one that is in the wrong
 * place. */
#ifndef CONTENT_RECORDS_FILE_KIND_H
#define CONTENT_RECORDS_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_KIND_BYTES = 512 }; /* are looked at */

/* "a TIFF image", "zstd data", or NULL. `bytes` of the file's beginning are at hand. */
const char *file_kind(const uint8_t *begin, size_t bytes);

/* Is it one that PACKING_ANY unpacks? */
bool file_kind_is_packed(const uint8_t *begin, size_t bytes);

/* "; the bytes are " and the kind, or "": to end a sentence with. Kept until the thread's next
 * call. */
const char *file_kind_note(const uint8_t *begin, size_t bytes);

#endif
