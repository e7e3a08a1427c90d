/* mersenne.c - MT19937. */
#include "core/mersenne.h"

enum { STATE = TND_MERSENNE_WORDS, SHIFT = 397 };

void
tnd_mersenne_start(struct tnd_mersenne *random, uint32_t seed)
{
    random->state[0] = seed;
    for (uint32_t i = 1; i < STATE; i++)
        random->state[i] =
            UINT32_C(1812433253) * (random->state[i - 1] ^ (random->state[i - 1] >> 30)) + i;
    random->next = STATE;
}

static void
refill(struct tnd_mersenne *random)
{
    uint32_t *state = random->state;

    for (uint32_t i = 0; i < STATE; i++) {
        uint32_t y =
            (state[i] & UINT32_C(0x80000000)) | (state[(i + 1) % STATE] & UINT32_C(0x7fffffff));

        state[i] = state[(i + SHIFT) % STATE] ^ (y >> 1) ^ ((y & 1) ? UINT32_C(0x9908b0df) : 0);
    }
    random->next = 0;
}

uint32_t
tnd_mersenne_next(struct tnd_mersenne *random)
{
    uint32_t y;

    if (random->next >= STATE)
        refill(random);
    y = random->state[random->next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}
