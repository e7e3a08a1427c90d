/* taken.c - see taken.h. */
#include "source/parquet/taken.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

static uint64_t
words_of(uint64_t row_count)
{
    return (row_count + 63) / 64;
}

static bool
has_bit(const uint64_t *bits, uint64_t row)
{
    return (bits[row / 64] >> row % 64 & 1) != 0;
}

static void
flip_bit(uint64_t *bits, uint64_t row)
{
    bits[row / 64] ^= UINT64_C(1) << row % 64;
}

/* The bits of a word that stand for rows. */
static uint64_t
rows_in_word(uint64_t row_count, uint64_t word)
{
    uint64_t left = row_count - word * 64;

    return left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
}

struct parquet_taken *
parquet_taken_open(uint64_t row_count)
{
    struct parquet_taken *taken = tnd_alloc(sizeof *taken);
    uint64_t *bits = tnd_zalloc(5 * words_of(row_count), sizeof *bits);

    must(row_count <= UINT32_MAX);
    *taken = (struct parquet_taken){ .row_count = row_count,
                                     .used = bits,
                                     .late = bits + words_of(row_count),
                                     .dealt = bits + 2 * words_of(row_count),
                                     .again = bits + 3 * words_of(row_count),
                                     .ended = bits + 4 * words_of(row_count),
                                     .unused = row_count };
    return taken;
}

void
parquet_taken_close(struct parquet_taken *taken)
{
    if (taken == NULL)
        return;
    free(taken->used);
    free(taken);
}

bool
parquet_taken_is_over(const struct parquet_taken *taken)
{
    return taken->unused == 0 && taken->dealt_count == 0 && taken->ended_count == 0;
}

static bool
is_to_come(const struct parquet_taken *taken, uint64_t row)
{
    return !has_bit(taken->used, row) || has_bit(taken->dealt, row);
}

/* A row that was taken and is taken again is one of the next round. Those that were not taken are
 * left over from this one, and come in both; in a new epoch only if a step still has them. */
static void
begin_round(struct parquet_taken *taken, bool is_new_epoch)
{
    taken->late_count = 0;
    for (uint64_t word = 0; word < words_of(taken->row_count); word++) {
        taken->late[word] = ~taken->used[word] & rows_in_word(taken->row_count, word) &
                            (is_new_epoch ? taken->dealt[word] : UINT64_MAX);
        taken->late_count += (uint64_t)__builtin_popcountll(taken->late[word]);
    }
    memset(taken->used, 0, words_of(taken->row_count) * sizeof *taken->used);
    taken->unused = taken->row_count;
    taken->lacks_others &= taken->late_count > 0;
}

bool
parquet_taken_drop(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row)
{
    if (!has_bit(taken->dealt, row))
        return false;
    if (has_bit(taken->again, row)) {
        flip_bit(taken->again, row);
        return false;
    }
    flip_bit(taken->dealt, row);
    taken->dealt_count--;
    if (kept != NULL && !is_to_come(taken, row) && parquet_kept_has(kept, row))
        kept->spare++;
    return true;
}

bool
parquet_taken_end(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row)
{
    if (!has_bit(taken->ended, row))
        return parquet_taken_drop(taken, kept, row);
    flip_bit(taken->ended, row);
    taken->ended_count--;
    return false;
}

bool
parquet_taken_note(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row,
                   bool is_new_epoch)
{
    bool begins = has_bit(taken->used, row);

    must_in_debug(row < taken->row_count);
    if (has_bit(taken->dealt, row) && !has_bit(taken->ended, row)) {
        flip_bit(taken->ended, row);
        taken->ended_count++;
    }
    (void)parquet_taken_drop(taken, kept, row);
    if (has_bit(taken->late, row)) {
        flip_bit(taken->late, row);
        taken->late_count--;
        return false;
    }
    if (begins)
        begin_round(taken, is_new_epoch);
    flip_bit(taken->used, row);
    taken->unused--;
    if (begins && kept != NULL)
        parquet_kept_count_spare(kept, taken);
    else if (kept != NULL)
        kept->spare += !has_bit(taken->dealt, row) && parquet_kept_has(kept, row);
    return begins;
}

bool
parquet_taken_deal(struct parquet_taken *taken, struct parquet_kept *kept, uint64_t row)
{
    must_in_debug(row < taken->row_count);
    if (has_bit(taken->dealt, row)) {
        taken->again[row / 64] |= UINT64_C(1) << row % 64;
        return false;
    }
    if (kept != NULL && !is_to_come(taken, row) && parquet_kept_has(kept, row))
        kept->spare--;
    flip_bit(taken->dealt, row);
    taken->dealt_count++;
    return true;
}

