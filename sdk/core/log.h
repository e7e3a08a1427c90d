/* log.h - one line an event, on standard error. Server and tools only: the SDK never prints. */
#ifndef TND_CORE_LOG_H
#define TND_CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum tnd_log_level { TND_LOG_ERROR, TND_LOG_WARNING, TND_LOG_NOTICE, TND_LOG_DEBUG };

/* "text": time, level, event, sentence. "json": the same as one JSON object a line. "journal": no
 * time, and the level as journald reads it, or an entry with fields (journal.h) where standard
 * error leads to journald and its socket is there. The default is "text" or, from tnd_log_start on,
 * "journal" where standard error leads to journald. False for any other word. Set before threads
 * start. */
bool tnd_log_set_format(const char *format);

/* Events above this level are dropped. TND_LOG_NOTICE at first. */
void tnd_log_set_level(enum tnd_log_level level);

/* Call `tap` for each event, besides writing it to standard error. There is one tap; NULL removes
 * it. Set it while no thread logs. */
void tnd_log_set_tap(void (*tap)(void *user, enum tnd_log_level level, const char *event,
                                 const char *sentence),
                     void *user);

/* From here on a thread of its own writes the lines: no other thread waits for a standard error
 * that is not read. Lines that find no room are dropped, and a later line says how many. The
 * thread takes no signals. Call it once. */
void tnd_log_start(void);

/* From here on warnings and lines of tnd_log_output go to this descriptor, too, without their time:
 * to the standard error of the program that started this one, which does not read the log. Errors
 * do not, nor warnings of TND_LOG_TRAINER: its readers get them as errors of their own. The
 * descriptor stays open. Otherwise as tnd_log_start. */
#define TND_LOG_TRAINER "trainer" /* the event of a trainer that is refused, or has died */
void tnd_log_tell(int descriptor);

/* Wait until all lines are written, as long as they are read. */
void tnd_log_flush(void);

/* Write a text that is not an event as it is, of any number of lines. */
void tnd_log_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same of a text whose level journald is to know; tnd_log_print's is TND_LOG_NOTICE. */
void tnd_log_lines(enum tnd_log_level level, const char *text);

/* A line that a program or a function of the user's printed; `source` says which it is. */
void tnd_log_output(const char *source, const char *text, size_t bytes);

/* `event` is a word to search for. Lines of threads do not mingle. */
void tnd_log(enum tnd_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
