/* noting.h - a stage that notes landmarks (landmarks.h) while it goes through its input, and leaps
 * to one of them.
 */
#ifndef ORDER_NOTING_H
#define ORDER_NOTING_H

#include "order/order.h"

/* All zeros: ended. */
struct order_noting {
    struct order_landmark_list *list; /* NULL: none are noted */
    uint64_t next;                    /* how many are taken where one may be noted */
    uint64_t passed;                  /* the stage counts */
};

/* An iterator is being opened. `are_parts`: several may come of an element. */
void order_noting_begin(struct order_noting *noting, const struct order_iterator *iterator,
                        bool are_parts);

/* Note no more: at the end, or where an element fails. */
void order_noting_end(struct order_noting *noting);

/* The same, where an element after the first `taken` ones turns out to fail: what was noted beyond
 * those does not hold. */
void order_noting_take_back(struct order_noting *noting, uint64_t taken);

/* Where taken == noting->next: is a landmark wanted here? */
bool order_noting_wants(struct order_noting *noting, const struct order_iterator *iterator,
                        uint64_t taken);

/* Where one is wanted: an empty state to write to, and that the landmark is here. A state is not
 * empty any more then, or NULL. */
struct order_state_writer *order_noting_state(const struct order_iterator *iterator);
void order_noting_note(struct order_noting *noting, const struct order_iterator *iterator,
                       uint64_t taken, const struct order_state_writer *state);

/* The last landmark before the element `count` of the pass. False: it is not known. */
bool order_noting_before(const struct order_noting *noting, uint64_t count,
                         struct order_landmark *ret_landmark);

/* Pass over `count` elements of an input, which an earlier run had. */
tundish_status order_noting_skip(const struct order_iterator *iterator,
                                 struct order_iterator *input, uint64_t count);

/* The stage, which had pulled `from` elements, stands at the landmark. */
void order_noting_stand_at(struct order_noting *noting, const struct order_iterator *iterator,
                           const struct order_landmark *landmark, uint64_t from);

/* As order_ops.surely, of a stage that has taken nothing. */
uint64_t order_noting_reach(const struct order_noting *noting);

#endif
