/* must.h - conditions that only a bug can violate.
 *
 * `must` is checked in release builds too: a server that ends is restarted and resumes, a server
 * that continued would deliver wrong data. It is for server code only, since the SDK runs inside a
 * training job. `must_in_debug` is checked in debug and sanitized builds alone (TND_CHECKS), costs
 * nothing in others, and is for the SDK as well. */
#ifndef TND_CORE_MUST_H
#define TND_CORE_MUST_H

#define must(condition)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            tnd_bug(__FILE__, __LINE__, #condition);                                               \
    } while (0)

#ifdef TND_CHECKS
#define must_in_debug(condition) must(condition)
#else
#define must_in_debug(condition) ((void)0)
#endif

/* Report file and line, and end the process, even if standard error is not read. */
_Noreturn void tnd_bug(const char *file, int line, const char *condition);

#endif
