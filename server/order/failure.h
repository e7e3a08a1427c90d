/* failure.h - the failure behind an ORDER_FAILED. */
#ifndef ORDER_FAILURE_H
#define ORDER_FAILURE_H

#include "order/ops.h"

/* OK, or, of ORDER_FAILED, the status of this thread's last failure: that of the machine, of a
 * store or of memory; else E_DATA. */
tundish_status order_status(enum order_result result);

/* This thread's last failure, to be told later: other iterators may fail in between. */
struct order_failure {
    tundish_status status;
    char text[];
};
struct order_failure *order_failure_keep(void); /* free() it */
void order_failure_tell(const struct order_failure *failure);

#endif
