/* files.h - the files that a session has seen: opened once, scanned ahead, read by any thread.
 *
 * A file is known by a number that goes into references. Its records are found by scanning (headers
 * or line ends), by a small pool of threads that runs ahead of the order, or taken from the index
 * in the cache folder. The bytes are read again when content is made. A file that shrinks or
 * changes while it is served is an error that names it.
 */
#ifndef SOURCE_FILES_H
#define SOURCE_FILES_H

#include <stdint.h>

#include "core/status.h"

struct source_files;

struct source_files_options {
    const char *root;         /* relative paths start here; messages show them as given */
    const char *cache_folder; /* NULL: the default one */
    uint32_t reader_count;    /* threads that scan ahead; 0: scan in the caller's thread */
    uint64_t memory_limit;    /* for blocks of sources without random access; 0: none */
};

tundish_status source_files_open(const struct source_files_options *options,
                                 struct source_files **ret_files);
void source_files_close(struct source_files *files);

struct source_files_stats {
    uint64_t bytes_scanned, bytes_read, rows_read, files_opened, index_hits;
};

void source_files_stats(const struct source_files *files, struct source_files_stats *ret_stats);

#endif
