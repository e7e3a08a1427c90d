/* text_buckets.h - strings to hash buckets: the two stages differ in the hash. */
#ifndef CONTENT_TEXT_TEXT_BUCKETS_H
#define CONTENT_TEXT_TEXT_BUCKETS_H

#include "content/text/texts.h"

struct text_buckets {
    uint64_t count;
    bool is_strong;
    bool takes_sparse; /* before it is opened */
    uint64_t key[2];
    struct content_targets targets;
};

tundish_status text_buckets_open(struct text_buckets *stage, const struct stage_config *config,
                                 uint64_t count, struct schema *ret_schema, bool *ret_batch_wide);
tundish_status text_buckets_apply(const void *state, const struct frame *input,
                                  struct frame *output);
void text_buckets_close(void *state);

#endif
