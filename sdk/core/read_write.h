/* read_write.h - reads and writes bytes of a file, all of them.
 *
 * A system call may do less than it was asked for, and a signal may interrupt it, on network file
 * systems also where the file is a plain one. So nobody else calls read, pread, write or pwrite
 * (scripts/check-calls). Any thread; also after fork.
 */
#ifndef TND_CORE_READ_WRITE_H
#define TND_CORE_READ_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Read again and again until `bytes` are there or the file ends: *ret_bytes says how many came.
 * Returns 0, or the kernel's error. */
int tnd_read_at(int descriptor, void *to, size_t bytes, uint64_t offset, size_t *ret_bytes);

/* The same into two buffers, what does not fit the first into the second: usually one system call.
 */
int tnd_read_both_at(int descriptor, const struct iovec to[2], uint64_t offset, size_t *ret_bytes);

/* The same from where the file stands, or from a pipe. */
int tnd_read(int descriptor, void *to, size_t bytes, size_t *ret_bytes);

/* Write all `bytes`. Returns 0, or the kernel's error: some may have been written then. */
int tnd_write_at(int descriptor, const void *from, size_t bytes, uint64_t offset);

/* The same of several buffers, one after another. The array is changed. */
int tnd_write_parts_at(int descriptor, struct iovec *parts, size_t count, uint64_t offset);

/* The same where the file stands, or to a pipe. */
int tnd_write(int descriptor, const void *from, size_t bytes);

/* Would a write to this pipe or socket be taken at once? */
bool tnd_write_allowed(int descriptor);

#endif
