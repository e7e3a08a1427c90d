/* seeds.c - TensorFlow's seeds, including the draws of Python's generator. */
#include "plan/seeds.h"

#include <string.h>

#include "content/content.h"
#include "core/hash_farm.h"
#include "plan/build.h"

enum { STATE = TND_MERSENNE_WORDS };

static const int64_t SEED_MODULUS = INT64_C(0x7fffffff);
static const int64_t ONLY_STAGE_SEED = 87654321;

/* As CPython does: init_by_array over the 32-bit digits of |seed|. */
static void
python_seed(struct tnd_mersenne *random, int64_t seed)
{
    uint64_t magnitude = seed < 0 ? 0 - (uint64_t)seed : (uint64_t)seed;
    uint32_t key[2] = { (uint32_t)magnitude, (uint32_t)(magnitude >> 32) };
    uint32_t key_length = key[1] != 0 ? 2 : 1;
    uint32_t *state = random->state;
    uint32_t i = 1, j = 0;

    tnd_mersenne_start(random, 19650218);
    for (uint32_t k = STATE; k > 0; k--) {
        state[i] =
            (state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * UINT32_C(1664525))) + key[j] + j;
        if (++i >= STATE) {
            state[0] = state[STATE - 1];
            i = 1;
        }
        if (++j >= key_length)
            j = 0;
    }
    for (uint32_t k = STATE - 1; k > 0; k--) {
        state[i] = (state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * UINT32_C(1566083941))) - i;
        if (++i >= STATE) {
            state[0] = state[STATE - 1];
            i = 1;
        }
    }
    state[0] = UINT32_C(0x80000000);
}

/* Python's randint(0, 2^31 - 1) draws 32 bits until they are below 2^31. */
static int64_t
python_draw(struct tnd_mersenne *random)
{
    uint32_t bits;

    do
        bits = tnd_mersenne_next(random);
    while (bits >= UINT32_C(0x80000000));
    return bits;
}

/* splitmix64. These seeds are not TensorFlow's: any good mix will do, if it is the same on every
 * worker. */
static uint64_t
split_mix(uint64_t seed, uint64_t number)
{
    uint64_t mixed = seed + number * UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static uint64_t
root_draw(struct seed_source *source)
{
    return split_mix(source->root_seed, ++source->root_draws);
}

/* Floor modulo, as in Python: the result is never negative. */
static uint64_t
reduce(int64_t seed)
{
    int64_t rest = seed % SEED_MODULUS;

    return (uint64_t)(rest < 0 ? rest + SEED_MODULUS : rest);
}

/* As tensorflow.python.data.util.random_seed does: (0, 0) would make an op choose random seeds, so
 * the second becomes 2^31 - 1. */
static struct seed_pair
pair_of(int64_t first, int64_t second)
{
    struct seed_pair pair = { reduce(first), reduce(second) };

    if (pair.seed == 0 && pair.seed2 == 0)
        pair.seed2 = (uint64_t)SEED_MODULUS;
    return pair;
}

void
seed_source_open(struct seed_source *source, const struct spec_file *file, uint64_t root_seed)
{
    *source = (struct seed_source){
        .has_seed = file->has_seed,
        .seed = file->seed,
        .root_seed = root_seed,
    };
    python_seed(&source->python, file->seed);
}

/* As tf.random's get_seed: a stage seed is paired with the global one or the default. Without both,
 * TensorFlow is not deterministic, and the job's root seed is used. Inside a function TensorFlow
 * counts the seeds of that graph instead of drawing one. */
struct seed_pair
seed_source_next(struct seed_source *source, const struct spec_value *stage_seed,
                 uint32_t *function_index)
{
    bool given = stage_seed != NULL && stage_seed->kind == SPEC_INTEGER;

    if (given)
        return pair_of(source->has_seed ? source->seed : ONLY_STAGE_SEED, stage_seed->integer);
    if (!source->has_seed)
        return (struct seed_pair){ root_draw(source), root_draw(source) };
    if (function_index != NULL)
        return pair_of(source->seed, (*function_index)++);
    return pair_of(source->seed, python_draw(&source->python));
}

static bool count_until(const struct spec_dataset *dataset, const struct spec_stage *until,
                        uint64_t *count);

static bool
count_in_value(const struct spec_value *value, const struct spec_stage *until, uint64_t *count)
{
    if (value == NULL)
        return false;
    if (value->kind == SPEC_DATASET)
        return count_until(value->dataset, until, count);
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count;
         i++)
        if (count_in_value(&value->items[i], until, count))
            return true;
    return false;
}

/* Count the stages that draw before `until`, in the order written. True: `until` was reached. */
static bool
count_until(const struct spec_dataset *dataset, const struct spec_stage *until, uint64_t *count)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        const struct content_ops *content = content_find(stage->info->name);

        for (uint32_t k = 0; k < stage->info->parameter_count; k++)
            if (count_in_value(stage->arguments[k], until, count))
                return true;
        if (stage == until)
            return true;
        *count += content != NULL && content->draws;
    }
    return false;
}

static const struct spec_stage *first_in(const struct spec_dataset *dataset, const char *draws);

static const struct spec_stage *
first_in_value(const struct spec_value *value, const char *draws)
{
    const struct spec_stage *found = NULL;

    if (value == NULL)
        return NULL;
    if (value->kind == SPEC_DATASET)
        return first_in(value->dataset, draws);
    for (uint32_t i = 0;
         (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count && found == NULL;
         i++)
        found = first_in_value(&value->items[i], draws);
    return found;
}

static const struct spec_stage *
first_in(const struct spec_dataset *dataset, const char *draws)
{
    const struct spec_stage *found = NULL;

    for (uint32_t i = 0; i < dataset->stage_count && found == NULL; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        const char *name = draws_name(stage);

        for (uint32_t k = 0; k < stage->info->parameter_count && found == NULL; k++)
            found = first_in_value(stage->arguments[k], draws);
        if (found == NULL && name != NULL && strcmp(name, draws) == 0)
            found = stage;
    }
    return found;
}

const struct spec_stage *
seed_shared_first(const struct spec_stream *stream, const char *draws)
{
    return first_in(&stream->dataset, draws);
}

/* The seed depends on the stream and on the position of the stage among those that draw, so that
 * equal stages draw different numbers. */
int64_t
seed_of_content(const struct spec_stream *stream, const struct spec_stage *stage,
                uint64_t root_seed)
{
    uint64_t before = 0, of_stream = tnd_hash_farm(stream->name, strlen(stream->name));

    count_until(&stream->dataset, stage, &before);
    return (int64_t)(split_mix(root_seed ^ of_stream, before + 1) % 1000000000) + 1;
}
