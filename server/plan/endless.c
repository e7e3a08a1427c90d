/* endless.c - which inputs never end, and who needs an end. */
#include "order/order.h"
#include "plan/build.h"

static bool
any_input_is(const struct plan_node *node, bool endless)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (build_is_endless(node->inputs[i]) == endless)
            return true;
    return false;
}

bool
build_is_endless(const struct plan_node *node)
{
    if (node->input_count == 0)
        return false;
    if (node_is(node, "repeat"))
        return build_literal(node, "count", 1) < 0 || build_is_endless(node->inputs[0]);
    if (node_is(node, "take") && build_literal(node, "count", -1) >= 0)
        return false;
    if (node_is(node, "sample_from_datasets") && !build_is_draw(node->stage))
        return false;
    if (node_is(node, "zip") || node_is(node, "choose_from_datasets") ||
        (node_is(node, "sample_from_datasets") && spec_bool(node->stage, "stop_on_empty_dataset")))
        return !any_input_is(node, false);
    if (node->body != NULL && build_is_endless(node->body->root))
        return true;
    return any_input_is(node, true);
}

static bool
is_batch(const struct plan_node *node)
{
    return node_is(node, "batch") || node_is(node, "padded_batch") || node_is(node, "ragged_batch");
}

/* How many elements, or rows of them, the stage gathers before it hands any on. */
static int64_t
gathered(const struct plan_node *node, const char **ret_parameter)
{
    int64_t most = 0;
    const struct spec_value *sizes;

    *ret_parameter = node_is(node, "window") ? "size" : "batch_size";
    if (node_is(node, "window") || is_batch(node) || node_is(node, "rebatch"))
        return build_literal(node, *ret_parameter, 1);
    if (!node_is(node, "bucket_by_sequence_length"))
        return 1;
    *ret_parameter = "bucket_batch_sizes";
    sizes = spec_get(node->stage, "bucket_batch_sizes");
    for (uint32_t i = 0; i < sizes->count; i++)
        if (sizes->items[i].kind == SPEC_INTEGER && sizes->items[i].integer > most)
            most = sizes->items[i].integer;
    return most;
}

tundish_status
build_check_end(struct plan_builder *builder, const struct plan_node *node)
{
    const char *parameter;
    int64_t buffer = node_is(node, "shuffle") ? build_literal(node, "buffer_size", 1) : 1;
    int64_t rows = gathered(node, &parameter);
    bool whole_epoch = buffer == -2 || buffer > INT32_MAX;

    if ((!whole_epoch && rows <= INT32_MAX) || !build_is_endless(node->inputs[0]))
        return TUNDISH_OK;
    if (rows > INT32_MAX)
        return build_complain(builder, node,
                              "%s: a %s of %lld rows is never full, since what stands before it "
                              "repeats for ever: give a smaller %s, or put repeat behind it",
                              node->name, node_is(node, "window") ? "window" : "batch",
                              (long long)rows, parameter);
    return build_complain(
        builder, node,
        "shuffle: a buffer for all elements (buffer_size: %lld) is never full, "
        "since what stands before it repeats for ever: put repeat behind shuffle, "
        "or give a smaller buffer_size",
        (long long)buffer);
}
