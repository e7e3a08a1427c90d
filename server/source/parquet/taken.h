/* taken.h - which rows of a row group were taken, which are to come, and which still have a tuple.
 * No lock, no thread.
 *
 * An order takes each row once a round. Rounds may overlap: a shuffle over a repeat takes rows of
 * the next one while some of this one are left. */
#ifndef SOURCE_PARQUET_TAKEN_H
#define SOURCE_PARQUET_TAKEN_H

#include "source/parquet/shrink.h"

/* Bits, one for each row. They outlive the tuples. */
struct parquet_taken {
    uint64_t row_count;
    uint64_t *used;  /* it was taken in this round */
    uint64_t *late;  /* not in the round before, either: it comes twice */
    uint64_t *dealt; /* a step that was dealt has it */
    uint64_t *again; /* another one has it, too */
    uint64_t *ended; /* a step took it that is not over: its end says nothing more */
    uint64_t unused, late_count, dealt_count, ended_count;
    uint64_t period;   /* the round is of: as row_groups counts epochs */
    bool lacks_others; /* rows to come that are not dealt lost their tuples */
};

/* All rows have a tuple, and none was taken. No more than UINT32_MAX rows. */
struct parquet_taken *parquet_taken_open(uint64_t row_count);
void parquet_taken_close(struct parquet_taken *taken); /* accepts NULL */

/* No row is known to come before the next round: nothing is to be remembered. */
bool parquet_taken_is_over(const struct parquet_taken *taken);

/* Tuples of a row group in memory. */
struct parquet_kept {
    uint64_t row_count;
    uint32_t tuple_count;
    uint32_t spare;        /* tuples of rows that are not to come in this round */
    uint64_t *rows;        /* of each row, a bit: it has a tuple; NULL: all have */
    uint32_t *rows_before; /* tuples of rows before those of each word of `rows` */
};

void parquet_kept_open(struct parquet_kept *kept, const struct parquet_taken *taken);
void parquet_kept_close(struct parquet_kept *kept); /* accepts one of zeros */

/* Where the row's tuple lies. One of zeros: all rows have theirs. */
static inline uint64_t
parquet_kept_place(const struct parquet_kept *kept, uint64_t row)
{
    if (kept->rows == NULL)
        return row;
    return kept->rows_before[row / 64] +
           (uint64_t)__builtin_popcountll(kept->rows[row / 64] & ((UINT64_C(1) << row % 64) - 1));
}

bool parquet_kept_has(const struct parquet_kept *kept, uint64_t row);

/* A row was taken, after an epoch has begun or not: true, a round begins. A step that was dealt has
 * it, or no more: true, that is new. `kept` are the row group's tuples, or NULL where it has none.
 */
bool parquet_taken_note(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row,
                        bool is_new_epoch);
bool parquet_taken_deal(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row);
bool parquet_taken_drop(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row);

/* A step that was dealt and has the row is over: true, no step has it any more. Unless it was taken
 * here, another server made it, or nobody. */
bool parquet_taken_end(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row);

/* How many tuples are of rows that no step has? */
uint32_t parquet_kept_count_others(const struct parquet_kept *kept,
                                   const struct parquet_taken *taken);

/* Which tuples are to stay: those of rows to come, or of these the dealt ones. */
struct parquet_kept parquet_kept_choose(const struct parquet_kept *kept,
                                        const struct parquet_taken *taken, bool only_dealt);

/* The row group is not decoded yet: keep dealt rows, and these. */
void parquet_kept_expect(struct parquet_kept *kept, const struct parquet_taken *taken,
                         const struct parquet_row *rows, uint32_t count);

/* Shrink a column that was just decoded. */
void parquet_kept_shrink_column(const struct parquet_kept *kept,
                                const struct parquet_member *member);

/* Shrink the tuples to those that were chosen, which are then what is kept. */
void parquet_kept_shrink(struct parquet_kept *kept, struct parquet_kept *chosen,
                         struct parquet_tuples *tuples, const struct parquet_member *members,
                         uint32_t member_count);

/* With what was taken meanwhile. */
void parquet_kept_count_spare(struct parquet_kept *kept, const struct parquet_taken *taken);

#endif
