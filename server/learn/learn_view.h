/* learn_view.h - a dataset as it is learned from: one epoch, in the order of the files, nothing
 * random.
 *
 * Stages that only reorder, repeat or keep elements are left out (shuffle, permute, repeat, cache,
 * prefetch, shard: SHARD_HINT), at every depth; random layers work as without training. */
#ifndef LEARN_LEARN_VIEW_H
#define LEARN_LEARN_VIEW_H

#include "spec/spec.h"

struct learn_view {
    struct spec_dataset dataset; /* its stages are the view's own */
    uint32_t *written_at;        /* of each of them: where it stands in the dataset as written */
    void **blocks;
    size_t block_count;
};

void learn_view_open(struct learn_view *view, const struct spec_dataset *dataset);
void learn_view_close(struct learn_view *view); /* accepts zeros */

/* Is something learned in a dataset inside the stage (interleave, zip)? */
bool learn_view_learns_inside(const struct spec_stage *stage);

#endif
