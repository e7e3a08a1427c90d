/* status.h - how failures are reported: a status for the program, a sentence for the person.
 *
 * The function that decides that something failed calls tnd_fail once; everyone above
 * passes the status on, adding what it was doing with tnd_fail_while where that helps.
 */
#ifndef TND_CORE_STATUS_H
#define TND_CORE_STATUS_H

#include <stdarg.h>

#include "tundish/tundish.h"

/* Store this thread's explanation and return `status`. */
tundish_status tnd_fail(tundish_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "WHAT: " before this thread's explanation and return `status`. */
tundish_status tnd_fail_while(tundish_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As tnd_fail(TUNDISH_E_SYSTEM, ...) with ": " and the text of `error` (an errno) after it. */
tundish_status tnd_fail_errno(int error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of this process' failures, among those from tnd_fail_errno, due to a full disk. */
uint64_t tnd_status_disk_full_count(void);
int64_t tnd_status_disk_full_ns(void); /* when the last was; of tnd_clock_ns */

/* This thread's explanation, never NULL, and the status that came with it. */
const char *tnd_error_text(void);
tundish_status tnd_status_last(void);

#endif
