/* order_filter.c - the elements for which the predicate holds. Only the columns that the predicate
 * needs are evaluated here. The content of the chosen elements is made later, from their
 * references. */
#include "order/cardinality.h"
#include "order/noting.h"
#include "order/peek.h"
#include "plan/stage.h"

#include <string.h>

struct filter {
    struct order_peek peek; /* first: foresees */
    struct order_noting noting;
};

static struct filter *
state_of(struct order_iterator *iterator)
{
    return (struct filter *)iterator->state;
}

static tundish_status
filter_open(struct order_iterator *iterator)
{
    struct filter *filter = state_of(iterator);
    struct order_peek *peek = &filter->peek;

    order_noting_begin(&filter->noting, iterator, false);
    peek->node = iterator->node;
    peek->kind = PEEK_BOOL;
    peek->asks = true;
    return order_peek_open(peek, iterator->node->inputs[0], iterator->instance);
}

static void
note(struct order_iterator *iterator)
{
    struct filter *filter = state_of(iterator);

    if (filter->peek.has_bad)
        order_noting_end(&filter->noting);
    else if (order_noting_wants(&filter->noting, iterator, filter->peek.taken))
        order_noting_note(&filter->noting, iterator, filter->peek.taken, NULL);
}

static enum order_result
filter_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct filter *filter = state_of(iterator);
    struct order_peek *peek = &filter->peek;
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
        filter->noting.passed += holds != 0;
        if (peek->taken == filter->noting.next)
            note(iterator);
    }
    return ORDER_OK;
}

/* The last landmark before the element `count` from here, if it is beyond all that was pulled. */
static bool
find_landmark(const struct filter *filter, uint64_t count, uint64_t *ret_pulled,
              struct order_landmark *ret_landmark)
{
    uint64_t waiting, wanted;

    if (filter->peek.has_bad || !order_peek_waiting(&filter->peek, &waiting) ||
        __builtin_add_overflow(filter->noting.passed, count, &wanted) ||
        !order_noting_before(&filter->noting, wanted, ret_landmark))
        return false;
    *ret_pulled = filter->peek.taken + waiting;
    return ret_landmark->taken > *ret_pulled;
}

/* Where the input was pulled to is seen by later passes, so it is never after what is wanted. */
static enum order_result
filter_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct filter *filter = state_of(iterator);
    struct order_landmark landmark;
    uint64_t pulled, before = filter->noting.passed;

    if (!find_landmark(filter, count, &pulled, &landmark))
        return ORDER_OK;
    order_peek_drop_waiting(&filter->peek);
    if (order_noting_skip(iterator, filter->peek.input, landmark.taken - pulled) != TUNDISH_OK)
        return ORDER_FAILED;
    filter->peek.taken = landmark.taken;
    order_noting_stand_at(&filter->noting, iterator, &landmark, pulled);
    *ret_passed = landmark.passed - before;
    return ORDER_OK;
}

static uint64_t
filter_surely(struct order_iterator *iterator)
{
    const struct filter *filter = state_of(iterator);

    return filter->peek.taken == 0 ? order_noting_reach(&filter->noting) : 0;
}

static void
filter_close(struct order_iterator *iterator)
{
    struct filter *filter = state_of(iterator);

    order_peek_close(&filter->peek);
    order_noting_end(&filter->noting);
}

static const struct stage_question questions[] = {
    { .parameter = "predicate", .dtype = TUNDISH_BOOL },
    { 0 },
};

const struct order_ops order_filter = {
    .name = "filter",
    .is_noted = true,
    .form = ORDER_PASSES,
    .selection = ORDER_CHOOSES,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .content_use = ORDER_READS_CONTENT_ALWAYS,
    .foresees = true,
    .questions = questions,
    .state_bytes = sizeof(struct filter),
    .open = filter_open,
    .next = filter_next,
    .close = filter_close,
    .pass_over = filter_pass_over,
    .surely = filter_surely,
    .cardinality = order_count_some,
};
