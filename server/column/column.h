/* column.h - the values of one column for some elements, while content is made.
 *
 * All kinds have one form: a flat array of values and, for each dimension of an element, a level
 * that says how many of the next level's lists (or values) each list here has. A scalar column has
 * no levels. Dense columns whose dimensions are unknown before the data, ragged ones and sparse
 * ones all use splits; what sets them apart is the schema (dense: lists of one dimension of one
 * element are equally long; sparse: values stand at positions 0, 1, 2 ... unless `indices` says
 * otherwise).
 *
 *     elements   levels[0]    levels[1]        values
 *     count  ->  splits   ->  uniform 3   ->   value_count = splits[count] * 3
 */
#ifndef COLUMN_COLUMN_H
#define COLUMN_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

#include "column/schema.h"
#include "column/scratch.h"
#include "core/bytes.h"

struct level {
    int64_t uniform;       /* every list here is this long; -1: see splits */
    const int64_t *splits; /* one more than lists here, from 0, never falling */
};

struct column {
    int64_t count; /* elements */
    uint32_t level_count;
    int64_t value_count;
    const void *values; /* of the schema's dtype; strings: struct byte_view */

    /* SPARSE only, else NULL. indices: for each value its coordinates in the element, level_count
     * each; NULL: 0, 1, 2 ... in the list it is in. dense_shape: level_count for each element;
     * NULL: the longest lists. */
    const int64_t *indices;
    const int64_t *dense_shape;

    struct level levels[RANK_MAX]; /* last: most columns have few, and only those are copied */
};

/* Copies only the levels that are there. */
static inline void
column_copy(struct column *to, const struct column *from)
{
    to->count = from->count;
    to->level_count = from->level_count;
    to->value_count = from->value_count;
    to->values = from->values;
    to->indices = from->indices;
    to->dense_shape = from->dense_shape;
    for (uint32_t k = 0; k < from->level_count; k++)
        to->levels[k] = from->levels[k];
}

/* A column without elements or values: its levels mean nothing. */
static inline void
column_clear(struct column *column)
{
    column->count = 0;
    column->level_count = 0;
    column->value_count = 0;
    column->values = NULL;
    column->indices = NULL;
    column->dense_shape = NULL;
}

/* Lists at level `k` for all elements together (level 0: count); k == level_count: the values. */
int64_t column_list_count(const struct column *column, uint32_t level);

/* Where list `index` of level `k` begins in the next level. */
static inline int64_t
level_begin(const struct level *level, int64_t index)
{
    return level->uniform >= 0 ? index * level->uniform : level->splits[index];
}

static inline int64_t
level_length(const struct level *level, int64_t index)
{
    return level->uniform >= 0 ? level->uniform : level->splits[index + 1] - level->splits[index];
}

/* The range of values that belongs to elements [begin, end). */
void column_value_range(const struct column *column, int64_t begin, int64_t end, int64_t *ret_begin,
                        int64_t *ret_end);

/* The element that value `value` belongs to. A search, for error messages. */
int64_t column_element_of(const struct column *column, int64_t value);

/* Does every list of level `k` have the same length? Stores it (0 if there are no lists). */
bool column_is_uniform(const struct column *column, uint32_t level, int64_t *ret_length);

/* A sparse column states the dense shape of its elements, which slices of them keep. */
void column_state_shape(struct column *column, struct scratch *scratch);

/* No elements of a column like this. */
struct column column_of_none(const struct column_spec *spec);

#endif
