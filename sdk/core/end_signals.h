/* end_signals.h - the signals by which a process is asked to end. */
#ifndef TND_CORE_END_SIGNALS_H
#define TND_CORE_END_SIGNALS_H

#include <signal.h>

/* Add to the set: SIGTERM, SIGINT, and SIGHUP unless it is ignored, as after `nohup`. A blocked
 * signal is kept though it is ignored, so one that is in the set would be taken. */
void tnd_end_signals_add(sigset_t *set);

#endif
