/* joined_buckets.h - buckets of several keys in one row of boundaries, as tf.Transform has them.
 *
 * Each key's values are scaled to a unit and moved to an interval of their own, where the last
 * boundary of a key is the first one of the next. That decides, in float32, on which side of a
 * boundary a value comes to stand, so nothing less gives tf.Transform's buckets.
 */
#ifndef CONTENT_NUMBERS_JOINED_BUCKETS_H
#define CONTENT_NUMBERS_JOINED_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

struct joined_buckets {
    int64_t each, count; /* boundaries of a key; of all together */
    float *boundaries;
    float *scales, *shifts; /* of each key */
};

/* `each` boundaries, which never fall, for each of the keys. */
void joined_buckets_open(const double *boundaries, int64_t keys, int64_t each,
                         struct joined_buckets *ret_buckets);
void joined_buckets_close(struct joined_buckets *buckets); /* accepts zeros */

int64_t joined_buckets_find(const struct joined_buckets *buckets, int64_t key, float x);

#endif
