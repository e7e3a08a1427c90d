/* passes.h - rows that come once for each pass over a source, and may be wanted again.
 *
 * They are written to a spool. A pass is compared with the pass before it as it is read. While the
 * bytes are the same, its references point to the rows that are there already and it takes no more
 * room. From the first difference on it has rows of its own.
 *
 * Words of an element: those of a file's record, where the file is the spool, and a hash of the
 * row. All rows are kept, even those that a resumed stream passes over, so that a row has the same
 * offset on all nodes. */
#ifndef SOURCE_ROWS_PASSES_H
#define SOURCE_ROWS_PASSES_H

#include "order/order.h"
#include "source/rows/spool.h"
#include "source/source.h"

enum { PASS_WIDTH = SOURCE_WIDTH + 1 };

struct passes;

/* An iterator's pass; all zeros before it begins. */
struct pass {
    struct passes *kept; /* by the dataset object, for the next pass */
    bool owns;           /* others at the same time neither compare nor record theirs */
    bool is_repeating;   /* all rows so far were the same as in the last pass */
    uint64_t repeated;   /* bytes of the last pass that came again */
    uint64_t first;      /* the row that it began with */
    uint64_t rows;       /* so far, and those before the first */
};

/* `name` is for messages. */
tundish_status pass_begin(struct order_iterator *iterator, const char *name, struct pass *ret_pass);

/* It begins with row `first`: before any row is kept. */
void pass_begin_at(struct pass *pass, uint64_t first);

/* Keep `count` rows, which lie one after the other in `bytes`: row i ends at ends[i]. Writes the
 * words of their elements. */
enum order_result pass_keep(struct order_iterator *iterator, struct pass *pass, const char *name,
                            const uint8_t *bytes, const uint64_t *ends, size_t count,
                            uint64_t *words);

/* As in struct source_ops: every pass is kept. */
bool passes_need_cache(const void *state, bool has_urls);

void pass_end(struct pass *pass); /* accepts zeros */

#endif
