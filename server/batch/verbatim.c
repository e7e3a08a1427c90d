/* verbatim.c - follows a column down the tree of the plan to a source whose rows it holds
 * unchanged. */
#include "batch/verbatim.h"

#include "order/arguments.h"

static bool
stacks(const struct plan_node *node)
{
    const struct batch_arguments *arguments = node->arguments;

    return arguments->rows == ORDER_ROWS_STACKED;
}

/* Follow a column through a stage. False: the stage wrote it. */
static bool
follow_column(const struct plan_node *node, uint32_t *column)
{
    int32_t from = node->schema.columns[*column].passed_from;

    *column = (uint32_t)from;
    return from >= 0;
}

const struct source_ops *
verbatim_source(const struct plan_node *node, uint32_t column)
{
    bool is_batched = false;

    while (node->source == NULL) {
        if (node->order == NULL && !follow_column(node, &column))
            return NULL;
        switch (node->order != NULL ? node->order->form : ORDER_PASSES) {
        case ORDER_SLICES:
            if (!follow_column(node, &column))
                return NULL;
            node = node->inputs[0];
            break;
        case ORDER_PASSES:
            node = node->inputs[0];
            break;
        case ORDER_BATCHES:
            if (is_batched || !stacks(node))
                return NULL;
            is_batched = true;
            node = node->inputs[0];
            break;
        case ORDER_FUNCTION:
            node = node->body->root;
            break;
        case ORDER_READS:
        case ORDER_NUMBERS:
        case ORDER_REBATCHES:
        case ORDER_UNBATCHES:
        case ORDER_ZIPS:
        case ORDER_BRANCHES:
            return NULL;
        }
    }
    return is_batched && column == 0 && node->source->row_bytes != NULL ? node->source : NULL;
}
