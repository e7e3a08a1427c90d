/* expression_run.h - one run of an expression over a frame: what its groups and its other steps
 * share. */
#ifndef CONTENT_EXPRESSION_RUN_H
#define CONTENT_EXPRESSION_RUN_H

#include "content/expression/expression_program.h"

/* What is for so many steps lies on the stack, which is always near: of one row little else is
 * done. */
enum { FEW = 16 };

/* A column with is_shared set has one element that stands for all. */
struct run {
    const struct expression *expression;
    const struct frame *input;
    struct frame *output;
    uint32_t index;
    struct column *columns; /* by step, of roots */
    bool *is_shared;
};

/* The value of an element is undefined: say of which part, as written. In a shared column the fault
 * is every element's. */
void run_reject(struct run *run, int32_t step, bool shared, int64_t element, const char *what);

/* Room for what a step gives: in the output itself where that is the whole expression's. */
void *run_values(struct run *run, int32_t step, bool shared, int64_t value_count);

/* Steps that are no kernels (expression_run_step.c), and groups of kernels
 * (expression_run_group.c). */
void run_step(struct run *run, int32_t index);
void run_group(struct run *run, const struct group *group);

#endif
