/* look.h - elements whose content another thread looks at, for a stage that decides the order by
 * it.
 *
 * The stage hands looks out in the order of their elements and takes them back in that order, so
 * what it decides does not depend on when they are done, nor by whom.
 */
#ifndef ORDER_LOOK_H
#define ORDER_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish.h"

struct frame;
struct order_scope;
struct plan_node;

enum order_look_state {
    LOOK_WAITS, /* for a thread */
    LOOK_RUNS,
    LOOK_DONE
};

/* A filter finds out about an element for the filters right after it: how many of them let it
 * through, one after the other, and whether the next one is known to stop it. 0: nothing. */
enum { FORESEEN_STOP = 1, FORESEEN_PASS = 2, FORESEEN_AT_MOST = 100 };

struct order_look {
    const struct plan_node *node; /* as order_evaluate has them: */
    bool asks;                    /* evaluate_answers is meant */
    const struct order_scope *scope;
    const uint64_t *words;
    uint64_t count;

    /* If asks: filters right after it, FORESEEN_AT_MOST at most, and what is found out for them, by
     * element. Written only where the look is OK. */
    const struct plan_node *const *later;
    uint32_t later_count;
    uint16_t *foreseen;

    /* Copy what the stage wants from the content. On the thread that made it. */
    tundish_status (*take)(struct order_look *look, const struct frame *frame);
    void *chunk; /* the stage's own */

    /* Once it is done. */
    tundish_status status;
    uint64_t skipped; /* rows left out, with the text of the last: both go to
                         order_services.looked */
    char *skipped_text;
    int64_t took_ns;

    /* For the caller that hands looks to threads. */
    enum order_look_state state;
    struct order_look *next;
};

/* Threads that look. All functions are called by the thread of the order. */
struct order_looks {
    uint32_t threads;
    void *context;

    /* The look and its words stay as they are until it is taken back, by one of the others. */
    void (*begin)(void *context, struct order_look *look);

    /* Wait until it is done. Fails if the order is being stopped; it then is still to be forgotten.
     */
    tundish_status (*await)(void *context, struct order_look *look);

    /* It is not wanted any more: returns when no thread has it. */
    void (*forget)(void *context, struct order_look *look);
};

#endif
