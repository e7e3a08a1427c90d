/* slice.h - Python's indexing of dense elements. */
#ifndef CONTENT_EXPRESSION_SLICE_H
#define CONTENT_EXPRESSION_SLICE_H

#include "column/column.h"
#include "column/scratch.h"

/* The part of one dimension that is taken. */
struct slice_item {
    bool is_index; /* only `start`; the dimension is removed */
    bool has_start, has_stop;
    int64_t start, stop, step; /* negative ones count from the end; step is not 0 */
};

/* First index and count: a slice clipped to a dimension of `size`. */
int64_t slice_resolve(const struct slice_item *item, int64_t size, int64_t *ret_first);

/* Take items[k] of dimension k, of all level_count of them, in every element. items holds one set
 * for all elements (items_stride 0) or one for each (items_stride level_count). ret_bad gets 1 for
 * an element with an index outside; its values have no meaning. */
void slice_column(const struct column *column, size_t bytes, const struct slice_item *items,
                  size_t items_stride, struct scratch *scratch, struct column *ret_column,
                  uint8_t *ret_bad);

#endif
