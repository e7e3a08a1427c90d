/* endless.c - complains of stages that wait for the end of an endless input. */
#include "order/planning.h"
#include "plan/build.h"

/* How many elements or rows the stage gathers before it passes any on. Sizes up to INT32_MAX may
 * fill; larger ones are taken to mean "everything". */
static int64_t
gathered(const struct plan_node *node)
{
    const struct spec_value *value = spec_get(node->stage, node->order->gathers);
    int64_t most = 0;

    if (value == NULL || value->kind != SPEC_LIST)
        return value != NULL && value->kind == SPEC_INTEGER ? value->integer : 1;
    for (uint32_t i = 0; i < value->count; i++)
        if (value->items[i].kind == SPEC_INTEGER && value->items[i].integer > most)
            most = value->items[i].integer;
    return most;
}

static tundish_status
check_gathered(const struct plan_builder *builder, const struct plan_node *node)
{
    int64_t rows = gathered(node);

    if (rows <= INT32_MAX || !order_is_endless(node->inputs[0]))
        return TUNDISH_OK;
    return order_complain(builder->errors, node,
                          "%s: a batch or window of %lld rows is never full, because its input "
                          "repeats without end: use a smaller %s, or put repeat after it",
                          node->name, (long long)rows, node->order->gathers);
}

static tundish_status
check_buffer(const struct plan_builder *builder, const struct plan_node *node)
{
    int64_t buffer = order_literal(node, node->order->shuffles_in, 1);

    if ((buffer != -2 && buffer <= INT32_MAX) || !order_is_endless(node->inputs[0]))
        return TUNDISH_OK;
    return order_complain(builder->errors, node,
                          "%s: a buffer for all elements (%s: %lld) is never full, because its "
                          "input repeats without end: put repeat after %s, or use a smaller %s",
                          node->name, node->order->shuffles_in, (long long)buffer, node->name,
                          node->order->shuffles_in);
}

tundish_status
build_check_end(const struct plan_builder *builder, const struct plan_node *node)
{
    if (node->order == NULL || node->stage == NULL)
        return TUNDISH_OK;
    if (node->order->gathers != NULL)
        return check_gathered(builder, node);
    return node->order->shuffles_in != NULL ? check_buffer(builder, node) : TUNDISH_OK;
}
