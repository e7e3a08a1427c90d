/* content_sum.h - a hash of all bytes of a file, by which copies on two machines are compared.
 *
 * It is made once: the cache folder keeps it beside the indexes, for the file as stat shows it
 * (path, device, inode, size, times of change to the nanosecond). Not for a file younger than two
 * seconds, nor for a small one. A URL's is made of its size and ETag or date: nothing is read.
 */
#ifndef SOURCE_FILES_CONTENT_SUM_H
#define SOURCE_FILES_CONTENT_SUM_H

#include "source/files/file.h"

/* Has this file such a hash? Not if it is packed, another node's, or a URL without ETag and date.
 * It was opened once. */
bool content_sum_applies(struct source_file *file);

/* If it can be had without reading the file, note it in the file. 0: it cannot. */
uint64_t content_sum_recall(struct source_file *file);

/* Read the file, note the hash in it, and keep it. E_TIMEOUT: *stop was not 0. */
tundish_status content_sum_make(struct source_file *file, const _Atomic int *stop);

#endif
