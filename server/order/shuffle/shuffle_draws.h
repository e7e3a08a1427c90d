/* shuffle_draws.h - the random numbers of a shuffle, in the order in which they are drawn. */
#ifndef ORDER_SHUFFLE_SHUFFLE_DRAWS_H
#define ORDER_SHUFFLE_SHUFFLE_DRAWS_H

#include "core/philox.h"

enum { SHUFFLE_DRAWS = 64 };

struct shuffle_draws {
    struct tnd_philox philox; /* after `words` */
    uint32_t words[SHUFFLE_DRAWS];
    uint32_t drawn; /* of the words */
};

/* Draw number `first` comes next. */
static inline struct shuffle_draws
shuffle_draws_of(uint64_t seed, uint64_t seed2, uint64_t first)
{
    struct shuffle_draws draws = { .philox = tnd_philox_of_seeds(seed, seed2),
                                   .drawn = SHUFFLE_DRAWS };

    tnd_philox_skip(&draws.philox, first / SHUFFLE_DRAWS * (SHUFFLE_DRAWS / 4));
    if (first % SHUFFLE_DRAWS != 0) {
        tnd_philox_fill(&draws.philox, SHUFFLE_DRAWS / 4, draws.words);
        draws.drawn = (uint32_t)(first % SHUFFLE_DRAWS);
    }
    return draws;
}

static inline uint32_t
shuffle_draw(struct shuffle_draws *draws)
{
    if (__builtin_expect(draws->drawn == SHUFFLE_DRAWS, 0)) {
        tnd_philox_fill(&draws->philox, SHUFFLE_DRAWS / 4, draws->words);
        draws->drawn = 0;
    }
    return draws->words[draws->drawn++];
}

/* number % divisor without a division: magic is 2^64 / divisor, rounded up. Exact for 32 bits. */
struct modulo {
    uint64_t magic, divisor;
};

__extension__ typedef unsigned __int128 wide;

static inline struct modulo
modulo_of(uint64_t divisor)
{
    return (struct modulo){ .magic = UINT64_MAX / divisor + 1, .divisor = divisor };
}

static inline uint64_t
modulo(struct modulo by, uint32_t number)
{
    if (by.divisor > UINT32_MAX)
        return number;
    return (uint64_t)((wide)(by.magic * number) * by.divisor >> 64);
}

#endif
