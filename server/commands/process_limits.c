/* process_limits.c - the stack, and the size of files. */
#include "commands/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/read_write.h"

/* Each thread gets as much, which is address space and no memory. Kernels start no process with
 * less than some pages, on which this file can run. */
enum { STACK_LEAST = 1 << 20 };

static void
do_nothing(int number)
{
    (void)number;
}

/* Not by stdio, and with few words on the stack: there may be little of it. */
static void
complain(void)
{
    static const char text[] =
        "tundish: the limit for the stack is below 1 MiB, which its threads need: raise it "
        "(ulimit -s 8192; LimitSTACK= of a unit)\n";

    (void)tnd_write(STDERR_FILENO, text, sizeof text - 1);
}

bool
process_limits_suffice(void)
{
    /* A handler, since programs that are started from here would inherit that it is ignored. */
    struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
    struct rlimit stack;

    sigaction(SIGXFSZ, &action, NULL);
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY ||
        stack.rlim_cur >= STACK_LEAST)
        return true;
    complain();
    return false;
}
