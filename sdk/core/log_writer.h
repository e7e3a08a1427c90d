/* log_writer.h - standard error, written by a thread of its own: for log.c.
 *
 * Its reader may be slow, or stop reading. Lines wait in memory of a fixed size. Lines that find no
 * room are dropped and counted. Any thread.
 */
#ifndef TND_CORE_LOG_WRITER_H
#define TND_CORE_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* Make the line that says how many lines are missing. The writer frees it. NULL: no memory. */
typedef char *(*log_writer_notice)(uint64_t dropped, size_t *ret_bytes);

/* Start the thread. Where there is none, log_writer_put writes by itself. */
void log_writer_start(log_writer_notice notice);

/* Have a line written; never blocks once the thread runs. */
void log_writer_put(const char *line, size_t bytes);

/* Wait until all lines are written, as long as standard error is read. */
void log_writer_flush(void);

#endif
