/* shuffle_private.h - the state of a shuffle, for its files: order_shuffle.c draws, shuffle_leap.c
 * moves to a position. */
#ifndef ORDER_SHUFFLE_SHUFFLE_PRIVATE_H
#define ORDER_SHUFFLE_SHUFFLE_PRIVATE_H

#include "order/order.h"
#include "order/shuffle/shuffle_draws.h"

struct shuffle {
    struct order_iterator *input; /* NULL: not made yet, or at its end */
    int64_t epochs;               /* -1: endless */
    int64_t epochs_begun;
    bool any_element;

    /* A ring of `room` elements; held ones begin at `head`. Grows up to `limit`. */
    uint64_t *window;
    uint64_t limit, room, head, held;
    uint64_t most_held;

    /* Elements held of each epoch, oldest first. */
    uint64_t *lengths;
    size_t first_length, length_count, length_room;
    bool back_is_whole; /* the newest epoch has been read to its end */

    uint64_t seeds[2];
    struct shuffle_draws draws;

    bool cannot_leap; /* or has leaped already */
};

static inline struct shuffle *
shuffle_of(struct order_iterator *iterator)
{
    return (struct shuffle *)iterator->state;
}

/* Memory for a ring of `room` elements; free releases it. */
uint64_t *shuffle_window_alloc(uint64_t room, uint32_t width);

/* A new epoch in the window, which has no element yet. */
void shuffle_append_length(struct shuffle *shuffle);

/* Draw as this iterator (or epoch) of the dataset object does. */
void shuffle_seed(struct shuffle *shuffle, const struct plan_node *node, uint64_t iterator_number);

/* order_ops.pass_over. */
enum order_result shuffle_pass_over(struct order_iterator *iterator, uint64_t count,
                                    uint64_t *ret_passed);

#endif
