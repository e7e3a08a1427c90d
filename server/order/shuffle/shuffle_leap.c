/* shuffle_leap.c - moves a new shuffle to a position without making all draws before it.
 *
 * Within an epoch the contents of the window are computed backwards (shuffle_seek.h), and only
 * those elements are pulled from the input. This is exact: Philox can start at any draw, and while
 * the window is full the slots that a draw touches do not depend on the elements. Whole epochs are
 * only counted.
 *
 * The input may turn out to be shorter than a leap assumes. Then its counts are restored, and it is
 * opened again.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/rewind.h"
#include "order/shuffle/shuffle_private.h"
#include "order/shuffle/shuffle_seek.h"

enum {
    LANDING_ELEMENTS = 1024,
    WORTH_PASSING = 128, /* shorter gaps are pulled and dropped */
    UNSEEN_SIZE =
        1 << 20 /* a window up to this size is made before the input is known to fill it */
};
#define UNSEEN_ELEMENTS (UINT64_C(1) << 40)

/* The elements still to be put into the window, the last first, and the position in the input. */
struct landing {
    struct shuffle_held *held;
    uint32_t left; /* held[0, left) are still to come */
    uint64_t at;
    uint64_t *words;
};

/* Pull elements before `end`, store the wanted ones in the window and release the others. */
static enum order_result
land_some(struct order_iterator *iterator, struct landing *landing, uint64_t end)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    const struct plan_node *node = iterator->node;
    uint64_t begin = landing->at;
    size_t max = end - begin < LANDING_ELEMENTS ? (size_t)(end - begin) : LANDING_ELEMENTS;
    size_t count, done = 0;
    enum order_result result = order_next(shuffle->input, landing->words, max, &count);

    landing->at += count;
    while (landing->left > 0 && landing->held[landing->left - 1].number < landing->at) {
        const struct shuffle_held *one = &landing->held[--landing->left];
        size_t index = (size_t)(one->number - begin);

        run_words_release(landing->words + done * node->width, index - done, node->width,
                          node->run_words);
        memcpy(shuffle->window + (uint64_t)one->slot * node->width,
               landing->words + index * node->width, node->width * sizeof *landing->words);
        done = index + 1;
    }
    run_words_release(landing->words + done * node->width, count - done, node->width,
                      node->run_words);
    return result;
}

/* Undo a landing: release the elements in the window. */
static void
take_off(struct order_iterator *iterator, const struct landing *landing)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    const struct plan_node *node = iterator->node;

    for (uint64_t i = landing->left; i < shuffle->limit - 1 && node->run_words != 0; i++)
        run_words_release(shuffle->window + (uint64_t)landing->held[i].slot * node->width, 1,
                          node->width, node->run_words);
    free(shuffle->window);
    shuffle->window = NULL;
    order_drop(&shuffle->input);
}

/* Read or pass over the input up to `end` and fill the window. *ret_reached: how far the input
 * goes. */
static enum order_result
land(struct order_iterator *iterator, uint64_t draws, uint64_t end, uint64_t *ret_reached)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint32_t width = iterator->node->width;
    struct landing landing = {
        .held = shuffle_seek(shuffle->seeds[0], shuffle->seeds[1], (uint32_t)shuffle->limit, draws),
        .left = (uint32_t)shuffle->limit - 1,
        .words = tnd_alloc(LANDING_ELEMENTS * width * sizeof *landing.words),
    };
    enum order_result result = ORDER_OK;

    shuffle->window = shuffle_window_alloc(shuffle->limit, width);
    while (landing.at < end && result == ORDER_OK) {
        uint64_t wanted = landing.left > 0 ? landing.held[landing.left - 1].number : end;
        uint64_t passed;

        if (wanted - landing.at <= WORTH_PASSING) {
            result = land_some(iterator, &landing, end);
            continue;
        }
        result = order_pass_over(shuffle->input, wanted - landing.at, &passed);
        landing.at += passed;
    }
    if (result != ORDER_OK)
        take_off(iterator, &landing);
    free(landing.held);
    free(landing.words);
    *ret_reached = landing.at;
    return result;
}

