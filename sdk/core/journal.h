/* journal.h - journald's own socket, which takes an event with fields to search by. */
#ifndef TND_CORE_JOURNAL_H
#define TND_CORE_JOURNAL_H

#include <stdbool.h>

/* Call it once, before threads start. If journald does not listen here, nothing is sent. */
void tnd_journal_open(void);

/* An event of one line, as PRIORITY (syslog's, 0 to 7), TUNDISH_EVENT and MESSAGE. Never waits.
 * False: it was not taken, or the socket was never opened. Any thread. */
bool tnd_journal_send(int priority, const char *event, const char *sentence);

#endif
