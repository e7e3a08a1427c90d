/* row_groups.h - decoded row groups, for the rows beside them: kept up to a bound, the last used
 * longest.
 *
 * One of which rows are wanted here and there becomes tuples, which are smaller, too. The order
 * takes a row once an epoch, so a row that was taken is the one that is wanted again last: where
 * room is short, rows that were taken go first. If one is wanted nevertheless, its row group is
 * decoded again. Before it comes to that, tuples go to files and stay, as long as these have room.
 *
 * Threads that want one row group share the work, a column each. A row group that is held stays, so
 * the bound may be passed by what the threads hold: one each. */
#ifndef SOURCE_PARQUET_ROW_GROUPS_H
#define SOURCE_PARQUET_ROW_GROUPS_H

#include "source/files/read_ahead.h"
#include "source/parquet/taken.h"
#include "source/parquet/tuples.h"

struct peer_rows;
struct plan_words;
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
    uint64_t held_at; /* when it was held last, as row_groups counts */
    struct read_ahead_job job;
    struct row_groups *cache; /* while the job is there */
    uint64_t ahead_bytes;     /* about, of one that is decoded ahead and was not held yet */
    struct row_group *newer, *older;
    uint64_t bytes;
    uint32_t left;                 /* columns that are not there yet */
    uint32_t reader_count;         /* holds whose holder was given it */
    bool is_changing;              /* into tuples, or into fewer */
    bool is_replaced;              /* it is decoded again, and goes with its last hold */
    struct parquet_tuples *tuples; /* NULL: it is columns */
    struct parquet_kept kept;      /* zeros: it is columns, or spilled */
    struct parquet_spill *spill;   /* that its tuples lie in, which take no memory; or NULL */
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
    const struct parquet_row *rows;
    uint32_t count;
    const struct plan_words *words; /* of each column: what is made of its words; or NULL */
};

/* Decode the wanted columns of a row group, or find them decoded. Any thread; may wait for
 * another that decodes. E_CORRUPT, E_DATA, E_MEMORY with a sentence that names file, row group and
 * column: its rows are bad. Any other failure, and a file that has changed, is one of reading:
 * *ret_is_bad is false. */
tundish_status row_groups_hold(struct row_groups *cache, const struct row_group_wanted *wanted,
                               const struct row_group **ret_group, bool *ret_is_bad);
void row_groups_release(struct row_groups *cache, const struct row_group *group);

/* Rows of it are wanted by a step that was dealt: a thread that reads ahead decodes it, where that
 * takes no room from others that are in use, and no more than half of the room. False: it does
 * not. */
bool row_groups_expect(struct row_groups *cache, struct source_file *file, uint32_t number);

/* A row of a step that was dealt. */
struct row_group_row {
    struct source_file *file;
    uint32_t number; /* of the row group */
    uint32_t row;    /* in it */
};

struct row_group_step {
    uint64_t epoch, step;
    struct row_group_row *rows;
    size_t count;
};

/* Rows of a file are wanted. Is there no room for all row groups of such files? Then the cache is
 * told which rows each step has that is dealt and takes them here and there, and when the step is
 * over: it keeps these longest. The array becomes the cache's. */
void row_groups_see(struct row_groups *cache, struct source_file *file);
bool row_groups_is_short(const struct row_groups *cache);
void row_groups_deal(struct row_groups *cache, const struct row_group_step *dealt);
bool row_groups_wants_steps(struct row_groups *cache); /* there is room for rows of more */
void row_groups_end_step(struct row_groups *cache, uint64_t epoch, uint64_t step);

/* Where a row that is wanted lies in the columns and tuples of a row group that is held. */
static inline uint64_t
row_group_place(const struct row_group *group, uint64_t row)
{
    return parquet_kept_place(&group->kept, row);
}

#endif
