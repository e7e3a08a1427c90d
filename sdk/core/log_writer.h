/* log_writer.h - lines to a descriptor, written by a thread of its own: for log.c.
 *
 * The descriptor's reader may be slow, or stop reading. Lines wait in memory of a fixed size. Lines
 * that find no room are dropped and counted. Any thread.
 */
#ifndef TND_CORE_LOG_WRITER_H
#define TND_CORE_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* Where lines go: to standard error, and to the program that started this one (tnd_log_tell). */
enum log_writer_end { LOG_WRITER_OWN, LOG_WRITER_STARTER, LOG_WRITER_ENDS };

/* Make the line that says how many lines are missing. The writer frees it. NULL: no memory. */
typedef char *(*log_writer_notice)(uint64_t dropped, size_t *ret_bytes);

/* Start the thread. Where there is none, log_writer_put writes by itself. */
void log_writer_start(enum log_writer_end end, int descriptor, log_writer_notice notice);

/* Have a line written; never blocks once the thread runs. A starter of which nothing is known gets
 * none. */
void log_writer_put(enum log_writer_end end, const char *line, size_t bytes);

/* Wait until all lines are written, as long as they are read. */
void log_writer_flush(void);

#endif
