/* budget.h - memory that threads share for the contents of files: unpacked texts, pictures.
 *
 * A few bytes can stand for thousands of times as many, so a stage asks before it takes. All
 * threads together stay within the budget, whatever the files say.
 *
 * Tasks are numbered as they are handed out, in the order in which their results are wanted. The
 * first of those that are not over takes memory without waiting for anybody; the later ones share a
 * part of their own, and wait where it is all taken, until there is some or they are the first. So
 * nobody waits in a circle, also where a later task cannot end before an earlier one has.
 */
#ifndef COLUMN_BUDGET_H
#define COLUMN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

struct budget;

/* One of the threads', in no more than one task at a time. Zeroed but for the budget. Without a
 * budget nothing is counted; outside a task it takes as the first. */
struct budget_task {
    struct budget *budget;
    struct budget_task *next; /* of those that are not over, in their order */
    uint64_t held;
    bool is_begun;
};

/* `limit` says in messages whose limit the bytes are, and is kept. With several threads, one task
 * may hold five eighths of the bytes; two are for later ones, and one for what threads keep from
 * task to task (budget_kept). A single thread may hold all, and keeps an eighth as well: its next
 * task uses that before anything else. */
struct budget *budget_open(uint64_t bytes, uint32_t thread_count, const char *limit);
void budget_close(struct budget *budget); /* accepts NULL */

/* The most that one task may hold, and a thread keep after it. UINT64_MAX without a budget. */
uint64_t budget_of_task(const struct budget_task *task);
uint64_t budget_kept(const struct budget_task *task);

/* The thread's next task; the caller hands tasks out in their order. */
void budget_begin(struct budget_task *task);
void budget_end(struct budget_task *task); /* which holds nothing any more */

/* E_MEMORY, with the arithmetic, for more than one task may hold. May wait for earlier tasks. */
tundish_status budget_take(struct budget_task *task, uint64_t bytes);
void budget_give(struct budget_task *task); /* all that it holds */

/* The most that was held at any time. */
uint64_t budget_peak(struct budget *budget);

#endif
