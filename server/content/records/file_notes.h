/* file_notes.h - whole files that rows name, noted as they are read: a file by a sum of its bytes,
 * an object at a URL by what its store says of its version. A helper notes them, for its server to
 * compare with its own. */
#ifndef CONTENT_RECORDS_FILE_NOTES_H
#define CONTENT_RECORDS_FILE_NOTES_H

#include "core/bytes.h"

struct file_notes {
    void *context;

    /* `version` 0: the store says nothing. The path is as the row has it. */
    void (*add)(void *context, struct byte_view path, uint64_t version);
};

/* A file of `bytes` bytes is summed piece by piece: begin, then each piece but the last has
 * FILE_SUM_PIECE_BYTES. Never 0. */
enum { FILE_SUM_PIECE_BYTES = 256 << 10 };
uint64_t file_sum_begin(uint64_t bytes);
uint64_t file_sum_add(uint64_t sum, const void *piece, size_t bytes);

/* `notes` is NULL where nobody asks for them. */
void file_notes_add(const struct file_notes *notes, struct byte_view path, struct byte_view bytes);

#endif
