/* tundish_transform.h - preprocess rows as training did, without a server.
 *
 *     tundish_transform_options options = TUNDISH_TRANSFORM_OPTIONS_INIT;
 *
 *     status = tundish_transform_open("clicks.yaml", &options, &transform);
 *     status = tundish_transformer_open(transform, &transformer);
 *     status = tundish_transform_records(transformer, &example, 1);
 *     status = tundish_transform_tensor(transformer, 0, &tensor);
 *
 * Applies the content stages of a pipeline file, with the statistics of `tundish analyze`, by the
 * server's own code: the columns are the same, bit for bit. Link libtundish_transform.
 *
 * Ownership: the caller closes each handle that an *_open call returns. Tensors are lent: they live
 *            until the next call that transforms rows with the same transformer. A column that no
 *            stage changes comes out as it went in: its tensor lies in the caller's memory.
 * Threads:   an open transform is constant; each thread needs its own transformer. In the steady
 *            state a call allocates nothing.
 * Errors:    as in tundish.h; tundish_transform_last_error explains. Bad input is always a status.
 *            Unlike libtundish this library ENDS THE PROCESS, after a message on standard error,
 *            when memory runs out (exit status 3) and when it detects a bug of its own (abort),
 *            because it is the server's code. A program that must survive both runs it in a process
 *            of its own.
 */
#ifndef TUNDISH_TRANSFORM_H
#define TUNDISH_TRANSFORM_H

#include <tundish/tundish.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tundish_transform tundish_transform;
typedef struct tundish_transformer tundish_transformer;

/* Allocated by the caller, so it starts with its own size. NULL means "default". */
typedef struct tundish_transform_options {
    size_t size;
    const char *stream;   /* default: the only stream, or the file's learn_from */
    const char *until;    /* last stage to apply, by name; default: all stages */
    const char *root;     /* folder for relative paths; default: the pipeline file's */
    const char *analysis; /* folder of learned statistics; default: analysis/FILE beside FILE */
    const char *cache;    /* folder for compiled vocabularies; default: $TUNDISH_CACHE and so on */
} tundish_transform_options;

#ifdef __cplusplus
#define TUNDISH_TRANSFORM_OPTIONS_INIT                                                             \
    []() -> tundish_transform_options {                                                            \
        tundish_transform_options options_ = {};                                                   \
        options_.size = sizeof options_;                                                           \
        return options_;                                                                           \
    }()
#else
#define TUNDISH_TRANSFORM_OPTIONS_INIT                                                             \
    {                                                                                              \
        .size = sizeof(tundish_transform_options)                                                  \
    }
#endif

/* Read a pipeline file. E_PIPELINE: the file has errors, or statistics are missing or were learned
 * with other stages; tundish_transform_last_error lists all errors. */
TUNDISH_API tundish_status tundish_transform_open(const char *path,
                                                  const tundish_transform_options *options,
                                                  tundish_transform **ret_transform);
TUNDISH_API void tundish_transform_close(tundish_transform *transform); /* accepts NULL */

/* The columns of one input row, and of all output rows together: these have a first dimension of
 * rows, even if the stream has no batch stage. */
TUNDISH_API const tundish_spec *tundish_transform_inputs(const tundish_transform *transform);
TUNDISH_API const tundish_spec *tundish_transform_outputs(const tundish_transform *transform);

TUNDISH_API tundish_status tundish_transformer_open(const tundish_transform *transform,
                                                    tundish_transformer **ret_transformer);
TUNDISH_API void tundish_transformer_close(tundish_transformer *transformer); /* accepts NULL */

/* A byte string; may hold any bytes. */
typedef struct tundish_bytes {
    const void *data;
    size_t size;
} tundish_bytes;

/* Transform records as the stream's source reads them: serialized Examples, CSV lines (without line
 * ends), JSON. All rows of a call make one batch. E_DATA: a row is bad, which the error's text
 * names by its number from 0, and there is no output. */
TUNDISH_API tundish_status tundish_transform_records(tundish_transformer *transformer,
                                                     const tundish_bytes *records,
                                                     size_t record_count);

/* A column of input rows: the values of all rows, one after the other, in row-major order; dtype
 * string: an array of tundish_bytes. A row's shape may have one unknown dimension; counts then has
 * its size for each row. */
typedef struct tundish_transform_column {
    const void *values;
    const int64_t *counts; /* row_count, or NULL */
} tundish_transform_column;

/* Transform rows of named columns: those of tundish_transform_inputs, in that order. */
TUNDISH_API tundish_status tundish_transform_rows(tundish_transformer *transformer,
                                                  const tundish_transform_column *columns,
                                                  uint32_t column_count, size_t row_count);

/* Output column `index`. */
TUNDISH_API tundish_status tundish_transform_tensor(tundish_transformer *transformer,
                                                    uint32_t index,
                                                    const tundish_tensor **ret_tensor);

/* Explains this thread's last failed call of this library; never NULL. */
TUNDISH_API const char *tundish_transform_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
