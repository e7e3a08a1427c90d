/* must.h - what cannot happen unless we have a bug. Always on, also in release builds:
 * a restarted server resumes where it stood, a server that goes on wrong does not.
 * Server code only: the SDK lives in someone's training job and uses plain assert. */
#ifndef TND_CORE_MUST_H
#define TND_CORE_MUST_H

#define must(condition)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            tnd_bug(__FILE__, __LINE__, #condition);                                               \
    } while (0)

/* Say where and end the process, also when nobody reads standard error. */
_Noreturn void tnd_bug(const char *file, int line, const char *condition);

#endif
