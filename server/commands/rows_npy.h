/* rows_npy.h - columns of numbers as files that NumPy loads, written as the rows come. */
#ifndef COMMANDS_ROWS_NPY_H
#define COMMANDS_ROWS_NPY_H

#include "batch/output.h"

struct rows_npy;

tundish_status rows_npy_open(const char *folder, const struct schema *columns,
                             struct rows_npy **ret_npy);
tundish_status rows_npy_put(struct rows_npy *npy, const struct output_column *columns);

/* Write how many rows there were, and give the files their names. */
tundish_status rows_npy_finish(struct rows_npy *npy);
void rows_npy_close(struct rows_npy *npy); /* accepts NULL; removes unfinished files */

#endif
