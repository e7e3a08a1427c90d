/* read_at.h - reads the bytes at an offset of a file. */
#ifndef TND_CORE_READ_AT_H
#define TND_CORE_READ_AT_H

#include <stddef.h>
#include <stdint.h>

/* pread, again and again until `bytes` are there or the file ends: *ret_bytes says how many came.
 * Returns 0, or the kernel's error. */
int tnd_read_at(int descriptor, void *to, size_t bytes, uint64_t offset, size_t *ret_bytes);

#endif
