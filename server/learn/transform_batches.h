/* transform_batches.h - the batches that tf.Transform makes of the rows it analyzes.
 *
 * They are its own, whatever the pipeline's are: at first single rows, then pairs, and more as it
 * goes on, up to a thousand. It matters only where a result depends on batches. */
#ifndef LEARN_TRANSFORM_BATCHES_H
#define LEARN_TRANSFORM_BATCHES_H

#include <stdint.h>

/* Rows of the batch that begins after `rows` rows. */
static inline int64_t
transform_batch_rows(int64_t rows)
{
    int64_t size = rows / 16;

    return rows < 2 ? 1 : size < 2 ? 2 : size > 1000 ? 1000 : size;
}

#endif
