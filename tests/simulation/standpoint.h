/* standpoint.h - where a simulated thread stands, and how the processor changes from one to
 * another.
 *
 * As swapcontext does, but without a call of the kernel each time for the signals that are blocked.
 */
#ifndef SIMULATION_STANDPOINT_H
#define SIMULATION_STANDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct standpoint {
    void *words[5]; /* what the compiler keeps of it */
    ucontext_t start;
    bool is_new; /* it stands at its start */
};

/* Let it stand at the begin of a function, which must not return, with a stack of its own. */
void standpoint_begin(struct standpoint *point, void *stack, size_t stack_bytes,
                      void (*function)(void));

/* Go on at `to`. Returns when somebody goes on at `from`. */
void standpoint_change(struct standpoint *from, struct standpoint *to);

#endif
