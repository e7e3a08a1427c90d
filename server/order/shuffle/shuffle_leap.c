/* shuffle_leap.c - a shuffle made to stand where others have drawn, without its draws.
 *
 * Within an epoch the window is worked out (shuffle_seek.h), and only what it holds is taken from
 * the input; whole epochs are counted. The input may turn out to be shorter than a leap takes it to
 * be, and is then begun again.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/rewind.h"
#include "order/shuffle/shuffle_private.h"
#include "order/shuffle/shuffle_seek.h"

enum {
    LANDING_ELEMENTS = 1024,
    WORTH_PASSING = 128,  /* elements; fewer are pulled and dropped */
    UNSEEN_SIZE = 1 << 20 /* of a window that is made before it is known that the input fills it */
};
#define UNSEEN_ELEMENTS (UINT64_C(1) << 40)

/* What is to come into the window, the last first, and how far the input has been gone through. */
struct landing {
    struct shuffle_held *held;
    uint32_t left; /* of them */
    uint64_t at;
    uint64_t *words;
};

/* Pull elements before `end`, and put those wanted into the window. */
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

/* Give up what has come into the window. */
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

/* Go through the input up to `end`; *ret_reached is how far it goes. */
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

/* See whether the input goes as far as `end`, where that is told sooner than by landing in vain.
 * OK: it does, or may; it has not been begun. */
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

/* Stand in the first epoch where `draws` draws have been made. END: it has *ret_reached elements,
 * with which the window is not full at each, and has been gone through. */
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

/* Begin `epochs` epochs later, as if those before had been drawn from. */
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

/* How many of the whole epochs before element `count` to leap over. The last one stays, also of
 * those wanted: the next begins with its first draw. So does, before the one wanted, one that is
 * smaller than the window: it fills a part of it by then. */
static uint64_t
epochs_to_leap(const struct shuffle *shuffle, uint64_t count, uint64_t length)
{
    uint64_t whole = (count - 1) / length;

    if (shuffle->epochs >= 0 && whole >= (uint64_t)shuffle->epochs)
        whole = (uint64_t)shuffle->epochs - 1;
    return length < shuffle->limit && whole > 0 ? whole - 1 : whole;
}

/* All epochs are passed over: nothing is left to draw. */
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

/* The input has been gone through once, since `before`, and has `length` elements: too few for a
 * leap to element `count` within the first epoch. */
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

/* Only from where nothing has been drawn yet. What fails here fails again, in its place, when
 * elements are pulled instead. */
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
    if (!order_can_rewind(iterator->node->inputs[0]))
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
