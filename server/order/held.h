/* held.h - the elements that a stage holds back, told by their numbers in its input: in a
 * landmark's state, and made again from it.
 */
#ifndef ORDER_HELD_H
#define ORDER_HELD_H

#include "order/order.h"

/* Some of them, by ascending numbers. */
struct order_held {
    uint64_t *words;
    uint64_t *numbers; /* where landmarks are noted; else NULL */
    size_t count, room;
};

/* More room; and free it, accepting zeros. */
void order_held_grow(struct order_held *held, size_t room, uint32_t width, bool has_numbers);
void order_held_close(struct order_held *held);

/* Write the numbers, and read them: those below `taken`, fewer than `most`, with words that are
 * zeros. False: they cannot be. */
void order_held_write(const struct order_held *held, struct order_state_writer *writer);
bool order_held_read(struct order_held *held, struct order_state_reader *reader, uint64_t most,
                     uint32_t width);

/* Pull the elements of all that are held out of the first `taken` of the input, of which none is
 * pulled yet, and pass over the others. NO_VALUE: no stage can hold these, and nothing was pulled.
 */
tundish_status order_held_pull(const struct order_iterator *iterator, struct order_iterator *input,
                               struct order_held *const *list, size_t list_count, uint64_t taken);

#endif
