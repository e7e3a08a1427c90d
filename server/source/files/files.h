/* files.h - the files that a session has seen: opened once, scanned ahead, read by any thread.
 *
 * A file is known by a number that goes into references. Its records are found by scanning (headers
 * or line ends), by a small pool of threads that runs ahead of the order, or taken from the index
 * in the cache folder. The bytes are read again when content is made. A file that shrinks or
 * changes while it is served is an error that names it. A packed file (GZIP, ZLIB) is unpacked
 * once into a file without a name in the cache folder, not into memory.
 */
#ifndef SOURCE_FILES_FILES_H
#define SOURCE_FILES_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct other_files;
struct peers;
struct listed;
struct remote_seen;
struct spec_remote;
struct source_files;

#define SOURCE_BLOCK_BYTES (UINT64_C(256) << 20)

struct source_files_options {
    const char *root;         /* relative paths start here; messages show them as given */
    const char *cache_folder; /* NULL: the default one */
    uint32_t reader_count;    /* threads that scan ahead; 0: scan in the caller's thread */
    uint64_t block_bytes;     /* memory for pieces of files that shuffled rows are read from, at
                                 most; 0: SOURCE_BLOCK_BYTES */
    uint64_t row_group_bytes; /* the same for decoded row groups of Parquet files; never more than a
                                 quarter of the memory that there is when the first one is read; 0:
                                 that */
    bool skip_damage; /* a damaged file ends where its records end, and is counted (on_error: skip)
                       */
    const struct spec_remote *remote; /* how URLs are read; NULL: the defaults */
    struct remote_seen *seen;         /* what stores said before; NULL: they are asked */
    struct listed *listed;            /* what patterns matched here before, or NULL */
    struct peers *peers;              /* by which files are read that others own; NULL: none are */
    bool are_local;                   /* with `peers`: files are those of all nodes; else those at
                                         URLs have owners */
};

tundish_status source_files_open(const struct source_files_options *options,
                                 struct source_files **ret_files);
void source_files_close(struct source_files *files);

/* The first step is made: end what was begun in advance for it and is still left (files/begun.h).
 */
void source_files_end_begun(struct source_files *files);

/* The next read of each file compares its identity, however short a time ago another did. */
void source_files_look_again(struct source_files *files);

/* Whole files of other nodes; NULL: all are here. */
const struct other_files *source_other_files(const struct source_files *files);

/* How many have been entered: the number of the next one. */
uint32_t source_files_entered(const struct source_files *files);

struct source_files_stats {
    uint64_t bytes_scanned, bytes_read, rows_read, files_opened, index_hits;
    uint64_t program_wait_ns; /* for rows that a program writes */
};

void source_files_stats(const struct source_files *files, struct source_files_stats *ret_stats);

/* How many damaged files the order has come to the end of, and the error of the last (until the
 * files are closed): each once. NULL: none. */
uint64_t source_files_damaged(struct source_files *files, const char **ret_text);

/* The report of `tundish index` on a file. */
struct source_index {
    uint64_t record_count;
    uint64_t file_bytes;
    uint64_t hash; /* identity of the content, the same on every node */
    bool is_kept;  /* in the cache folder; else the file is too small or too young to be worth it */
};

/* Go through a whole file as the stage `kind` does ("tfrecord", "text_line", "csv" with its
 * defaults), and keep its index. `progress` (may be NULL) is called now and then with the bytes
 * gone through; the thread that calls is the caller's. */
tundish_status source_index_build(struct source_files *files, const char *path, const char *kind,
                                  void (*progress)(void *context, uint64_t bytes_done),
                                  void *context, struct source_index *ret_index);

/* For handing indexes from node to node, where files are the same. Is the file worth an index, and
 * has none here? */
bool source_index_is_wanted(struct source_files *files, const char *path, const char *kind);

/* An index that is kept, as bytes that the caller frees. E_TIMEOUT: it is not. */
tundish_status source_index_export(struct source_files *files, const char *path, const char *kind,
                                   uint8_t **ret_bytes, size_t *ret_byte_count);

/* Keep such bytes as the index of this machine's file, which must have the same size. E_CORRUPT,
 * E_DATA: they are not what they should be. */
tundish_status source_index_import(struct source_files *files, const char *path, const char *kind,
                                   const uint8_t *bytes, size_t byte_count);

#endif
