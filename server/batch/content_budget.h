/* content_budget.h - the limit on unpacked bytes that a stream's content threads hold. */
#ifndef BATCH_CONTENT_BUDGET_H
#define BATCH_CONTENT_BUDGET_H

#include "column/budget.h"
#include "plan/plan.h"

/* deliver.memory_limit, or half of the free memory. If stages look at content to decide the order,
 * the thread that decides it gets half of that for itself, since batches wait for it. */
struct budget *content_budget_open(const struct plan *plan, uint32_t thread_count);
struct budget *
content_budget_open_for_order(const struct plan *plan); /* NULL: nothing is looked at */

#endif
