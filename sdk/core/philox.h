/* philox.h - Philox4x32-10, the counter-based generator, with TensorFlow's conventions.
 *
 * A block of four words is a pure function of key and counter, so any block can be computed
 * without those before it: skipping is an addition. Words are numbered from 0; word i is word i % 4
 * of block i / 4. No function here fails, blocks or allocates.
 */
#ifndef TND_CORE_PHILOX_H
#define TND_CORE_PHILOX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where a generator stands: the counter of the block that comes next. Plain numbers: copy it. */
struct tnd_philox {
    uint32_t key[2];
    uint32_t counter[4]; /* 128 bits, least significant word first */
};

/* The generator of a stateful op (shuffle, random): key from `seed`, the counter's upper half
 * from `seed2`, its lower half 0. */
static inline struct tnd_philox
tnd_philox_of_seeds(uint64_t seed, uint64_t seed2)
{
    return (struct tnd_philox){
        .key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
        .counter = { 0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32) },
    };
}

/* The generator of a stateless op (tf.random.stateless_*, Keras' random layers), whose seed of
 * two words TensorFlow scrambles first. An int32 seed is sign-extended. */
struct tnd_philox tnd_philox_of_stateless_seed(int64_t seed0, int64_t seed1);

/* Go on by `blocks` blocks; wraps at 2^128. */
static inline void
tnd_philox_skip(struct tnd_philox *philox, uint64_t blocks)
{
    uint64_t low = ((uint64_t)philox->counter[1] << 32) | philox->counter[0];
    uint64_t high = ((uint64_t)philox->counter[3] << 32) | philox->counter[2];

    high += __builtin_add_overflow(low, blocks, &low);
    philox->counter[0] = (uint32_t)low;
    philox->counter[1] = (uint32_t)(low >> 32);
    philox->counter[2] = (uint32_t)high;
    philox->counter[3] = (uint32_t)(high >> 32);
}

/* The four words of the block at which the generator stands. */
static inline void
tnd_philox_block(const struct tnd_philox *philox, uint32_t ret_words[4])
{
    uint32_t c0 = philox->counter[0], c1 = philox->counter[1];
    uint32_t c2 = philox->counter[2], c3 = philox->counter[3];
    uint32_t k0 = philox->key[0], k1 = philox->key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c0;
        uint64_t p1 = UINT64_C(0xCD9E8D57) * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    ret_words[0] = c0;
    ret_words[1] = c1;
    ret_words[2] = c2;
    ret_words[3] = c3;
}

/* The four words, then one block on. */
static inline void
tnd_philox_next(struct tnd_philox *philox, uint32_t ret_words[4])
{
    tnd_philox_block(philox, ret_words);
    tnd_philox_skip(philox, 1);
}

/* The words of `blocks` blocks, four each, and as many blocks on: what tnd_philox_next gives,
 * several blocks at a time. */
void tnd_philox_fill(struct tnd_philox *philox, size_t blocks, uint32_t *ret_words);

/* For each pair of seeds the first two words of the generator of a stateless op that has them,
 * several at a time. */
void tnd_philox_of_pairs(const uint32_t *seeds, size_t pairs, uint32_t *ret_words);

/* Words first .. first + count - 1 counted from where the generator stands, which stays there. */
void tnd_philox_words(const struct tnd_philox *philox, uint64_t first, size_t count,
                      uint32_t *ret_words);

/* Words taken one by one, as shuffle and the other order stages do. */
struct tnd_random {
    struct tnd_philox start; /* word 0 is in this block */
    uint64_t taken;          /* words so far */
    uint32_t words[4];       /* the block that word taken - 1 or taken lies in */
};

static inline struct tnd_random
tnd_random_of(struct tnd_philox start)
{
    return (struct tnd_random){ .start = start };
}

static inline struct tnd_random
tnd_random_of_seeds(uint64_t seed, uint64_t seed2)
{
    return tnd_random_of(tnd_philox_of_seeds(seed, seed2));
}

/* Stand where `taken` words have been taken. */
static inline void
tnd_random_seek(struct tnd_random *random, uint64_t taken)
{
    struct tnd_philox philox = random->start;

    random->taken = taken;
    if (taken % 4 != 0) {
        tnd_philox_skip(&philox, taken / 4);
        tnd_philox_block(&philox, random->words);
    }
}

static inline uint32_t
tnd_random_next(struct tnd_random *random)
{
    if (random->taken % 4 == 0) {
        struct tnd_philox philox = random->start;

        tnd_philox_skip(&philox, random->taken / 4);
        tnd_philox_block(&philox, random->words);
    }
    return random->words[random->taken++ % 4];
}

/* TensorFlow's uniform floats, 0 <= u < 1: the mantissa is filled with random bits. */
static inline float
tnd_uniform_float(uint32_t word)
{
    uint32_t bits = 0x3F800000U | (word & 0x7FFFFFU);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value - 1.0F;
}

static inline double
tnd_uniform_double(uint32_t word0, uint32_t word1)
{
    uint64_t bits = (UINT64_C(1023) << 52) | ((uint64_t)(word0 & 0xFFFFFU) << 32) | (uint64_t)word1;
    double value;

    memcpy(&value, &bits, sizeof value);
    return value - 1.0;
}

#endif
