/* column_bytes.h - columns of batches as bytes, for comparing them with others later. */
#ifndef COMMANDS_COLUMN_BYTES_H
#define COMMANDS_COLUMN_BYTES_H

#include "batch/output.h"

struct column_bytes; /* of one column; an array of them is a batch's */

/* Copies, which the caller closes. A column without a spec is none. */
struct column_bytes *column_bytes_open(const struct output_column *columns, size_t count);
void column_bytes_close(struct column_bytes *bytes, size_t count);

/* Are the columns the same, bit by bit? E_CORRUPT: one is not, and tnd_error_text names it. */
tundish_status column_bytes_compare(const struct column_bytes *bytes,
                                    const struct output_column *columns, size_t count);

#endif
