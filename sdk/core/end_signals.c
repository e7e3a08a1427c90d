/* end_signals.c - the signals by which a process is asked to end. */
#include "core/end_signals.h"

#include <stddef.h>

void
tnd_end_signals_add(sigset_t *set)
{
    struct sigaction hangup;

    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(set, SIGHUP);
}
