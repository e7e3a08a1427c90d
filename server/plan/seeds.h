/* seeds.h - which seeds a random stage gets, by TensorFlow's rule.
 *
 * Both the file's seed and the stage's are optional. Neither: random, here drawn from the job's
 * root seed. Only the stage's: (87654321, stage). Only the file's: (file, next draw of Python's
 * random.Random(file)), or inside a function's body (file, 0), (file, 1) ... by position in that
 * body. Both: (file, stage). Each is taken modulo 2^31 - 1, and (0, 0) becomes (0, 2^31 - 1).
 * [tensorflow/python/framework/random_seed.py, data/util/random_seed.py]
 */
#ifndef PLAN_SEEDS_H
#define PLAN_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/mersenne.h"
#include "spec/spec.h"

struct seed_source {
    bool has_seed; /* the file's */
    int64_t seed;
    uint64_t root_seed;
    uint64_t root_draws;
    struct tnd_mersenne python; /* random.Random */
};

struct seed_pair {
    uint64_t seed, seed2;
};

void seed_source_open(struct seed_source *source, const struct spec_file *file, uint64_t root_seed);

/* The seeds of the next random stage. `stage_seed` NULL: it has none. `function_index`: how many
 * unseeded random stages came before it in its function's body (counted on); NULL at the top. */
struct seed_pair seed_source_next(struct seed_source *source, const struct spec_value *stage_seed,
                                  uint32_t *function_index);

/* The first stage of the stream that shares draws by this name. */
const struct spec_stage *seed_shared_first(const struct spec_stream *stream, const char *draws);

/* The seed of a stage that draws numbers for content and was given none. It depends only on how
 * many such stages are written before it in the stream. */
int64_t seed_of_content(const struct spec_stream *stream, const struct spec_stage *stage,
                        uint64_t root_seed);

#endif
