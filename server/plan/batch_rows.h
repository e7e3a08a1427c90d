/* batch_rows.h - how many rows a slice has, before any is read. */
#ifndef PLAN_BATCH_ROWS_H
#define PLAN_BATCH_ROWS_H

#include "plan/plan.h"

struct plan_rows {
    int64_t slice;     /* at most, in one slice of one replica; -1: not known before the data */
    bool may_be_fewer; /* the batch is as large as was written: nothing tells how many rows come */
};

/* A batch has no more rows than come, so one that takes all of a small data set is small, however
 * large its batch_size. */
void plan_rows(const struct plan *plan, struct plan_rows *ret_rows);

#endif
