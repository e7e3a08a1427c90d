/* written.c - the handler of SIGSEGV. It allocates nothing, and waits for no lock. */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "source_lease.h"

static struct sigaction before;

static void
say(const struct written *written)
{
    dprintf(
        STDERR_FILENO,
        "tundish: the program wrote to column \"%s\" of the batch of epoch %llu, step %llu, which "
        "is read-only: change a copy, as of batch[\"%s\"].copy()\n",
        written->column, (unsigned long long)written->epoch, (unsigned long long)written->step,
        written->column);
}

/* The handler that was there before may mend the fault, as those of other runtimes do: so this one
 * stays. Without one the instruction is repeated, which ends the process. */
static void
on_fault(int number, siginfo_t *info, void *context)
{
    struct written written;

    if (info->si_code == SEGV_ACCERR && lease_find_column((uintptr_t)info->si_addr, &written))
        say(&written);
    if ((before.sa_flags & SA_SIGINFO) != 0)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        sigaction(SIGSEGV, &before, NULL);
}

void
lease_watch_written(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
}
