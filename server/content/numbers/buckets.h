/* buckets.h - tft.bucketize, plain and per key: which of the learned buckets a number is in. */
#ifndef CONTENT_BUCKETS_H
#define CONTENT_BUCKETS_H

#include "content/content.h"

struct bucketed;

struct buckets {
    bool per_key;
    uint32_t key; /* column of the input */
    struct content_targets targets;
    struct bucketed *columns; /* of each target */
};

tundish_status buckets_open(struct buckets *buckets, bool per_key,
                            const struct stage_config *config, struct schema *ret_schema,
                            bool *ret_batch_wide);
tundish_status buckets_apply(const void *state, const struct frame *input, struct frame *output);
void buckets_close(void *state);

#endif
