/* scratch.h - memory for one task: taken in a bump, given back all at once. One thread at a time.
 */
#ifndef COLUMN_SCRATCH_H
#define COLUMN_SCRATCH_H

#include <stddef.h>

#include "column/budget.h"

struct scratch;
struct words_note;

struct scratch *scratch_open(void);
void scratch_close(struct scratch *scratch);

/* `bytes` bytes, 64-byte aligned, with 64 readable bytes after them. Never NULL. Lives until
 * scratch_reset. Blocks are kept for the next task, so a steady state allocates nothing. */
void *scratch_alloc(struct scratch *scratch, size_t bytes);

/* count * bytes, refusing overflow. */
void *scratch_array(struct scratch *scratch, size_t count, size_t bytes);

/* Keep something until scratch_reset or scratch_close, which call `release` on it. */
void scratch_keep(struct scratch *scratch, void (*release)(void *), void *what);

/* The notes about texts of this task: words.h's. */
struct words_note **scratch_words(struct scratch *scratch);

/* Count the memory asked for from now on in this task, which outlives the scratch; NULL: nowhere.
 */
void scratch_share(struct scratch *scratch, struct budget_task *task);

/* May `bytes` more be taken? To be asked before the bytes of a file decide how much is taken. Takes
 * nothing itself. As budget_take; scratch_reset gives the memory back. */
tundish_status scratch_ask(struct scratch *scratch, uint64_t bytes);
uint64_t scratch_ask_most(const struct scratch *scratch); /* since the last reset, in all */

/* Give everything back. Blocks that were asked for are kept only as far as the budget allows. */
void scratch_reset(struct scratch *scratch);

#endif
