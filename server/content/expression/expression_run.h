/* expression_run.h - one run of an expression over a frame: what its groups and its other steps
 * share. */
#ifndef CONTENT_EXPRESSION_EXPRESSION_RUN_H
#define CONTENT_EXPRESSION_EXPRESSION_RUN_H

#include "content/expression/expression_program.h"

/* Arrays for up to this many steps are on the stack: with one row little else is done, and the
 * stack is always in the cache. */
enum { FEW = 16 };

/* A column with is_shared set has one element that stands for all elements. */
struct expression_run {
    const struct expression *expression;
    const struct frame *input;
    struct frame *output;
    uint32_t index;
    struct column *columns; /* by step, of roots */
    bool *is_shared;
};

/* The value of an element is undefined: say for which part of the expression, as written. A fault
 * in a shared column is every element's. */
void run_reject(struct expression_run *run, int32_t step, bool shared, int64_t element,
                const char *what);

/* Room for a step's values: in the output itself if they are the expression's result. */
void *run_values(struct expression_run *run, int32_t step, bool shared, int64_t value_count);

/* Steps that are not kernels (expression_run_step.c), and groups of kernels
 * (expression_run_group.c). */
void run_step(struct expression_run *run, int32_t index);
void run_group(struct expression_run *run, const struct expression_group *group);

#endif
