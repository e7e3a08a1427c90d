/* stage.h - the input of a source's or content stage's open: the stage in the pipeline file, the
 * columns that come in, and where to complain.
 */
#ifndef PLAN_STAGE_H
#define PLAN_STAGE_H

#include "column/schema.h"
#include "spec/spec.h"

struct expression_literal;
struct frame;
struct learned;
struct spec_names;
struct plan;
struct plan_graph;

/* Use the first elements of a stage's input, at most `most` of them: `use` gets them in a frame
 * that is gone when it returns. Not OK: none can be had, for the reason in tnd_error_text, or what
 * `use` returned. */
typedef tundish_status stage_sample(const struct plan *plan, const struct spec_stage *stage,
                                    int64_t most,
                                    tundish_status (*use)(void *context, const struct frame *input),
                                    void *context);

/* An expression, in a parameter of an order stage, that content is to answer for each element: one
 * scalar. One whose parameter is left out is not asked. */
struct stage_question {
    const char *parameter; /* NULL: the last one stands before it */
    tundish_dtype dtype;
    bool of_answers; /* its columns are the answers before it, by their parameters' names */
};

struct stage_config {
    const struct spec_stage *stage;
    const struct schema *input;
    uint32_t depth;                 /* how often the element has been batched: 0 is a row */
    const struct schema *outer;     /* columns that $name may mean; NULL outside a function */
    const struct plan_graph *graph; /* that the stage stands in */
    int64_t unseeded;               /* the seed of a stage that draws and was given none */
    const char *cache_folder;
    const struct learned *learned; /* content/learned/learned.h; NULL: nothing is */
    uint64_t *learned_hash;        /* becomes a hash of what the stage takes of it; NULL: unasked */
    /* During `tundish analyze`: columns whose stage has not been learned yet. Column-wise stages
     * skip them and append their own outputs. NULL: every column is there. */
    struct spec_names *missing;
    const struct plan *plan; /* for `sample`; NULL without a plan */
    stage_sample *sample;    /* NULL: no element can be had while the plan is made */
    uint64_t memory_bytes; /* what the rows of a batch may become, by deliver's limits; 0: unsaid */
    const struct expression_literal *literals; /* what expressions may use by name besides */
    uint32_t literal_count;
    const struct stage_question *questions; /* of an order stage; the columns are the answers */
    struct spec_errors *errors; /* complain here, at the stage's or a value's position */
};

/* Complain at the stage's own position. */
#define stage_complain(config, ...)                                                                \
    spec_complain((config)->errors, (config)->stage->line, (config)->stage->column, __VA_ARGS__)

#endif
