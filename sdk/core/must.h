/* must.h - what cannot happen unless we have a bug. Always on, also in release builds:
 * a restarted server resumes where it stood, a server that goes on wrong does not.
 * Server code only: the SDK lives in someone's training job and uses plain assert. */
#ifndef TND_CORE_MUST_H
#define TND_CORE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(condition)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            fprintf(stderr, "tundish: %s:%d: bug: %s\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