static tundish_status
open_input(struct order_iterator *iterator)
{
    return order_open(iterator->node->inputs[0], iterator->instance, &shuffle_of(iterator)->input);
}

/* Check whether the input reaches `end`, if that is cheaper than a landing in vain: an indexed
 * input knows its count, and a huge window would be allocated for nothing. OK: it does or may, and
 * no iterator of it is open. */
static enum order_result
probe(struct order_iterator *iterator, uint64_t end, uint64_t *ret_reached)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    struct order_counts before;
    enum order_result result;

    if (!order_is_indexed(iterator->node->inputs[0]) && shuffle->limit <= UNSEEN_SIZE &&
        end <= UNSEEN_ELEMENTS)
        return ORDER_OK;
    order_counts_save(iterator->instance, &before);
    if (open_input(iterator) != TUNDISH_OK)
        result = ORDER_FAILED;
    else
        result = order_pass_over(shuffle->input, end, ret_reached);
    order_drop(&shuffle->input);
    if (result == ORDER_OK)
        order_counts_restore(iterator->instance, &before);
    order_counts_close(&before);
    return result;
}

/* Move to where `draws` draws of the first epoch have been made. END: the input has only
 * *ret_reached elements, so the window is not full at every draw. The input has then been read to
 * its end. */
static enum order_result
leap_in_epoch(struct order_iterator *iterator, uint64_t draws, uint64_t *ret_reached)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint64_t end;
    enum order_result result;

    if (__builtin_add_overflow(draws, shuffle->limit - 1, &end))
        end = UINT64_MAX;
    result = probe(iterator, end, ret_reached);
    if (result == ORDER_OK &&
        (shuffle->limit > UINT32_MAX ||
         order_room(iterator, "buffer_size", shuffle->limit,
                    iterator->node->width * sizeof *shuffle->window) != TUNDISH_OK ||
         open_input(iterator) != TUNDISH_OK))
        result = ORDER_FAILED;
    if (result == ORDER_OK)
        result = land(iterator, draws, end, ret_reached);
    if (result != ORDER_OK)
        return result;
    shuffle->room = shuffle->most_held = shuffle->limit;
    shuffle->held = shuffle->limit - 1;
    shuffle->head = draws % shuffle->limit;
    shuffle_append_length(shuffle);
    shuffle->lengths[shuffle->first_length] = shuffle->held;
    shuffle->any_element = true;
    shuffle->epochs_begun = 1;
    shuffle->draws = shuffle_draws_of(shuffle->seeds[0], shuffle->seeds[1], draws);
    return ORDER_OK;
}

/* Start `epochs` epochs later, with the seeds that tf.data would then have drawn. */
static void
leap_epochs(struct order_iterator *iterator, uint64_t epochs)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint64_t *iterators = &iterator->instance->iterator_counts[iterator->node->number];

    *iterators += epochs;
    shuffle_seed(shuffle, iterator->node, *iterators - 1);
    if (shuffle->epochs >= 0)
        shuffle->epochs -= (int64_t)epochs;
    shuffle->any_element = true;
}

/* How many of the whole epochs before element `count` to leap over. The last epoch always stays,
 * since the next one begins (and draws its seeds) with the first draw after it. An epoch smaller
 * than the window stays too, if it precedes the one wanted: that one already fills part of the
 * window. */
static uint64_t
epochs_to_leap(const struct shuffle *shuffle, uint64_t count, uint64_t length)
{
    uint64_t whole = (count - 1) / length;

    if (shuffle->epochs >= 0 && whole >= (uint64_t)shuffle->epochs)
        whole = (uint64_t)shuffle->epochs - 1;
    return length < shuffle->limit && whole > 0 ? whole - 1 : whole;
}

/* `count` is at or after the last element of the last epoch: nothing is left to draw. */
static enum order_result
leap_to_end(struct order_iterator *iterator, const struct order_counts *before, uint64_t length,
            uint64_t count, uint64_t *ret_passed)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint64_t epochs = (uint64_t)shuffle->epochs;

    order_counts_add_passes(iterator->instance, before, epochs - 1);
    leap_epochs(iterator, epochs - 1);
    shuffle->epochs = 0;
    *ret_passed = epochs * length;
    return count > *ret_passed ? ORDER_END : ORDER_OK;
}

