/* text_buckets.h - strings to hash buckets: the two stages differ in the hash. */
#ifndef CONTENT_TEXT_TEXT_BUCKETS_H
#define CONTENT_TEXT_TEXT_BUCKETS_H

#include "content/text/texts.h"

struct text_buckets {
    struct column_wise wise;
    uint64_t count;
    bool is_strong;
    bool takes_sparse;
    uint64_t key[2];
};

/* The parameter `key`, which makes the hash the strong one. */
tundish_status text_buckets_read_key(struct text_buckets *stage, const struct stage_config *config);

/* For the content_ops of these stages. */
bool text_buckets_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker);

/* For the column_wise_ops of these stages, which have read `count`. */
tundish_status text_buckets_describe(void *state, const struct stage_config *config, void *own,
                                     struct column_spec *column, bool *batch_wide);
void text_buckets_map(const void *state, const struct column_map *map);

#endif
