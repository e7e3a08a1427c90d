/* planning.c - see planning.h. */
#include "order/planning.h"

#include <stdarg.h>
#include <stdio.h>

tundish_status
order_complain(struct spec_errors *errors, const struct plan_node *node, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return spec_complain(errors, node->stage != NULL ? node->stage->line : 0,
                         node->stage != NULL ? node->stage->column : 0, "%s", text);
}

int64_t
order_literal(const struct plan_node *node, const char *parameter, int64_t otherwise)
{
    const struct spec_value *value = node->stage != NULL ? spec_get(node->stage, parameter) : NULL;

    return value != NULL && value->kind == SPEC_INTEGER ? value->integer : otherwise;
}

bool
order_is_true(const struct plan_node *node, const char *parameter)
{
    const struct spec_value *value = spec_get(node->stage, parameter);

    return value != NULL && value->kind == SPEC_BOOL && value->boolean;
}

static bool
any_input_is(const struct plan_node *node, bool endless)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (order_is_endless(node->inputs[i]) == endless)
            return true;
    return false;
}

bool
order_any_is_endless(const struct plan_node *node)
{
    return any_input_is(node, true);
}

bool
order_all_are_endless(const struct plan_node *node)
{
    return !any_input_is(node, false);
}

bool
order_is_endless(const struct plan_node *node)
{
    if (node->input_count == 0)
        return false;
    if (node->order != NULL && node->order->is_endless != NULL)
        return node->order->is_endless(node);
    if (node->body != NULL && order_is_endless(node->body->root))
        return true;
    return any_input_is(node, true);
}
