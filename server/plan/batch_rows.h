/* batch_rows.h - how many rows a slice has, and how many steps an epoch, before any row is read. */
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

/* Steps of an epoch, where tf.data's Cardinality tells; -1: it does not, as for the records of a
 * file, or the epoch has no end. Also -1 where trainers share steps among them (a queue, an
 * evaluation), where bad rows are dropped, and on several nodes, of which the longest counts. */
int64_t plan_epoch_steps(const struct plan *plan);

/* a * b, or the largest number if that is larger. */
static inline int64_t
plan_product(int64_t a, int64_t b)
{
    int64_t result;

    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

#endif
