/* rows_in.h - rows from a stream of bytes: lines of CSV or JSON, TFRecord. */
#ifndef COMMANDS_ROWS_IN_H
#define COMMANDS_ROWS_IN_H

#include <stdio.h>

#include "inference/transform.h"

struct rows_in;

bool rows_in_knows(const char *form); /* csv, jsonl, tfrecord */

/* JSON objects of named columns, where the stream does not take lines as they are. */
tundish_status rows_in_open(FILE *file, const char *form, const struct transform *transform,
                            struct rows_in **ret_in);
void rows_in_close(struct rows_in *in); /* accepts NULL */

/* At most `most` rows: as records, or (records NULL) as columns. *ret_count 0: that was all. They
 * live in scratch. */
tundish_status rows_in_next(struct rows_in *in, struct scratch *scratch, int64_t most,
                            const struct byte_view **ret_records, const struct column **ret_rows,
                            int64_t *ret_count);
uint64_t rows_in_taken(const struct rows_in *in);

#endif
