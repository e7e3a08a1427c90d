/* fetch.h - the bytes of rows, read from their files in as few reads as their positions allow. */
#ifndef SOURCE_FILES_FETCH_H
#define SOURCE_FILES_FETCH_H

#include "core/bytes.h"
#include "source/source.h"

/* Fill ret_views[i] with the bytes of row i (reference i) and the `extra` bytes after them in the
 * same file. Rows may come in any order and several times. The bytes are in the output's scratch,
 * 64 more of them readable. */
tundish_status fetch_rows(const struct source_read *read, uint32_t extra,
                          struct byte_view *ret_views);

/* Read one row directly to its destination, and the `extra` bytes after it to ret_extra. For long
 * rows: each is a system call. */
tundish_status fetch_row_to(const struct source_read *read, int64_t row, uint32_t extra, void *to,
                            void *ret_extra);

/* Are there rows that another node has? They come by fetch_rows alone. */
bool fetch_needs_peers(const struct source_read *read);

/* Rows as long as this on average are worth that. */
enum { FETCH_LONG_BYTES = 16 << 10 };

/* For messages: the name of a row's file as the user wrote it. */
const char *fetch_file_name(const struct source_read *read, int64_t row);

/* The reference of row `row`. */
static inline const uint64_t *
fetch_words(const struct source_read *read, int64_t row)
{
    return &read->words[(size_t)row * read->stride];
}

#endif
