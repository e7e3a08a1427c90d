/* shrink.h - a row group's columns or tuples, of which only some rows stay.
 *
 * Lists, nulls, texts and dictionaries beside them lose what belongs to the other rows. */
#ifndef SOURCE_PARQUET_SHRINK_H
#define SOURCE_PARQUET_SHRINK_H

#include "source/parquet/tuples.h"

/* The rows that stay, ascending, as they lie in the tuples now. */
struct parquet_stay {
    const uint32_t *rows;
    uint32_t count;
};

/* The same of a column whose values are not in tuples. */
void parquet_column_shrink(const struct parquet_member *member, const struct parquet_stay *stay);

/* Nobody reads them meanwhile; dictionaries that are held stay for their holders. */
void parquet_tuples_shrink(struct parquet_tuples *tuples, const struct parquet_member *members,
                           uint32_t member_count, const struct parquet_stay *stay);

#endif
