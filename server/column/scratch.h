/* scratch.h - memory for one task: taken in a bump, given back all at once. One thread at a time.
 */
#ifndef COLUMN_SCRATCH_H
#define COLUMN_SCRATCH_H

#include <stddef.h>

struct scratch;

struct scratch *scratch_open(void);
void scratch_close(struct scratch *scratch);

/* `bytes` bytes, 64-byte aligned, with 64 readable bytes behind them. Never NULL. Lives until
 * scratch_reset. Blocks are kept for the next task, so a steady state allocates nothing. */
void *scratch_alloc(struct scratch *scratch, size_t bytes);

/* count * bytes, refusing overflow. */
void *scratch_array(struct scratch *scratch, size_t count, size_t bytes);

/* Give everything back. */
void scratch_reset(struct scratch *scratch);

#endif
