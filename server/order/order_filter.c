/* order_filter.c - the elements for which the predicate holds. Only the columns that the predicate
 * needs are evaluated here. The content of the chosen elements is made later, from their
 * references. */
#include "order/cardinality.h"
#include "order/peek.h"
#include "plan/stage.h"

#include <string.h>

static struct order_peek *
state_of(struct order_iterator *iterator)
{
    return (struct order_peek *)iterator->state;
}

static tundish_status
filter_open(struct order_iterator *iterator)
{
    struct order_peek *peek = state_of(iterator);

    peek->node = iterator->node;
    peek->kind = PEEK_BOOL;
    peek->asks = true;
    return order_peek_open(peek, iterator->node->inputs[0], iterator->instance);
}

static enum order_result
filter_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct order_peek *peek = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (*ret_count < max) {
        const uint64_t *element;
        int64_t holds;
        enum order_result result = order_peek_next(peek, max - *ret_count, &element, &holds);

        if (result != ORDER_OK)
            return result;
        if (holds) {
            memcpy(words + *ret_count * node->width, element, node->width * sizeof *words);
            order_peek_give(peek, *ret_count);
            ++*ret_count;
        } else {
            run_words_release(element, 1, node->width, node->run_words);
        }
    }
    return ORDER_OK;
}

static void
filter_close(struct order_iterator *iterator)
{
    order_peek_close(state_of(iterator));
}

static const struct stage_question questions[] = {
    { .parameter = "predicate", .dtype = TUNDISH_BOOL },
    { 0 },
};

const struct order_ops order_filter = {
    .name = "filter",
    .form = ORDER_PASSES,
    .selection = ORDER_CHOOSES,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .content_use = ORDER_READS_CONTENT_ALWAYS,
    .foresees = true,
    .questions = questions,
    .state_bytes = sizeof(struct order_peek),
    .open = filter_open,
    .next = filter_next,
    .close = filter_close,
    .cardinality = order_count_some,
};
