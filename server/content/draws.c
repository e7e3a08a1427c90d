/* draws.c - from seeds to random numbers. */
#include "content/draws.h"

/* Keras' TensorFlow backend reduces both words of a seed modulo int32.max - 1 (_cast_seed). */
static const int64_t MODULUS = 2147483646;

/* The remainder of tf.math.floormod, which is never negative. */
static int64_t
reduced(int64_t word)
{
    int64_t rest = word % MODULUS;

    return rest < 0 ? rest + MODULUS : rest;
}

int64_t
draws_seed(const struct stage_config *config)
{
    const struct spec_value *seed = spec_get(config->stage, "seed");

    return seed != NULL && seed->kind == SPEC_INTEGER ? seed->integer : config->unseeded;
}

struct tnd_philox
draws_at(int64_t seed, uint64_t number)
{
    return tnd_philox_of_stateless_seed(reduced(seed), (int64_t)(number % (uint64_t)MODULUS));
}

void
draws_uniform(int64_t seed, uint64_t number, size_t count, float *ret_numbers)
{
    struct tnd_philox philox = draws_at(seed, number);

    /* Philox makes four words at a time. */
    for (size_t i = 0; i < count; i += 4) {
        uint32_t words[4];

        tnd_philox_next(&philox, words);
        for (size_t k = 0; k < 4 && i + k < count; k++)
            ret_numbers[i + k] = tnd_uniform_float(words[k]);
    }
}
