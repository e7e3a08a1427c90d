/* origin.h - where the rows of a slice come from: the elements of sources that each was made of,
 * and what stages numbered, chose and drew for it on the way.
 *
 * The references of a slice say nearly all of it, so nothing is read as a rule. Content is made
 * only where it alone tells rows apart: where a stage looks across the rows of a batch, and where
 * bad rows may have been left out.
 */
#ifndef BATCH_ORIGIN_H
#define BATCH_ORIGIN_H

#include "batch/evaluate.h"

/* One element of a source. */
struct origin_source {
    const struct plan_node *node;
    const uint64_t *words; /* live as long as the slice and the origins */
    int64_t row;           /* the row of a batch that it is, or is made into; -1: all of it */
    bool is_outer; /* it is the outer element of a function, whose columns are $name there */
};

/* A stage that gave an element a number: its ordinal where it draws, the index of `enumerate`, or
 * the dataset that a stage took it from. */
struct origin_mark {
    const struct plan_node *node;
    uint64_t number;
    int64_t row, rows; /* the element was a batch, of which this is a row; else 0 of 1 */
};

struct origin_row {
    size_t source_count, mark_count;
    struct origin_source *sources;
    struct origin_mark *marks;
};

struct origins {
    struct scratch *scratch; /* holds all of it */
    size_t row_count;
    struct origin_row *rows;
    bool is_batch;        /* the rows are those of a batch; else the one row is the element */
    size_t blender_count; /* stages that look across the rows of a batch: theirs are named in the */
    const struct plan_node **blenders; /* order in which they were given */
};

/* `words` is an element of `root`. Resets the evaluation's scratch. */
void origins_open(struct evaluation *evaluation, const struct plan_node *root,
                  const uint64_t *words, struct origins *ret_origins);
void origins_close(struct origins *origins); /* accepts zeros */

#endif
