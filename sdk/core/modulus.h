/* modulus.h - remainders by one divisor, with multiplications only. */
#ifndef TND_CORE_MODULUS_H
#define TND_CORE_MODULUS_H

#include <stdint.h>

struct tnd_modulus {
    uint64_t divisor, reciprocal; /* 2^64 / divisor, or less by at most one */
};

/* `divisor` is not 0. */
static inline struct tnd_modulus
tnd_modulus_of(uint64_t divisor)
{
    return (struct tnd_modulus){ divisor, UINT64_MAX / divisor };
}

/* number % divisor: the quotient comes out right or one too small. */
static inline uint64_t
tnd_modulo(struct tnd_modulus modulus, uint64_t number)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t quotient = (uint64_t)((wide)number * modulus.reciprocal >> 64);
    const uint64_t rest = number - quotient * modulus.divisor;

    return rest >= modulus.divisor ? rest - modulus.divisor : rest;
}

#endif
