/* file_remote.h - files whose names are URLs, for file.c and for those that know what is read next.
 */
#ifndef SOURCE_FILES_FILE_REMOTE_H
#define SOURCE_FILES_FILE_REMOTE_H

#include <sys/uio.h>

#include "source/files/file.h"
#include "spec/spec.h"

/* As file_open. A file that is packed is copied, and the copy's descriptor is the result; of others
 * it is -1. */
tundish_status file_remote_open(struct source_file *file, int *ret_descriptor);

/* Is it there? Nothing of it is read. */
tundish_status file_remote_look(struct source_file *file);

/* As file_read_up_to, into two buffers. */
tundish_status file_remote_read(struct source_file *file, const struct iovec to[2], uint64_t offset,
                                size_t *ret_bytes);

/* Hints; they return at once. The file is read from `offset` on. */
void file_remote_follow(struct source_file *file, uint64_t offset);

/* The same; have as many bytes come from there on, as far as the file has them? */
bool file_remote_is_here(struct source_file *file, size_t bytes, uint64_t offset);

/* A few bytes there are read soon. */
void file_remote_expect(struct source_file *file, uint64_t offset);

/* Does reading it mean asking a server, rather than its unpacked copy? */
static inline bool
file_is_remote(const struct source_file *file)
{
    return file->is_url && file->packing == PACKING_NONE;
}

/* For a format that wants only some ranges of a file: a Parquet file's columns. One that is fetched
 * for other nodes, too, comes in parts, which are kept: several ask for the same columns. */
static inline bool
file_has_ranges(const struct source_file *file)
{
    const struct spec_remote *remote = file->services->remote;

    return file->is_url && file->format.parquet != NULL && (remote == NULL || !remote->fetch_once);
}

/* As file_read_range and file_expect_range. */
tundish_status file_remote_read_range(struct source_file *file, void *to, size_t bytes,
                                      uint64_t offset);
void file_remote_forget_tail(struct source_file *file); /* as remote_ranges_forget_tail */
void file_remote_expect_range(struct source_file *file, size_t bytes, uint64_t offset);

#endif
