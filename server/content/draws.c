/* draws.c - seeds to numbers. */
#include "content/draws.h"

/* Keras takes both words modulo this. */
static const int64_t MODULUS = 2147483646;

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

    for (size_t i = 0; i < count; i += 4) {
        uint32_t words[4];

        tnd_philox_next(&philox, words);
        for (size_t k = 0; k < 4 && i + k < count; k++)
            ret_numbers[i + k] = tnd_uniform_float(words[k]);
    }
}
