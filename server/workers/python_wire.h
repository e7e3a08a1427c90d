/* python_wire.h - columns of some elements, in memory that an interpreter maps too.
 *
 * A message is a head, a record for each column, and what these point to, all by offsets from the
 * message's beginning in multiples of 64. Numbers are as in memory; strings are offsets and bytes;
 * a level is a size, or -1 and splits. So numpy takes a column as it lies, whatever its number of
 * rows. sdk/python/tundish/worker.py is the other side.
 *
 * An answer is hostile: the user's code may write anywhere in it, also while it is read. So each
 * number is copied before it is looked at, and no view into shared memory is left.
 */
#ifndef WORKERS_PYTHON_WIRE_H
#define WORKERS_PYTHON_WIRE_H

#include "column/frame.h"
#include "core/status.h"

/* The parts of a request besides the columns. */
struct python_request {
    const struct frame *input;
    const uint32_t *columns; /* of the input, in the order they are sent */
    uint32_t column_count;
    int64_t seed;
    const uint64_t *ordinals; /* one for each element; NULL: nothing is drawn */
    const uint8_t *barred;    /* elements that are not to be tried (1); NULL: none */
    bool one_by_one;          /* call it for each element, even if it takes many */
};

/* The bytes of the request, which is written to `to` (64-byte aligned) unless that is NULL. */
size_t python_wire_write(const struct python_request *request, uint8_t *to);

/* Read an answer of `bytes` bytes: columns[i] of the output is column i of the answer. Elements
 * that it rejects are frame_reject's, in the words of the answer. E_CORRUPT: it is none, and
 * tnd_error_text says why. */
tundish_status python_wire_read(const uint8_t *answer, size_t bytes, const uint32_t *columns,
                                uint32_t column_count, struct frame *output);

/* Read the columns that an interpreter describes, and append them. E_CORRUPT as above. */
tundish_status python_wire_read_columns(const uint8_t *described, size_t bytes,
                                        struct schema *schema);

#endif
