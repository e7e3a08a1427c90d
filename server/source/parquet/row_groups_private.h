/* row_groups_private.h - what the files of row_groups.h share. With the lock held, everywhere. */
#ifndef SOURCE_PARQUET_ROW_GROUPS_PRIVATE_H
#define SOURCE_PARQUET_ROW_GROUPS_PRIVATE_H

#include <pthread.h>

#include "source/parquet/row_groups.h"

struct dealt_step;

struct row_groups {
    pthread_mutex_t lock; /* of all below, of the groups, and of what was taken of them */
    pthread_cond_t decoded;
    uint64_t limit, bytes;
    uint64_t ahead_bytes;               /* of row groups that nobody has held yet */
    uint64_t holds;                     /* that there were */
    uint32_t group_count, tuples_count; /* in memory */
    bool is_limited;                    /* by the memory that there is, too */
    struct row_group *newest, *oldest;

    uint64_t decoded_bytes; /* of the last row group that became tuples */
    uint64_t tuple_bytes;   /* of a row, the last time that many had tuples */
    uint64_t seen_bytes;    /* of all row groups of files that were seen, about */
    _Atomic bool is_short;  /* of room for them, in memory and in files */
    bool spills;            /* it is short in memory, and there may be room in files */
    uint64_t spill_limit, spilled_bytes;
    uint64_t epoch, period; /* of the last step that was dealt; a period is an epoch */
    struct dealt_step *first_step, **steps_end, *marked_step;
    uint64_t dealt_rows;        /* that are marked */
    struct row_group *decoding; /* where room is short: the only one, to become tuples */
};

uint64_t row_groups_rows(const struct row_group *group);

/* The taken rows of a row group, in memory or not. */
struct parquet_taken *row_groups_taken(struct row_groups *cache, struct source_file *file,
                                       uint32_t number);

/* Is there no room in memory for all row groups? They are decoded one at a time then. */
bool row_groups_lack_memory(const struct row_groups *cache);

/* Move the tuples of a row group to a file, if there is to be one. The lock is given up meanwhile;
 * it is changing. */
void row_groups_spill(struct row_groups *cache, struct row_group *group);

/* Its tuples as they are counted, or NULL. */
struct parquet_kept *row_groups_kept(struct row_group *group);

struct parquet_member *row_groups_members(struct row_group *group);
uint64_t row_groups_tuple_bytes(const struct row_group *group);

void row_groups_note_bytes(struct row_groups *cache, const struct row_group *group);

void row_groups_limit(struct row_groups *cache);
void row_groups_close_group(struct row_group *group);

/* It is found no more; row_groups_close_group follows. */
void row_groups_remove(struct row_groups *cache, struct row_group *group);
void row_groups_forget(struct row_groups *cache, struct row_group *group);

/* The lock may be given up meanwhile. */
void row_groups_make_room(struct row_groups *cache);

/* Hold it, also one that is not decoded yet. */
struct row_group *row_groups_find(struct row_groups *cache, struct source_file *file,
                                  uint32_t number);
void row_groups_let_go(struct row_group *group);

/* Decode a column that is missing. The lock is given up meanwhile. */
tundish_status row_groups_make_column(struct row_groups *cache, struct row_group *group,
                                      uint32_t index);

/* A row was taken. */
void row_groups_note(struct row_groups *cache, const struct row_group_row *row);

/* Know which rows the next steps have, as far as there is room for them. */
void row_groups_mark(struct row_groups *cache);
void row_groups_close_steps(struct row_groups *cache);

#endif
