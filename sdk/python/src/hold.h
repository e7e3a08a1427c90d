/* hold.h - what happens when the next batch needs the slot of one that the program still uses. */
#ifndef PYTHON_HOLD_H
#define PYTHON_HOLD_H

#include "python.h"
#include "source_lease.h"

enum on_hold { ON_HOLD_COPY, ON_HOLD_ERROR, ON_HOLD_WAIT };

struct hold {
    enum on_hold policy;
    bool has_warned;
    bool has_waited; /* in vain, for a library that has arrays of a batch */
};

/* "copy", "error" or "wait". -1: none of them. */
int hold_parse(const char *name);

/* Before a wait for the next batch that ends at deadline_ns: see that the server can fill a slot.
 * 1: it can; 0: not in time; -1 with an exception: the policy is to raise, nobody is there to wait
 * for, or a signal came. */
int hold_make_room(struct hold *hold, struct source *source, int64_t deadline_ns);

#endif
