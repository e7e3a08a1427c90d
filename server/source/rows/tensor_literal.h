/* tensor_literal.h - arrays that the pipeline file gives: nested lists, or the name of an .npy
 * file. */
#ifndef SOURCE_ROWS_TENSOR_LITERAL_H
#define SOURCE_ROWS_TENSOR_LITERAL_H

#include "column/frame.h"
#include "core/bytes.h"
#include "plan/stage.h"

/* A dense array. Values of variables are zero here, and filled in when rows are made. */
struct tensor {
    tundish_dtype dtype;
    int rank;
    int64_t shape[RANK_MAX];
    int64_t value_count;
    void *values; /* of the dtype; strings: struct byte_view into `text` */
    uint8_t *text;
    uint64_t file_hash; /* over all values, if they are a file's */

    /* The positions of variables, in ascending order. */
    struct tensor_variable {
        int64_t index;
        const struct spec_value *value;
    } * variables;
    uint32_t variable_count;
};

/* Nested lists or one value, or {values: ..., dtype: ...}, or {npy: file}. Dtypes as tf.constant
 * gives them. */
tundish_status tensor_open(const struct stage_config *config, const struct spec_value *value,
                           struct tensor *ret_tensor);

/* One text or nested lists of texts. */
tundish_status tensor_open_text(const struct stage_config *config, const struct spec_value *value,
                                struct tensor *ret_tensor);

/* The array in an .npy file. */
tundish_status tensor_open_npy(const struct stage_config *config, const struct spec_value *name,
                               struct tensor *ret_tensor);

/* The same of a path on this machine, when the stream runs. E_DATA with a sentence that does not
 * name it. */
tundish_status tensor_open_file(const char *path, struct tensor *ret_tensor);
void tensor_close(struct tensor *tensor);

/* Column `index` of `output`: the tensor, `count` times. Variables stay zeros. */
void tensor_read(const struct tensor *tensor, int64_t count, struct frame *output, uint32_t index);

#endif
