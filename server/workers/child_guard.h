/* child_guard.h - the process between this one and a program (see child.h). */
#ifndef WORKERS_CHILD_GUARD_H
#define WORKERS_CHILD_GUARD_H

#include <stdint.h>

/* The guard's report about its program, sent once. */
struct guard_report {
    int32_t error;  /* errno: it could not be started */
    int32_t status; /* else, of waitpid */
};

/* A process that forks in place of a program that is started gets four words on its socket, the
 * first of them this, with three descriptors: standard input and error of the fork, and a line. It
 * writes the status of the fork, as of waitpid, to the line, whose other end's close means: end the
 * fork. When it ends itself its forks end, too. */
enum { CHILD_FORK = 8, CHILD_FORK_WORDS = 4 };

struct guard_orders {
    int input;          /* the program's; 0: nothing */
    int forker;         /* 0: the program is started */
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
