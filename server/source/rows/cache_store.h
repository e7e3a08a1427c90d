/* cache_store.h - the elements of a cache in a file: rows, or batches, whole.
 *
 * The file is a TFRecord file: first what the elements are of, then the elements (row_codec.h),
 * then what they were made from and how many rows the batches have. It has its name only when it is
 * whole, and is never changed: a process that makes one writes a file without a name, and of
 * several that do so at once the first to finish names it.
 */
#ifndef SOURCE_ROWS_CACHE_STORE_H
#define SOURCE_ROWS_CACHE_STORE_H

#include "source/files/files_private.h"
#include "source/rows/row_codec.h"
#include "source/rows/spool.h"
#include "source/scan/scan.h"

/* The pipeline that a cache must belong to. */
struct cache_key {
    const char *name;     /* of the file, as the user wrote it */
    uint64_t fingerprint; /* of the stages before it, and of its columns */
    uint64_t listing;     /* of the names that patterns match now; 0: none */
};

/* Consecutive batches with the same number of rows. In the file `batches` is their number; in
 * memory it is the number up to and including the last of them. */
struct cache_stretch {
    uint64_t batches, rows;
};

/* A complete one. */
struct cache_rows {
    struct source_file *file;
    const struct record_list *list; /* the elements are records 1 .. row_count */
    uint64_t row_count;
    uint64_t pass;                   /* which pass over the input it holds */
    struct cache_stretch *stretches; /* of all its elements; NULL: they are rows */
    size_t stretch_count;
};

/* Look for it: *ret_found false, and OK, if there is no file. Fails with a remedy if the file
 * belongs to another pipeline, or was made from files that have changed. */
tundish_status cache_rows_open(struct source_files *files, const struct cache_key *key,
                               const _Atomic int *stop, struct cache_rows *ret_rows,
                               bool *ret_found);

void cache_rows_close(struct cache_rows *rows); /* accepts zeros */

/* Stand at element `index`, for record_reader_next. */
tundish_status cache_rows_seek(const struct cache_rows *rows, uint64_t index,
                               struct record_reader *ret_reader);

/* One being made. */
struct cache_build {
    struct source_files *files;
    struct spool spool;
    struct row_bytes waiting; /* to be written */
    char *path;               /* the name it will have */
    char *temporary;          /* ... it has meanwhile, where a file cannot be without; else NULL */
    uint64_t row_count;
    struct row_bytes stretches;
};

tundish_status cache_build_begin(struct source_files *files, const struct cache_key *key,
                                 struct cache_build *ret_build);

/* Append an element, a batch of `rows` rows or (0) a row; *ret_words refer to it, and are good for
 * reading after the next flush. */
tundish_status cache_build_add(struct cache_build *build, const void *data, size_t bytes,
                               uint64_t rows, uint64_t *ret_words);
tundish_status cache_build_flush(struct cache_build *build);

/* Give it its name, unless another was faster. */
tundish_status cache_build_publish(struct cache_build *build, const struct cache_key *key,
                                   const struct file_set *made_of, uint64_t pass);

/* Forget it, published or not; references to its rows stay good. */
void cache_build_close(struct cache_build *build);

#endif
