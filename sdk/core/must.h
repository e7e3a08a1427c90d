/* must.h - conditions that only a bug can violate. They are checked in release builds too: a server
 * that ends is restarted and resumes, a server that continued would deliver wrong data. For server
 * code only: the SDK runs inside a training job and uses plain assert. */
#ifndef TND_CORE_MUST_H
#define TND_CORE_MUST_H

#define must(condition)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            tnd_bug(__FILE__, __LINE__, #condition);                                               \
    } while (0)

/* Report file and line, and end the process, even if standard error is not read. */
_Noreturn void tnd_bug(const char *file, int line, const char *condition);

#endif
