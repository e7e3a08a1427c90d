/* child.h - a program whose output is read, and of which no process is left afterwards.
 *
 * Between this process and the program there is a guard, a process that only waits. When the child
 * is stopped, or this process ends in any way, the guard's pipe closes and it ends the program and
 * all of its descendants, who can leave their process group but not their guard.
 */
#ifndef WORKERS_CHILD_H
#define WORKERS_CHILD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/status.h"

enum { CHILD_LAST_WORDS = 2048 };

/* All zeros is a child that was never started. */
struct child {
    pid_t guard; /* 0: none */
    int output; /* of the program; the ends below are the other ends of its and its guard's pipes */
    int errors;
    int life;
    int report;
    bool output_ended;
    _Atomic uint64_t *waited_ns; /* as the command has it */
    int ended_by; /* once child_wait has returned: the signal that ended it; 0: none did */
    size_t last_word_bytes, line_bytes; /* of these the last are a line that has not ended */
    char last_words[CHILD_LAST_WORDS];  /* the end of what it wrote to its standard error */
    int64_t lines_since_ns;             /* of the log: as many a minute as child.c says, */
    uint32_t lines, lines_dropped;      /* and these that were logged, and not, since */
};

struct child_command {
    const char *const *arguments;   /* NULL-terminated; the first is the program, found by PATH */
    const char *const *environment; /* NULL-terminated NAME=VALUE, beside what we have */
    const char *folder;             /* to run in */
    int input;  /* becomes its standard input and stays the caller's; 0: there is none */
    int forker; /* have the process at this socket fork in place of a start (child_guard.h); 0 */
    _Atomic uint64_t *waited_ns; /* grows while it is waited for, also during a wait; or NULL */
};

/* Is there such a program? Nothing is started. `folder`: to run in. */
tundish_status child_check(const char *name, const char *folder);

tundish_status child_start(const struct child_command *command, struct child *ret_child);

/* Wait for output and read some: *ret_bytes of it; 0 is its end. STOPPED when *stop (may be NULL)
 * is not 0. `name` is for messages, and for the log, which has what it writes to its standard
 * error. */
tundish_status child_read(struct child *child, const char *name, const _Atomic int *stop, void *to,
                          size_t bytes, size_t *ret_bytes);

/* After the end of output: wait until the program has exited. OK if it returned 0; else the reason,
 * with the last lines of its standard error. */
tundish_status child_wait(struct child *child, const char *name, const _Atomic int *stop);

/* Read its standard error, which it must not wait for, and log its lines by this name: last_words
 * is then up to date. */
void child_listen(struct child *child, const char *name);

/* End it and all that it has started. */
void child_stop(struct child *child);

#endif
