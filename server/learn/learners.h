/* learners.h - where a stream learns, and the datasets to learn from.
 *
 * A stage inside interleave or flat_map learns from the elements of all inner datasets as they come
 * by: what stands before it stays inside, and it is taken out and put after the stage around it. A
 * stage of a dataset that others unite (zip, concatenate, ...) learns from that dataset, all of it.
 */
#ifndef LEARN_LEARNERS_H
#define LEARN_LEARNERS_H

#include "spec/spec.h"

/* A stage that learns. */
struct learner {
    const struct spec_stage *stage; /* as written */
    struct spec_dataset up_to;      /* what stands around and before it, and itself last */
    uint32_t run, at;               /* its run, and its index there */
};

/* Stages that are learned from one dataset, in as many passes as it takes. */
struct learner_run {
    struct spec_dataset dataset;
    uint32_t first; /* those before it have been learned by earlier runs */
};

struct learners {
    uint32_t count, run_count;
    struct learner *list;
    struct learner_run *runs; /* in the order in which they can be learned */
    void **blocks;
    size_t block_count;
};

/* The learners of a stream's dataset, which the result refers to. */
void learners_open(const struct spec_dataset *dataset, struct learners *ret_learners);
void learners_close(struct learners *learners); /* accepts zeros */

#endif
