/* serve_signals.h - signals that end a server, and waiting for them. */
#ifndef COMMANDS_SERVE_SIGNALS_H
#define COMMANDS_SERVE_SIGNALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* The first signal that came; 0: none yet. */
extern _Atomic int serve_stop_signal;

/* SIGUSR1 has come: the process that started the job says that it has failed elsewhere. */
extern _Atomic bool serve_job_failed;

/* To be called before any other thread starts. The first SIGTERM, SIGINT or SIGHUP (unless it is
 * ignored) is kept in serve_stop_signal; a SIGTERM or SIGINT after it ends the process at once. */
tundish_status serve_hear_signals(void);

/* Let serve_wait() return; from any thread. */
void serve_wake(void *unused);

/* Wait for a signal, serve_wake() or the time (less than a second; negative: without limit).
 * Returns whether it was one of the first two. */
bool serve_wait(int64_t timeout_ns);

#endif
