/* patience.h - how long a server that stops waits for its trainers: until none has taken or given
 * back anything for so long. All sessions share it: those that hang make it wait once, not one
 * after the other.
 */
#ifndef SESSION_PATIENCE_H
#define SESSION_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patience {
    int64_t limit_ns;
    int64_t deadline_ns; /* 0: no session has begun to stop */
};

/* A session begins to stop: it gets a second at least. All accept NULL, which waits without limit.
 */
void patience_begin(struct patience *patience);

/* A trainer has taken or given back something. */
void patience_renew(struct patience *patience);

bool patience_lasts(const struct patience *patience);

#endif
