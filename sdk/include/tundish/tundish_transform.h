/* tundish_transform.h - preprocess rows as training did, without a server.
 *
 *     tundish_transform_options options = TUNDISH_TRANSFORM_OPTIONS_INIT;
 *
 *     status = tundish_transform_open("clicks.yaml", &options, &transform);
 *     status = tundish_transformer_open(transform, &transformer);
 *     status = tundish_transform_records(transformer, &example, 1);
 *     status = tundish_transform_tensor(transformer, 0, &tensor);
 *
 * The content stages of a pipeline file, with what `tundish analyze` learned, applied by the code
 * that serves: the same columns, bit for bit. Link libtundish_transform; no server is needed.
 *
 * Ownership: *_open gives a handle the caller closes. Tensors are lent: they live until the next
 *            call that transforms rows with the same transformer.
 * Threads:   a transform is constant once it is open; each thread has a transformer of its own.
 *            In the steady state a call allocates nothing.
 * Errors:    as in tundish.h; tundish_transform_last_error explains. Bad input is always a status.
 *            Unlike libtundish this library ENDS THE PROCESS, after a sentence on standard error,
 *            when the kernel gives no memory (exit status 3) and when it finds a defect of its own
 *            (abort): it is the server's own code. A program that must survive both runs it in a
 *            process of its own.
 */
#ifndef TUNDISH_TRANSFORM_H
#define TUNDISH_TRANSFORM_H

#include <tundish/tundish.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tundish_transform tundish_transform;
typedef struct tundish_transformer tundish_transformer;

/* Made by the caller, so it starts with its own size. NULL means "default". */
typedef struct tundish_transform_options {
    size_t size;
    const char *stream;   /* which stream; the only one, or the one that is learned from */
    const char *until;    /* stop behind the last stage of this name; all stages */
    const char *root;     /* relative paths start here; the pipeline file's folder */
    const char *analysis; /* what was learned lies here; analysis/ beside the file */
    const char *cache;    /* compiled vocabularies are kept here; $TUNDISH_CACHE and so on */
} tundish_transform_options;

#define TUNDISH_TRANSFORM_OPTIONS_INIT                                                             \
    {                                                                                              \
        .size = sizeof(tundish_transform_options)                                                  \
    }

/* Read a pipeline file. E_PIPELINE: it is wrong, or statistics are missing or of other stages;
 * tundish_transform_last_error lists all that is. */
TUNDISH_API tundish_status tundish_transform_open(const char *path,
                                                  const tundish_transform_options *options,
                                                  tundish_transform **ret_transform);
TUNDISH_API void tundish_transform_close(tundish_transform *transform); /* accepts NULL */

/* The columns of one row that goes in, and of the rows together that come out: those have a
 * dimension of rows in front, whether or not the stream has a batch stage. */
TUNDISH_API const tundish_spec *tundish_transform_inputs(const tundish_transform *transform);
TUNDISH_API const tundish_spec *tundish_transform_outputs(const tundish_transform *transform);

TUNDISH_API tundish_status tundish_transformer_open(const tundish_transform *transform,
                                                    tundish_transformer **ret_transformer);
TUNDISH_API void tundish_transformer_close(tundish_transformer *transformer); /* accepts NULL */

/* Some bytes, any of them. */
typedef struct tundish_bytes {
    const void *data;
    size_t size;
} tundish_bytes;

/* Transform records: serialized Examples, lines of CSV (without their ends), JSON - whatever the
 * stream's source yields as its only column of strings, or what its csv source reads. All rows of
 * a call make one batch. E_DATA: a row is bad; nothing comes out then. */
TUNDISH_API tundish_status tundish_transform_records(tundish_transformer *transformer,
                                                     const tundish_bytes *records,
                                                     size_t record_count);

/* A column of rows that go in: values of all rows, one after the other, in row-major order; of
 * dtype string, tundish_bytes. Where the row's shape has an unknown dimension (one at most), counts
 * has for each row how long it is. */
typedef struct tundish_transform_column {
    const void *values;
    const int64_t *counts; /* row_count, or NULL */
} tundish_transform_column;

/* Transform rows of named columns: one for each of tundish_transform_inputs, in that order. */
TUNDISH_API tundish_status tundish_transform_rows(tundish_transformer *transformer,
                                                  const tundish_transform_column *columns,
                                                  uint32_t column_count, size_t row_count);

/* Column `index` of what came out. */
TUNDISH_API tundish_status tundish_transform_tensor(tundish_transformer *transformer,
                                                    uint32_t index,
                                                    const tundish_tensor **ret_tensor);

/* This thread's explanation of the last call of this library that failed; never NULL. */
TUNDISH_API const char *tundish_transform_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
