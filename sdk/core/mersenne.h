/* mersenne.h - MT19937, the generator of Python's random and of NumPy's RandomState. */
#ifndef TND_CORE_MERSENNE_H
#define TND_CORE_MERSENNE_H

#include <stdint.h>

enum { TND_MERSENNE_WORDS = 624 };

struct tnd_mersenne {
    uint32_t state[TND_MERSENNE_WORDS];
    uint32_t next;
};

/* As init_genrand: NumPy's RandomState(seed). Python's Random goes on from there. */
void tnd_mersenne_start(struct tnd_mersenne *random, uint32_t seed);
uint32_t tnd_mersenne_next(struct tnd_mersenne *random);

#endif
