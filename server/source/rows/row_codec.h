/* row_codec.h - rows as bytes: the format of a program's output and of a cache file.
 *
 * A row is its columns one after the other, in the order of the schema, without padding, numbers
 * with the least significant byte first: for each dimension whose size the schema does not know its
 * size as a u64 (in ragged and sparse columns: one for each list), then the values; a string is the
 * number of its bytes as a u64, and its bytes. Before the values of a sparse column come its dense
 * shape and the coordinates of each value, all as u64. Rows that are read are treated as hostile.
 */
#ifndef SOURCE_ROWS_ROW_CODEC_H
#define SOURCE_ROWS_ROW_CODEC_H

#include "column/frame.h"
#include "core/status.h"

/* The column of which rows cannot be written so, with the reason in *ret_reason; NULL: there is
 * none.
 */
const char *row_codec_obstacle(const struct schema *schema, const char **ret_reason);

/* The least that a row of it takes. */
uint64_t row_codec_least_bytes(const struct schema *schema);

enum row_fit {
    ROW_WHOLE,   /* the row is there: *ret_bytes of it */
    ROW_PARTIAL, /* at least *ret_bytes are needed, more than there are */
    ROW_BAD      /* no row begins like this; tnd_error_text says why */
};

enum row_fit row_codec_measure(const struct schema *schema, const uint8_t *data, size_t bytes,
                               size_t *ret_bytes);

/* Fill output->columns, whose schema it is, from whole rows. A row that is not one is rejected with
 * a sentence after the position that `where` writes. */
tundish_status row_codec_decode(const struct byte_view *rows, int64_t count, struct frame *output,
                                void (*where)(const void *context, int64_t row, char *text,
                                              size_t bytes),
                                const void *context);

/* Bytes that grow. */
struct row_bytes {
    uint8_t *data;
    size_t used, room;
};

void row_bytes_add(struct row_bytes *bytes, const void *data, size_t count);

/* Append element `element` of the frame. */
void row_codec_encode(const struct frame *frame, int64_t element, struct row_bytes *bytes);

#endif