static uint64_t
bits_of(const struct parquet_kept *kept, uint64_t word)
{
    return kept->rows != NULL ? kept->rows[word] : rows_in_word(kept->row_count, word);
}

void
parquet_kept_open(struct parquet_kept *kept, const struct parquet_taken *taken)
{
    if (kept->rows == NULL)
        *kept = (struct parquet_kept){ .row_count = taken->row_count,
                                       .tuple_count = (uint32_t)taken->row_count };
    parquet_kept_count_spare(kept, taken);
}

void
parquet_kept_close(struct parquet_kept *kept)
{
    free(kept->rows);
    free(kept->rows_before);
    *kept = (struct parquet_kept){ 0 };
}

bool
parquet_kept_has(const struct parquet_kept *kept, uint64_t row)
{
    return kept->rows == NULL || has_bit(kept->rows, row);
}

void
parquet_kept_count_spare(struct parquet_kept *kept, const struct parquet_taken *taken)
{
    kept->spare = 0;
    for (uint64_t word = 0; word < words_of(kept->row_count); word++)
        kept->spare += (uint32_t)__builtin_popcountll(bits_of(kept, word) & taken->used[word] &
                                                      ~taken->dealt[word]);
}

uint32_t
parquet_kept_count_others(const struct parquet_kept *kept, const struct parquet_taken *taken)
{
    uint32_t count = 0;

    for (uint64_t word = 0; word < words_of(kept->row_count); word++)
        count += (uint32_t)__builtin_popcountll(bits_of(kept, word) & ~taken->dealt[word]);
    return count;
}

static void
count_before(struct parquet_kept *kept)
{
    uint64_t words = words_of(kept->row_count);

    kept->tuple_count = 0;
    kept->rows_before = tnd_alloc(words * sizeof *kept->rows_before);
    for (uint64_t word = 0; word < words; word++) {
        kept->rows_before[word] = kept->tuple_count;
        kept->tuple_count += (uint32_t)__builtin_popcountll(kept->rows[word]);
    }
}

struct parquet_kept
parquet_kept_choose(const struct parquet_kept *kept, const struct parquet_taken *taken,
                    bool only_dealt)
{
    uint64_t words = words_of(kept->row_count);
    struct parquet_kept chosen = { .row_count = kept->row_count,
                                   .rows = tnd_alloc(words * sizeof *chosen.rows) };

    for (uint64_t word = 0; word < words; word++)
        chosen.rows[word] =
            bits_of(kept, word) & (taken->dealt[word] | (only_dealt ? 0 : ~taken->used[word]));
    count_before(&chosen);
    return chosen;
}

void
parquet_kept_expect(struct parquet_kept *kept, const struct parquet_taken *taken,
                    const struct parquet_row *rows, uint32_t count)
{
    uint64_t bytes = words_of(taken->row_count) * sizeof *kept->rows;

    *kept = (struct parquet_kept){ .row_count = taken->row_count, .rows = tnd_alloc(bytes) };
    memcpy(kept->rows, taken->dealt, bytes);
    for (uint32_t i = 0; i < count; i++)
        kept->rows[rows[i].row / 64] |= UINT64_C(1) << rows[i].row % 64;
    count_before(kept);
}

/* Where the rows of `chosen` lie now. */
static struct parquet_stay
stay_of(const struct parquet_kept *kept, const struct parquet_kept *chosen, uint32_t *rows)
{
    struct parquet_stay stay = { .rows = rows };

    for (uint64_t word = 0; word < words_of(chosen->row_count); word++)
        for (uint64_t bits = chosen->rows[word]; bits != 0; bits &= bits - 1)
            rows[stay.count++] =
                (uint32_t)parquet_kept_place(kept, word * 64 + (uint64_t)__builtin_ctzll(bits));
    must(stay.count == chosen->tuple_count);
    return stay;
}

void
parquet_kept_shrink_column(const struct parquet_kept *kept, const struct parquet_member *member)
{
    uint32_t *rows = tnd_alloc(kept->tuple_count * sizeof *rows);
    const struct parquet_stay stay = stay_of(&(struct parquet_kept){ 0 }, kept, rows);

    parquet_column_shrink(member, &stay);
    free(rows);
}

void
parquet_kept_shrink(struct parquet_kept *kept, struct parquet_kept *chosen,
                    struct parquet_tuples *tuples, const struct parquet_member *members,
                    uint32_t member_count)
{
    uint32_t *rows = tnd_alloc(chosen->tuple_count * sizeof *rows);
    const struct parquet_stay stay = stay_of(kept, chosen, rows);

    parquet_tuples_shrink(tuples, members, member_count, &stay);
    free(rows);
    parquet_kept_close(kept);
    *kept = *chosen;
    *chosen = (struct parquet_kept){ 0 };
}
