/* unit_draw.h - numbers for tests that try many inputs: the same everywhere, every time. */
#ifndef UNIT_DRAW_H
#define UNIT_DRAW_H

#include <stdint.h>

/* Xorshift, one sequence a program. */
static inline uint64_t
draw(void)
{
    static uint64_t state = UINT64_C(88172645463325252);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif
