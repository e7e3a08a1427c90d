/* op_list.h - the lists that a custom transform makes, one for each value that it takes. */
#ifndef CONTENT_CUSTOM_OP_LIST_H
#define CONTENT_CUSTOM_OP_LIST_H

#include "column/column.h"
#include "column/scratch.h"

struct op_list {
    struct scratch *scratch;
    size_t value_bytes;
    int64_t list_count; /* the number of lists to come */
    int64_t begun;      /* lists that were begun or skipped */
    int64_t *splits;
    uint8_t *values;
    int64_t value_count, capacity;
};

/* Lists for `list_count` values, none begun. */
void op_list_open(struct op_list *list, struct scratch *scratch, tundish_dtype dtype,
                  int64_t list_count);

/* Room for the `count` values of list `index`, all zero; lists before it that were not begun are
 * empty. Lives until the next call. NULL: the list was begun before or there is none of that
 * index, or it is longer than any may be. */
void *op_list_room(struct op_list *list, uint64_t index, uint64_t count);

/* The last dimension of `column`, which has one value for each list; the rest are empty. */
void op_list_append(struct op_list *list, struct column *column);

#endif
