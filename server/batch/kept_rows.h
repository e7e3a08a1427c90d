/* kept_rows.h - rows that a stage of the order has looked at and that are on their way: made once,
 * for the look, they need not be made again for their batch.
 *
 * Only time is saved. A row that is not here, or no more, is made again. Rows are kept in the order
 * in which they were looked at, and handed out once. Where there is no room, the newest are not
 * kept, unless the oldest have long been overtaken by others: nobody seems to want these, and they
 * are given up. Any thread calls any function.
 */
#ifndef BATCH_KEPT_ROWS_H
#define BATCH_KEPT_ROWS_H

#include "column/frame.h"
#include "plan/plan.h"

struct kept_block;
struct kept_rows;

/* Room for the rows of a stream: a part of memory_limit, or of what is free. NULL: no stage looks
 * at rows that are delivered and whose words always mean the same. */
struct kept_rows *kept_rows_open(const struct plan *plan);
void kept_rows_close(struct kept_rows *kept); /* accepts NULL; no row is in use any more */
void kept_rows_clear(struct kept_rows *kept); /* likewise */

/* May rows of this node be kept? */
bool kept_rows_of(const struct kept_rows *kept, const struct plan_node *node);

/* Rows that a node has made: row i is element elements[i] of `words`. */
struct kept_offer {
    const struct plan_node *node;
    const uint64_t *words;
    const uint64_t *elements;
    const struct frame *rows;
    int64_t took_ns; /* what making them took: what takes hardly longer than keeping is not kept */
};

void kept_rows_offer(struct kept_rows *kept, const struct kept_offer *offer);

/* Rows that lie side by side, of the elements that were wanted. */
struct kept_piece {
    const struct kept_block *block;
    int64_t first, count;
};

struct kept_want {
    const struct plan_node *node;
    const uint64_t *words; /* the first element's */
    size_t stride;
    int64_t count;
    struct scratch *scratch; /* what is found lives until it is reset */
};

/* Hand out those that are here: pieces, at most `count`, whose rows are elements found[0, *]; the
 * others are missing[0, *]. Returns how many pieces. */
uint32_t kept_rows_take(struct kept_rows *kept, const struct kept_want *want,
                        struct kept_piece *pieces, int64_t *found, int64_t *missing,
                        int64_t *ret_missing_count);

/* Column `index` of a piece. */
void kept_piece_column(const struct kept_piece *piece, uint32_t index, tundish_dtype dtype,
                       struct scratch *scratch, struct column *ret_column);

#endif
