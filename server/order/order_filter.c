/* order_filter.c - the elements for which the predicate holds. Only the columns that the predicate
 * needs are evaluated here. The content of the chosen elements is made later, from their
 * references. */
#include "order/cardinality.h"
#include "order/peek.h"
#include "plan/stage.h"

#include <inttypes.h>
#include <string.h>

struct filter {
    struct order_peek peek; /* first: foresees */
    uint64_t passed;
    uint64_t landmark;                     /* how many are taken at the next one */
    struct order_landmark_list *landmarks; /* NULL: none are noted */
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

    filter->landmarks = order_landmarks_begin(iterator);
    filter->landmark = filter->landmarks != NULL
                           ? order_landmarks_step(iterator->instance->services->landmarks)
                           : UINT64_MAX;
    peek->node = iterator->node;
    peek->kind = PEEK_BOOL;
    peek->asks = true;
    return order_peek_open(peek, iterator->node->inputs[0], iterator->instance);
}

static void
note(struct order_iterator *iterator)
{
    struct filter *filter = state_of(iterator);
    struct order_landmarks *landmarks = iterator->instance->services->landmarks;

    if (filter->peek.has_bad)
        return;
    order_landmarks_note(landmarks, filter->landmarks, filter->peek.taken, filter->passed);
    filter->landmark += order_landmarks_step(landmarks);
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
        filter->passed += holds != 0;
        if (peek->taken == filter->landmark)
            note(iterator);
    }
    return ORDER_OK;
}

/* To the last landmark before what is wanted. Where the input was pulled to is seen by later
 * passes, so it is never after that. */
static enum order_result
filter_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct filter *filter = state_of(iterator);
    uint64_t taken, passed, reached;
    enum order_result result;

    if (filter->landmarks == NULL || filter->peek.taken > 0 ||
        !order_landmarks_before(filter->landmarks, count, &taken, &passed))
        return ORDER_OK;
    result = order_pass_over(filter->peek.input, taken, &reached);
    if (result == ORDER_END)
        order_fail(iterator, TUNDISH_E_DATA,
                   "an earlier run had %" PRIu64 " elements, and there are %" PRIu64
                   ": empty the cache folder if files have changed",
                   taken, reached);
    if (result != ORDER_OK)
        return ORDER_FAILED;
    filter->peek.taken = taken;
    filter->landmark = taken + order_landmarks_step(iterator->instance->services->landmarks);
    filter->passed = *ret_passed = passed;
    iterator->instance->services->landmarks->leapt += taken;
    return ORDER_OK;
}

static uint64_t
filter_surely(struct order_iterator *iterator)
{
    const struct filter *filter = state_of(iterator);

    return filter->landmarks != NULL && filter->peek.taken == 0
               ? order_landmarks_reach(filter->landmarks)
               : 0;
}

static void
filter_close(struct order_iterator *iterator)
{
    struct filter *filter = state_of(iterator);

    order_peek_close(&filter->peek);
    order_landmarks_end(filter->landmarks);
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
    .state_bytes = sizeof(struct filter),
    .open = filter_open,
    .next = filter_next,
    .close = filter_close,
    .pass_over = filter_pass_over,
    .surely = filter_surely,
    .cardinality = order_count_some,
};
