/* row_groups.h - decoded row groups, for the rows beside them: kept up to a bound, the last used
 * longest.
 *
 * One of which rows are wanted here and there becomes tuples, which are smaller, too.
 *
 * Threads that want one row group share the work, a column each. A row group that is held stays, so
 * the bound may be passed by what the threads hold: one each. */
#ifndef SOURCE_PARQUET_ROW_GROUPS_H
#define SOURCE_PARQUET_ROW_GROUPS_H

#include "source/parquet/tuples.h"

struct peer_rows;
struct row_groups;
struct source_file;

/* The bytes that it may keep, but no more than a quarter of the memory that there is when it is
 * first used; 0: that quarter. */
struct row_groups *row_groups_open(uint64_t bytes);
void row_groups_close(struct row_groups *cache); /* accepts NULL; nothing is held */

/* A row group that is held. */
struct row_group {
    struct source_file *file;
    uint32_t number;
    uint32_t holds;
    struct row_group *newer, *older;
    uint64_t bytes;
    uint32_t left;                 /* columns that are not there yet */
    uint32_t reader_count;         /* holds whose holder was given it */
    bool is_changing;              /* into tuples */
    struct parquet_tuples *tuples; /* NULL: it is columns */
    uint32_t column_count;
    struct row_group_column {
        struct parquet_column column;
        enum { COLUMN_MISSING, COLUMN_BUSY, COLUMN_READY, COLUMN_BAD } state;
        tundish_status status; /* of a bad one, and its sentence */
        char *sentence;
        struct peer_rows *asked; /* of the node that has the file; NULL: not ahead */
    } columns[];
};

struct row_group_wanted {
    struct source_file *file;
    uint32_t number;
    bool is_scattered; /* rows here and there: better as tuples */
};

/* Decode the wanted columns of a row group, or find them decoded. Any thread; may wait for
 * another that decodes. E_CORRUPT, E_DATA, E_MEMORY with a sentence that names file, row group and
 * column: its rows are bad. Any other failure, and a file that has changed, is one of reading:
 * *ret_is_bad is false. */
tundish_status row_groups_hold(struct row_groups *cache, const struct row_group_wanted *wanted,
                               const struct row_group **ret_group, bool *ret_is_bad);
void row_groups_release(struct row_groups *cache, const struct row_group *group);

#endif
