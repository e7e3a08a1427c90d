/* draws.h - the random numbers of a stage: a pure function of its seed and an element's ordinal.
 *
 * As Keras' SeedGenerator: each draw uses the pair (seed, n) and adds one to n, so a stage that
 * draws k times for an element uses (seed, k * ordinal) and the k - 1 that follow.
 */
#ifndef CONTENT_DRAWS_H
#define CONTENT_DRAWS_H

#include "content/content.h"
#include "core/philox.h"

/* The stage's seed, or the one that replaces it where it has none. */
int64_t draws_seed(const struct stage_config *config);

/* The generator of draw `number`. */
struct tnd_philox draws_at(int64_t seed, uint64_t number);

/* The first `count` numbers of draw `number`, 0 <= u < 1. */
void draws_uniform(int64_t seed, uint64_t number, size_t count, float *ret_numbers);

/* u in [0, 1) to [low, high), in float32 as tf.random.uniform. */
static inline float
draws_between(float u, double low, double high)
{
    float least = (float)low;

    return u * ((float)high - least) + least;
}

#endif
