/* encoding.h - indices as one_hot, multi_hot or count vectors: what Keras' layers share.
 *
 * Indices are int64; those outside 0 .. depth-1 leave no mark, but in multi_hot and count of rank
 * <= 2 a negative one is an error of its element, as in Keras, if the column is not a sparse
 * matrix. A caller that drops entries (masked tokens) gives them the index `depth` or more.
 *
 *   one_hot     a last dimension of 1 is dropped (rank > 1), then [depth] is appended; a scalar
 *               gives [1, depth]
 *   multi_hot   one_hot, then the maximum over dimension 1 (dimension 0 if there is only one)
 *   count       the sum over it; times `weights`, where given
 *
 * Ragged and sparse inputs encode as the dense one would that pads every list with nothing.
 */
#ifndef CONTENT_TERMS_ENCODING_H
#define CONTENT_TERMS_ENCODING_H

#include "content/content.h"

enum encoding_mode { ENCODE_INT, ENCODE_ONE_HOT, ENCODE_MULTI_HOT, ENCODE_COUNT, ENCODE_TF_IDF };

struct encoding {
    enum encoding_mode mode;
    int64_t depth;
    tundish_dtype dtype; /* of the result: float32 (Keras' numeric layers), int64 (lookups) */
    bool sparse;         /* give a SPARSE column */
    const float *depth_weights; /* TF_IDF: depth factors, count * weight as float32 */
};

/* The mode of a name as the stages write it ("int", "one_hot", "multi_hot", "count", "tf_idf",
 * "binary", "tf-idf"), or false. */
bool encoding_mode_of(const char *name, enum encoding_mode *ret_mode);

/* Make `column`, a copy of the input's spec, say what encoding gives. `depth` (of the element)
 * tells which dimension is the batch: *ret_batch_wide is set to true, else left alone, where rows
 * of one batch meet in one vector (a batch of scalars is one sample). A shape that the mode cannot
 * take is complained about with the layer's name. Not for ENCODE_INT. */
tundish_status encoding_open(const struct encoding *encoding, const struct stage_config *config,
                             struct column_spec *column, bool *ret_batch_wide);

/* Encode `indices` (levels and all; values int64), which `input_spec` describes, into column
 * `index` of `output`. `weights`: NULL or one float32 for each index. */
void encoding_apply(const struct encoding *encoding, const struct column_spec *input_spec,
                    const struct column *indices, const float *weights, struct frame *output,
                    uint32_t index);

/* Hashing and HashedCrossing: mode, dtype and sparse as the stage asks for them. Lenient: with
 * output_mode int, sparse is passed over and the dtype may be any of numbers. */
tundish_status encoding_read(struct encoding *encoding, const struct stage_config *config,
                             bool is_lenient);

/* Store `bins` (int64) in the form that was read: as they are, narrowed, or encoded. */
void encoding_store(const struct encoding *encoding, const struct column_spec *input_spec,
                    const struct column *bins, struct frame *output, uint32_t index);

#endif
