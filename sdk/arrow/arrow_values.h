/* arrow_values.h - values of Arrow arrays, side by side as Tundish has them.
 *
 * Arrays come from other programs: what they say of themselves is checked. The interface does not
 * say how long buffers are, so a program that lies about lengths makes this one read other memory.
 */
#ifndef TND_ARROW_ARROW_VALUES_H
#define TND_ARROW_ARROW_VALUES_H

#include "arrow/arrow_fields.h"

/* Memory that grows and is used again. */
struct arrow_room {
    uint8_t *data;
    size_t bytes;
};

/* Some rows of a field. */
struct arrow_values {
    struct arrow_room values;    /* of the dtype; texts: struct byte_view into the array */
    struct arrow_room nulls;     /* of each value, is it null? Only if null_count is not 0 */
    struct arrow_room splits;    /* lists: where each row's values begin, int64_t, and one more */
    struct arrow_room row_nulls; /* fixed lists: of each row */
    int64_t value_count, null_count;
    bool is_much; /* not taken: ask for fewer rows */

    /* The dictionary of the batch, if there is one, whose values are taken once. */
    struct arrow_room words, word_nulls;
    int64_t word_count, word_null_count;
};

/* See to it that the field's array has what its type needs for `row_count` rows from 0 on, and take
 * its dictionary. E_DATA with a sentence that does not name the column. */
tundish_status arrow_values_check(const struct arrow_field *field, const struct ArrowArray *array,
                                  int64_t row_count, struct arrow_values *values);

/* Take rows [begin, begin + count) of an array that was checked. Nulls become `fallback` (a value
 * of the dtype) or, if it is NULL, zeros and empty texts that are counted. Null lists are empty.
 * The answer for more than one row may be is_much. The values live as long as the array. */
tundish_status arrow_values_take(const struct arrow_field *field, const struct ArrowArray *array,
                                 int64_t begin, int64_t count, const void *fallback,
                                 struct arrow_values *values);

void arrow_values_close(struct arrow_values *values); /* accepts zeros */

/* At least count * size bytes; the content is lost. E_MEMORY. */
tundish_status arrow_room_need(struct arrow_room *room, uint64_t count, size_t bytes);

#endif
