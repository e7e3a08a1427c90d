/* transform.h - a stream's content part by itself: rows go in, the columns that a trainer would get
 * come out, made by the same code. No order, no files, no server.
 *
 * The input is the columns that the stream's last source yields: inside an interleave or
 * flat_map the one in its dataset, where zip and its like unite several what they yield together,
 * if no content stage stands in those.
 * Stages that decide order are passed over; `batch` makes one batch of all rows that go in
 * together; random layers work as without training. */
#ifndef INFERENCE_TRANSFORM_H
#define INFERENCE_TRANSFORM_H

#include "batch/evaluate.h"
#include "batch/output.h"
#include "content/records/csv_fields.h"

struct transform_options {
    const char *path;   /* the pipeline file; or, with text, what messages call it */
    const char *text;   /* NULL: read the file */
    const char *root;   /* NULL: the file's folder */
    const char *stream; /* NULL: the only one, or the one that is learned from */
    const char *until;  /* the last stage of this name is the last one; NULL: all */
    const char *analysis, *cache_folder;
};

struct transform;

tundish_status transform_open(const struct transform_options *options, struct spec_errors *errors,
                              struct transform **ret_transform);
void transform_close(struct transform *transform); /* accepts NULL */

/* The columns of a row that goes in, and of the rows together that come out: always with a
 * dimension of rows in front. */
const struct schema *transform_inputs(const struct transform *transform);
const struct schema *transform_outputs(const struct transform *transform);

/* Do records go in - serialized Examples, lines - as one column of strings, or as lines of CSV? */
bool transform_takes_records(const struct transform *transform);

struct transformer;

struct transformer *transformer_open(const struct transform *transform);
void transformer_close(struct transformer *transformer); /* accepts NULL */

/* Forget the results of the last call. Returns scratch memory for the input columns. */
struct scratch *transformer_begin(struct transformer *transformer);

/* Transform `count` rows. Views of strings have 64 readable bytes after them. The results live
 * until transformer_begin. E_DATA: a row is bad. */
tundish_status transformer_run(struct transformer *transformer, const struct column *columns,
                               int64_t count, const struct output_column **ret_columns);

/* The same for records. */
tundish_status transformer_run_records(struct transformer *transformer,
                                       const struct byte_view *records, int64_t count,
                                       const struct output_column **ret_columns);

/* Rows as they go in: columns, or records if columns is NULL. */
struct transformer_rows {
    const struct column *columns;
    const struct byte_view *records;
    int64_t count;
};

/* Rows failed together, with `status`. Name the first that fails alone, in the text of the error;
 * `first` is the number of the first row. Returns the status. */
tundish_status transformer_blame(struct transformer *transformer,
                                 const struct transformer_rows *rows, uint64_t first,
                                 tundish_status status);

#endif