/* The input has been read once since `before` and has `length` elements, too few to leap to element
 * `count` within the first epoch. Leap over whole epochs, then within the one that holds the
 * element. */
static enum order_result
leap_far(struct order_iterator *iterator, const struct order_counts *before, uint64_t length,
         uint64_t count, uint64_t *ret_passed)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    bool alike =
        length > 0 && (shuffle->epochs == 1 || order_passes_are_alike(iterator->node->inputs[0]));
    uint64_t all, whole = alike ? epochs_to_leap(shuffle, count, length) : 0;
    uint64_t draws, reached;

    if (alike && shuffle->epochs > 0 &&
        !__builtin_mul_overflow(length, (uint64_t)shuffle->epochs, &all) && count >= all)
        return leap_to_end(iterator, before, length, count, ret_passed);
    if (whole > 0) {
        order_counts_add_passes(iterator->instance, before, whole - 1);
        leap_epochs(iterator, whole);
    } else {
        order_counts_restore(iterator->instance, before);
    }
    *ret_passed = whole * length;
    draws = count - *ret_passed;
    if (length <= shuffle->limit)
        return ORDER_OK;
    if (draws > length - shuffle->limit)
        draws = length - shuffle->limit;
    if (draws > 0 && leap_in_epoch(iterator, draws, &reached) == ORDER_OK)
        *ret_passed += draws;
    return ORDER_OK;
}

/* Does it make content, or a function in it, of which nothing is noted? */
static bool
looks_unnoted(const struct plan_node *node)
{
    return (order_reads_content(node) ||
            (node->body != NULL && order_any(node->body->root, order_reads_content))) &&
           !order_is_noted(node);
}

/* Little content is made twice where an earlier run has noted what comes of it: that after the last
 * landmark of a pass. */
static bool
is_noted(const struct order_iterator *iterator)
{
    const struct plan_node *input = iterator->node->inputs[0];
    const struct order_landmarks *landmarks = iterator->instance->services->landmarks;

    return landmarks != NULL && order_landmarks_are_there(landmarks) &&
           !order_any(input, looks_unnoted) && order_passes_are_alike(input);
}

/* Else content is not made twice, so an input that decides by content must surely go far enough. */
static bool
is_far_enough(struct order_iterator *iterator, uint64_t draws)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    const struct order_ops *ops = order_node(iterator->node->inputs[0])->order;
    struct order_counts before;
    uint64_t end;
    bool is_far = false;

    if (ops->surely == NULL || __builtin_add_overflow(draws, shuffle->limit - 1, &end))
        return false;
    order_counts_save(iterator->instance, &before);
    if (open_input(iterator) == TUNDISH_OK)
        is_far = ops->surely(shuffle->input) >= end;
    order_drop(&shuffle->input);
    order_counts_restore(iterator->instance, &before);
    order_counts_close(&before);
    return is_far;
}

/* Leaps start only at the very beginning. A failure is hidden here: the elements are pulled
 * instead, and it occurs again at its own position. */
enum order_result
shuffle_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    struct order_counts before;
    uint64_t reached = 0;
    enum order_result result;

    *ret_passed = 0;
    if (shuffle->epochs_begun > 0 || shuffle->epochs == 0 || shuffle->cannot_leap)
        return ORDER_OK;
    shuffle->cannot_leap = true;
    if (!order_can_rewind(iterator->node->inputs[0]) && !is_noted(iterator) &&
        !is_far_enough(iterator, count))
        return ORDER_OK;
    order_counts_save(iterator->instance, &before);
    result = leap_in_epoch(iterator, count, &reached);
    if (result == ORDER_OK)
        *ret_passed = count;
    else if (result == ORDER_END)
        result = leap_far(iterator, &before, reached, count, ret_passed);
    else
        order_counts_restore(iterator->instance, &before);
    order_counts_close(&before);
    return result == ORDER_FAILED ? ORDER_OK : result;
}
