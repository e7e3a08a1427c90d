/* peek.h - elements of an input, each with one number that its content gives: for stages that must
 * look inside to decide the order.
 *
 * Content is evaluated for many elements at once, a chunk, where pulling them ahead cannot be seen;
 * and where it takes long enough, by other threads (look.h), a few chunks ahead. Filters right
 * after each other look once: the first one asks for all of them.
 */
#ifndef ORDER_PEEK_H
#define ORDER_PEEK_H

#include "order/order.h"

enum order_peek_kind {
    PEEK_BOOL,  /* of a bool scalar: 0 or 1 */
    PEEK_INT64, /* the value of an int64 scalar */
    PEEK_LENGTH /* dimension 0; of an int64 scalar its value */
};

struct order_peek_chunk {
    uint64_t *words; /* [at, count) are waiting */
    int64_t *numbers, *seconds;
    bool *left_out;     /* bad content, which is to be passed over */
    uint16_t *foreseen; /* look.h; NULL: no filter is right after the stage */
    bool is_seen; /* numbers and left_out are there: else the content of one of them is bad, and
                     each is looked at by itself */
    size_t at, count, room;
    struct order_peek *peek;
    bool is_away; /* handed out and not taken back: the rest of the look is another thread's */
    struct order_look look;
};

struct order_peek {
    const struct plan_node *node; /* whose content is evaluated */
    bool asks;                    /* not its columns, but the answers to its questions */
    enum order_peek_kind kind;
    uint32_t column;
    uint16_t foreseen; /* of the element that came last */
    bool has_second;   /* another int64 scalar, in the next column: */
    int64_t second;    /* of the element that came last */

    struct order_iterator *input;
    struct order_peek *before;      /* of the filter that is the input; NULL: it is none */
    const struct plan_node **later; /* the filters right after this one */
    uint32_t later_count;
    uint16_t *given; /* what is foreseen of the elements that order_next brought last */
    size_t given_room;
    bool may_look_ahead;
    struct order_peek_chunk *chunks; /* a ring: first .. first + count */
    uint32_t capacity, first, count;
    size_t pulled;                    /* elements of the last chunk */
    uint64_t taken;                   /* elements of the input, by order_peek_next */
    bool has_bad;                     /* one of them failed or was left out */
    int64_t pull_ns;                  /* what pulling it took, where others look */
    enum order_result held_result;    /* not OK: what comes after the last chunk */
    struct order_failure *held_error; /* FAILED: to be told with it */
};

/* Make an iterator of `input`, whose elements `node` evaluates: `input` itself, or a filter after
 * it. May fail half-way: close is called either way. */
tundish_status order_peek_open(struct order_peek *peek, const struct plan_node *input,
                               struct order_instance *instance);

/* The next element: width words that the caller now owns, valid until the next call. `max`: how
 * many elements the caller is sure to want. */
enum order_result order_peek_next(struct order_peek *peek, size_t max, const uint64_t **ret_words,
                                  int64_t *ret_number);

/* A stage that foresees says that the element which came last is the one at `index` of those that
 * its order_next brings. */
void order_peek_give(struct order_peek *peek, size_t index);

/* How many elements are pulled and not taken, if nothing else is known of what comes after them;
 * false: it is. And give them up. */
bool order_peek_waiting(const struct order_peek *peek, uint64_t *ret_count);
void order_peek_drop_waiting(struct order_peek *peek);

void order_peek_close(struct order_peek *peek);

/* The rows that content turns out to have in an element of the iterator's input: dimension 0 of its
 * columns. Fails if they do not agree. *ret_left_out: its content is bad, so that it has none. */
tundish_status order_peek_rows(const struct order_iterator *iterator, const uint64_t *element,
                               uint64_t *ret_rows, bool *ret_left_out);

#endif
