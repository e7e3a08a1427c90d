/* log.h - one line an event, on standard error. Server and tools only: the SDK never prints. */
#ifndef TND_CORE_LOG_H
#define TND_CORE_LOG_H

#include <stdbool.h>

enum tnd_log_level { TND_LOG_ERROR, TND_LOG_WARNING, TND_LOG_NOTICE, TND_LOG_DEBUG };

/* "text" (the default): time, level, event, sentence. "json": an object a line with the same. False
 * for any other word. Set before threads start. */
bool tnd_log_set_format(const char *format);

/* Events above this level are dropped. TND_LOG_NOTICE at first. */
void tnd_log_set_level(enum tnd_log_level level);

/* Whoever wants to hear what is logged, besides standard error. One at a time; NULL: nobody. Set
 * while nothing logs. */
void tnd_log_set_tap(void (*tap)(void *user, enum tnd_log_level level, const char *event,
                                 const char *sentence),
                     void *user);

/* From here on lines are written by a thread of their own: no other waits for a standard error that
 * nobody reads. What finds no room is dropped, and later a line says how much. Call it once, with
 * the signals blocked that the thread is not to take. */
void tnd_log_start(void);

/* Wait until what was logged is written, as long as somebody reads it. */
void tnd_log_flush(void);

/* The same for what is no event: a text as it is, of any number of lines. */
void tnd_log_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `event` is a word to search for. Lines of threads do not mingle. */
void tnd_log(enum tnd_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
