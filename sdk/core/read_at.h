/* read_at.h - reads the bytes at an offset of a file. */
#ifndef TND_CORE_READ_AT_H
#define TND_CORE_READ_AT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* pread, again and again until `bytes` are there or the file ends: *ret_bytes says how many came.
 * Returns 0, or the kernel's error. */
int tnd_read_at(int descriptor, void *to, size_t bytes, uint64_t offset, size_t *ret_bytes);

/* The same into two buffers, what does not fit the first into the second: usually one system call.
 */
int tnd_read_both_at(int descriptor, const struct iovec to[2], uint64_t offset, size_t *ret_bytes);

#endif
