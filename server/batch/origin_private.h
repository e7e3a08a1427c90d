/* origin_private.h - what the files of origin.h share: the origin of an element as a tree, which
 * has the form of the element.
 */
#ifndef BATCH_ORIGIN_PRIVATE_H
#define BATCH_ORIGIN_PRIVATE_H

#include "batch/origin.h"

enum origin_kind {
    ORIGIN_SOURCE, /* an element of a source */
    ORIGIN_BATCH,  /* the parts are its rows */
    ORIGIN_BESIDE, /* the parts are side by side: each has the rows (zip) */
    ORIGIN_INSIDE, /* the first part is what a function gave, the other its outer element */
    ORIGIN_PIECE, /* row `row` of what is made of the part; -1: all of it, whose rows are unknown */
};

struct origin_marked {
    struct origin_mark mark;
    const struct origin_marked *next;
};

struct origin {
    enum origin_kind kind;
    const struct plan_node *node; /* ORIGIN_SOURCE */
    const uint64_t *words;
    int64_t row; /* ORIGIN_SOURCE, ORIGIN_PIECE */
    size_t count;
    struct origin **parts;
    const struct origin_marked *marks; /* of the whole element */
};

struct origin_walk {
    struct origins *origins;
    struct evaluation *evaluation; /* makes content where references do not tell */
    uint32_t functions;            /* of which it is inside: there content is not made */
};

/* The rows of an origin. */
struct origin_rows {
    struct origin **list;
    size_t count;
};

struct origin *origin_new(struct origin_walk *walk, enum origin_kind kind, size_t count);

/* The origin of one element of `node`. */
struct origin *origin_of(struct origin_walk *walk, const struct plan_node *node,
                         const uint64_t *words);

/* The rows that references tell. False: only content has them. */
bool origin_rows_told(struct origin_walk *walk, const struct origin *origin,
                      struct origin_rows *ret_rows);

/* The rows of an element of `node`, without those that are left out because they are bad. Rows that
 * references do not tell are pieces. */
void origin_rows_of(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words,
                    const struct origin *origin, struct origin_rows *ret_rows);

/* Rows [begin, end) of such, as far as they reach. */
struct origin *origin_cut(struct origin_walk *walk, const struct origin_rows *rows, uint64_t begin,
                          uint64_t end);

/* How many rows the content of an element has; -1: that is not known. */
int64_t origin_content_rows(struct origin_walk *walk, const struct plan_node *node,
                            const uint64_t *words);

#endif
