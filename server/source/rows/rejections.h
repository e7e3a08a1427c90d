/* rejections.h - rows that a program could not make, among those that it writes.
 *
 * On the wire: a word that is made again for each run of the program, so that no data can hold it,
 * then the number of bytes of a text as a u64, and the text. It stands where a row could begin.
 * Kept beside the rows: a record that tells the row's number and the text, which is the same in
 * each run, and which no row can be. */
#ifndef SOURCE_ROWS_REJECTIONS_H
#define SOURCE_ROWS_REJECTIONS_H

#include "source/rows/row_codec.h"

enum { REJECTION_WORD_BYTES = 32, REJECTION_TEXT_MAX = 64 << 10 };

struct rejections {
    char word[REJECTION_WORD_BYTES + 1]; /* letters and digits */
    struct row_bytes record;             /* the last one that was made */
};

tundish_status rejections_open(struct rejections *rejections);
void rejections_close(struct rejections *rejections); /* accepts zeros */

/* Measure the rejection that these bytes begin with, as row_codec_measure does a row. *ret_bytes is
 * 0 if there is none. `is_all`: no bytes will follow. */
enum row_fit rejection_measure(const struct rejections *rejections, struct byte_view bytes,
                               bool is_all, size_t *ret_bytes);

/* Make the record of a whole rejection of row `row`. */
void rejection_record(struct rejections *rejections, const struct schema *schema,
                      struct byte_view bytes, uint64_t row);

/* The sentence of a record, with the row's number; its data is NULL if the bytes are none. */
struct byte_view rejection_sentence(const struct schema *schema, struct byte_view record);

#endif
