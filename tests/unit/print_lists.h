/* print_lists.h - columns as text, to compare.
 *
 * Values stand inside brackets, one pair for each list: elements [1, 2] and [3] of a vector column
 * are "[1 2] [3]". Strings stand in quotes.
 */
#ifndef UNIT_PRINT_LISTS_H
#define UNIT_PRINT_LISTS_H

#include <stdio.h>

#include "column/column.h"

/* Elements [begin, end) of a column, with blanks between. */
void print_lists(FILE *out, const struct column *column, tundish_dtype dtype, int64_t begin,
                 int64_t end);

#endif
