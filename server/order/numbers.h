/* numbers.h - the numbers of a file that an order stage names (order_ops.numbers), while the plan
 * is made.
 */
#ifndef ORDER_NUMBERS_H
#define ORDER_NUMBERS_H

#include "order/ops.h"

struct order_numbers {
    const void *values; /* of int32, int64, float32 or float64; gone once they are taken */
    uint64_t count;
    bool are_integers, are_wide;
};

static inline int64_t
order_numbers_integer(const struct order_numbers *numbers, uint64_t index)
{
    return numbers->are_wide ? ((const int64_t *)numbers->values)[index]
                             : ((const int32_t *)numbers->values)[index];
}

static inline double
order_numbers_float(const struct order_numbers *numbers, uint64_t index)
{
    if (numbers->are_integers)
        return (double)order_numbers_integer(numbers, index);
    return numbers->are_wide ? ((const double *)numbers->values)[index]
                             : (double)((const float *)numbers->values)[index];
}

#endif
