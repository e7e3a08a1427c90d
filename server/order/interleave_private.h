/* interleave_private.h - what an interleave holds, for the files that pass over its elements. */
#ifndef ORDER_INTERLEAVE_PRIVATE_H
#define ORDER_INTERLEAVE_PRIVATE_H

#include "order/announce.h"
#include "order/bodies.h"
#include "order/noting.h"

/* The dataset that the function made for one outer element. */
struct interleave_slot {
    struct order_iterator *iterator; /* NULL: empty */
    struct order_instance *instance;
    struct order_scope *scope;
    uint64_t *ahead; /* [at, count) are waiting; NULL: this slot is not pulled ahead */
    size_t at, count;
    uint64_t outer; /* which outer element it is of, from 1 */
    uint64_t taken; /* elements */
    uint64_t reach; /* elements that are there, as was found out while passing over some */
    bool is_whole;  /* and no more, or the next one fails */
    bool has_failed;
};

struct interleave {
    struct order_iterator *input; /* NULL: at its end */
    struct announce announce;     /* of its elements */
    uint64_t pulled;              /* of them */
    uint64_t cycle_length, block_length;
    struct interleave_slot *slots; /* those visited so far: a huge cycle_length over few outer
                           elements takes little memory */
    size_t slot_count, slot_room;
    size_t open_count;
    size_t at;            /* the slot whose turn it is */
    uint64_t emitted;     /* elements of its block so far */
    bool can_reopen;      /* unobservable: a body's datasets are gone with their outer element, and
                             nothing is numbered in there */
    bool pulls_ahead;     /* likewise */
    struct bodies bodies; /* flat_map: for random access */
    struct order_noting noting; /* not where can_reopen: rounds are not counted */
    uint64_t left_out;          /* of order_services, when it was opened */
};

/* Make the dataset of the outer element that was pulled last, in the slot whose turn it is. */
tundish_status interleave_open_slot(struct order_iterator *iterator, const uint64_t *outer_words);

/* Another slot, which is empty. */
void interleave_add_slot(struct interleave *interleave);

/* Close a slot and empty it; accepts an empty one. */
void interleave_close_slot(struct interleave *interleave, struct interleave_slot *slot,
                           const struct plan_node *node);

/* Pass over at most `max` of the elements that wait in a slot. Returns how many. */
size_t interleave_drop_waiting(struct interleave_slot *slot, const struct plan_node *root,
                               uint64_t max);

/* Pass over all rounds before the next one in which a slot is opened or ends, but over at most
 * `count` elements: none within a block, or if a slot is to be opened. */
enum order_result interleave_pass_over_rounds(struct order_iterator *iterator, uint64_t count,
                                              uint64_t *ret_passed);

/* Where the function decides by content it is noted which outer elements' datasets are open, and
 * how many elements of each were taken: where that is wanted, do so. */
void interleave_note(struct order_iterator *iterator);

/* Go to the last such landmark before the element `count`, if nothing was brought yet. None but the
 * open datasets are gone through again. */
enum order_result interleave_leap(struct order_iterator *iterator, uint64_t count,
                                  uint64_t *ret_passed);

#endif
