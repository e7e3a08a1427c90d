/* child_guard.h - the process between this one and a program (see child.h). */
#ifndef WORKERS_CHILD_GUARD_H
#define WORKERS_CHILD_GUARD_H

#include <stdint.h>

/* The guard's report about its program, sent once. */
struct guard_report {
    int32_t error;  /* errno: it could not be started */
    int32_t status; /* else, of waitpid */
};

struct guard_orders {
    int input;          /* the program's; 0: nothing */
    int output, errors; /* the program's */
    int life;           /* is read; its end means: end everything */
    int report;         /* is written to */
    char *const *arguments;
    char *const *environment;
    const char *folder;
};

/* Never returns. Runs in a child of fork of a process with threads: so nothing in here allocates,
 * locks or writes to a stream. */
_Noreturn void child_guard(const struct guard_orders *orders);

#endif
