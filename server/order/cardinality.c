/* cardinality.c - tf.data's Cardinality, stage by stage. It returns UNKNOWN wherever tf.data does:
 * for a filter, for the lines and records of files, and for the sum of a function's datasets. */
#include "order/cardinality.h"

int64_t
order_cardinality(const struct plan_node *node, struct order_instance *instance)
{
    return order_count(node, &(struct order_counting){ .instance = instance });
}

int64_t
order_count_at_most(const struct plan_node *node, struct order_instance *instance)
{
    return order_count(node, &(struct order_counting){ .instance = instance, .at_most = true });
}

int64_t
order_count(const struct plan_node *node, const struct order_counting *counting)
{
    if (node->order == NULL)
        return order_count(node->inputs[0], counting);
    return node->order->cardinality != NULL ? node->order->cardinality(node, counting)
                                            : CARDINALITY_UNKNOWN;
}

int64_t
order_count_input(const struct plan_node *node, const struct order_counting *counting)
{
    return order_count(node->inputs[0], counting);
}

int64_t
order_count_some(const struct plan_node *node, const struct order_counting *counting)
{
    return counting->at_most ? order_count_input(node, counting) : CARDINALITY_UNKNOWN;
}

int64_t
order_count_source(const struct plan_node *node, const struct order_counting *counting)
{
    struct order_instance *instance = counting->instance;
    struct order_iterator *iterator = NULL;
    uint64_t count;
    bool known = order_open(node, instance, &iterator) == TUNDISH_OK &&
                 iterator->ops->count(iterator, &count) == TUNDISH_OK && count <= INT64_MAX;

    order_close(iterator);
    /* Iterator counts seed reshuffling and are part of a checkpoint. tf.data makes no iterator for
     * its Cardinality, so this one must not count. */
    instance->iterator_counts[node->number]--;
    return known ? (int64_t)count : CARDINALITY_UNKNOWN;
}

int64_t
order_count_parameter(const struct plan_node *node, const struct order_counting *counting,
                      const char *parameter)
{
    int64_t value;

    return order_value_int(counting->instance, spec_get(node->stage, parameter), &value) ==
                   TUNDISH_OK
               ? value
               : CARDINALITY_UNKNOWN;
}

int64_t
order_count_times(int64_t count, int64_t times)
{
    int64_t all;

    if (times == 0 || count == 0)
        return 0;
    if (times < 0)
        return CARDINALITY_INFINITE;
    if (count < 0)
        return count;
    return __builtin_mul_overflow(count, times, &all) ? CARDINALITY_UNKNOWN : all;
}
