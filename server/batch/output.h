/* output.h - a column of one element as a trainer sees it: a shape and flat arrays. */
#ifndef BATCH_OUTPUT_H
#define BATCH_OUTPUT_H

#include "column/frame.h"

struct output_column {
    const struct column_spec *spec;
    int rank;
    int64_t shape[RANK_MAX]; /* RAGGED: -1 where row_splits say; SPARSE: dense */
    int64_t value_count;
    const void *values;               /* strings: struct byte_view */
    uint32_t splits_count;            /* RAGGED: how many row_splits, outermost first */
    const int64_t *splits[RANK_MAX];  /* entries from splits_count on are undefined */
    int64_t splits_lengths[RANK_MAX]; /* entries in each */
    const int64_t *indices;           /* SPARSE: value_count * rank */
};

/* All columns of a frame of one element of `schema`, or of none: a bad one that is left out, empty.
 * E_DATA: a column has not the shape that its type promises, as when a text without words was not
 * filled up. */
tundish_status output_columns(const struct frame *frame, const struct schema *schema,
                              struct scratch *scratch, struct output_column *ret_columns);

/* Column `index` of a frame of one element of `schema`. Converted values lie in scratch. */
void output_column(const struct frame *frame, const struct schema *schema, uint32_t index,
                   struct scratch *scratch, struct output_column *ret_column);

/* The same of a batch without rows: unknown dimensions are 0; if all are known, the first is. */
void output_empty(const struct column_spec *spec, struct output_column *ret_column);

/* All columns of a slice after the end of the data. `schema` is the worker's own, which may know
 * how many rows a slice has, when other workers' slices are not promised as many. */
void output_dummy(const struct schema *schema, struct output_column *ret_columns);

#endif
