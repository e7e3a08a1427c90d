/* rows_out.h - transformed rows as JSON lines, TFRecord of Examples, or a .npy file a column. */
#ifndef COMMANDS_ROWS_OUT_H
#define COMMANDS_ROWS_OUT_H

#include "batch/output.h"

struct rows_out;

bool rows_out_knows(const char *form); /* jsonl, npy, tfrecord */

/* jsonl and tfrecord go to standard output, npy into `folder`. */
tundish_status rows_out_open(const char *form, const char *folder, const struct schema *columns,
                             struct rows_out **ret_out);
tundish_status rows_out_put(struct rows_out *out, const struct output_column *columns);
tundish_status rows_out_finish(struct rows_out *out);
void rows_out_close(struct rows_out *out); /* accepts NULL */

/* rows_npy.c: Columns of numbers as files that NumPy loads, written as the rows come. */
struct rows_npy;

tundish_status rows_npy_open(const char *folder, const struct schema *columns,
                             struct rows_npy **ret_npy);
tundish_status rows_npy_put(struct rows_npy *npy, const struct output_column *columns);

/* Write how many rows there were, and give the files their names. */
tundish_status rows_npy_finish(struct rows_npy *npy);
void rows_npy_close(struct rows_npy *npy); /* accepts NULL; removes unfinished files */

#endif
