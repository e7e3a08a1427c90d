/* expression.h - the expressions of map, filter and values: parsed and typed once, then run over
 * columns.
 *
 * The language is that of tundish-pipeline(5); dtypes and results are TensorFlow's, also where its
 * graph optimiser shows: x ** 0.5 is sqrt(x). An expression has no side effects and may be run by
 * any thread.
 */
#ifndef CONTENT_EXPRESSION_EXPRESSION_H
#define CONTENT_EXPRESSION_EXPRESSION_H

#include <stdbool.h>

#include "column/frame.h"
#include "spec/errors.h"

struct expression;

/* A name that stands for a number, as if the number were written instead. */
struct expression_literal {
    const char *name; /* "$name" for variables */
    int64_t value;
};

/* The literal that $per_replica_batch_size(G) divides G by. */
#define EXPRESSION_REPLICAS_IN_SYNC "$num_replicas_in_sync"

struct expression_config {
    const char *text;
    uint32_t line, column;      /* of the first byte of `text` in the pipeline file */
    const struct schema *input; /* NULL: no columns */
    const struct schema *outer; /* what $name may mean; NULL: nothing */
    uint32_t depth;             /* how often the element has been batched */
    const struct expression_literal *literals;
    uint32_t literal_count;
    struct spec_errors *errors;
};

/* Complaints go to config->errors at the position in the text. Nothing of config is kept. */
tundish_status expression_open(const struct expression_config *config,
                               struct expression **ret_expression);
void expression_close(struct expression *expression);

/* The type of its result: everything but the name. */
const struct column_spec *expression_spec(const struct expression *expression);

/* Do rows of one batch influence each other, or does the result not have one row for each? Then
 * elements must be whole batches. */
bool expression_is_batch_wide(const struct expression *expression);

/* Does it read this column of config->input? */
bool expression_reads(const struct expression *expression, uint32_t column);

/* Make column `index` of `output` for all elements of `input`, whose columns are config->input's. A
 * result that is undefined for an element (a division by zero) is frame_reject's. */
void expression_apply(const struct expression *expression, const struct frame *input,
                      struct frame *output, uint32_t index);

#endif
