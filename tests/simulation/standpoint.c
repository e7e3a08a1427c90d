/* standpoint.c - a jump to the frame of another thread.
 *
 * A file of its own: whoever calls it must take it for any function, which may change all registers
 * that calls may. */
#include "standpoint.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>

void
standpoint_begin(struct standpoint *point, void *stack, size_t stack_bytes, void (*function)(void))
{
    getcontext(&point->start);
    point->start.uc_stack.ss_sp = stack;
    point->start.uc_stack.ss_size = stack_bytes;
    makecontext(&point->start, function, 0);
    /* AddressSanitizer is told once, of the frames of who had the stack before. */
    ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);
    point->is_new = true;
}

/* AddressSanitizer must not see it: to it a jump ends the frames that it leaves. */
__attribute__((noinline, no_sanitize_address)) static void
go_on(struct standpoint *point)
{
    if (point->is_new) {
        point->is_new = false;
        setcontext(&point->start);
        abort();
    }
    __builtin_longjmp(point->words, 1);
}

/* Apart from the jump, which is not to be in the function that it returns to. */
__attribute__((noinline, no_sanitize_address)) void
standpoint_change(struct standpoint *from, struct standpoint *to)
{
    if (__builtin_setjmp(from->words) == 0)
        go_on(to);
}
