/* example_ragged.h - RaggedFeature: values cut into rows by partitions, as TensorFlow does it.
 *
 * The partitions of all records of a batch are joined before they are applied to the joined values,
 * so that only their sum over the batch has to fit, as it is there. A sum that does not fit is an
 * error whether `validate` asks for it or not: TensorFlow refuses such a tensor later, when it
 * leaves the dataset.
 */
#ifndef CONTENT_RECORDS_EXAMPLE_RAGGED_H
#define CONTENT_RECORDS_EXAMPLE_RAGGED_H

#include "content/records/example.h"
#include "content/records/features.h"

struct ragged_input {
    const char *name;
    const struct feature_partition *partitions; /* outermost first */
    uint32_t partition_count;
    const struct example_values *const *keys; /* of each partition; UNIFORM: not looked at */
    const struct example_values *values;
    bool is_batch;
};

/* How many of the dimensions are ragged: uniform ones at the end are not. */
int ragged_rank_of(const struct feature_partition *partitions, uint32_t count, bool is_batch);

/* Append levels to `column` (which has the batch's, if there is one) and set its values. */
void ragged_build(const struct ragged_input *input, int64_t record_count, struct frame *output,
                  struct column *column);

#endif
