/* remote_files.h - whole files at URLs, one after the other, fetched ahead. */
#ifndef CONTENT_RECORDS_REMOTE_FILES_H
#define CONTENT_RECORDS_REMOTE_FILES_H

#include <stdbool.h>

#include "column/scratch.h"
#include "core/bytes.h"
#include "core/status.h"
#include "spec/spec.h"

struct remote_files;

bool remote_files_is_url(struct byte_view path);

/* The URLs stay the caller's, as long as the files are open. */
tundish_status remote_files_open(const struct spec_remote *options, const struct byte_view *urls,
                                 size_t count, struct remote_files **ret_files);

/* The next one's bytes, in scratch; waits. A failure is that one's, and the next call is for the
 * one after it. */
tundish_status remote_files_next(struct remote_files *files, struct scratch *scratch,
                                 struct byte_view *ret_bytes);

/* The store's word on the version of the one that came last (remote/object.h); 0: none. */
uint64_t remote_files_version(const struct remote_files *files);

void remote_files_close(struct remote_files *files); /* accepts NULL */

#endif
