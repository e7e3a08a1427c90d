/* taken.c - see taken.h. */
#include "source/parquet/taken.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

static uint64_t
words_of(const struct parquet_taken *taken)
{
    return (taken->row_count + 63) / 64;
}

static bool
has_bit(const uint64_t *bits, uint64_t row)
{
    return (bits[row / 64] >> row % 64 & 1) != 0;
}

void
parquet_taken_open(struct parquet_taken *taken, uint64_t row_count)
{
    must(row_count <= UINT32_MAX);
    *taken = (struct parquet_taken){
        .row_count = row_count,
        .tuple_count = (uint32_t)row_count,
        .unused = (uint32_t)row_count,
    };
    taken->used = tnd_zalloc(words_of(taken), sizeof *taken->used);
}

void
parquet_taken_close(struct parquet_taken *taken)
{
    free(taken->used);
    free(taken->kept);
    free(taken->kept_before);
}

bool
parquet_taken_has_tuple(const struct parquet_taken *taken, uint64_t row)
{
    return taken->kept == NULL || has_bit(taken->kept, row);
}

void
parquet_taken_note(struct parquet_taken *taken, uint64_t row)
{
    if (taken->used == NULL)
        return;
    must_in_debug(row < taken->row_count && parquet_taken_has_tuple(taken, row));
    if (has_bit(taken->used, row)) {
        memset(taken->used, 0, words_of(taken) * sizeof *taken->used);
        taken->unused = taken->tuple_count;
    }
    must_in_debug(taken->unused > 0);
    taken->used[row / 64] |= UINT64_C(1) << row % 64;
    taken->unused--;
}

/* The rows of a word that have a tuple and were not taken yet. */
static uint64_t
unused_bits(const struct parquet_taken *taken, uint64_t word)
{
    uint64_t left = taken->row_count - word * 64;
    uint64_t bits = ~taken->used[word] & (taken->kept != NULL ? taken->kept[word] : UINT64_MAX);

    return left < 64 ? bits & ((UINT64_C(1) << left) - 1) : bits;
}

void
parquet_taken_shrink(struct parquet_taken *taken, struct parquet_tuples *tuples,
                     const struct parquet_member *members, uint32_t member_count)
{
    uint64_t words = words_of(taken);
    uint64_t *kept = tnd_zalloc(words, sizeof *kept);
    uint32_t *before = tnd_zalloc(words, sizeof *before);
    uint32_t *rows = tnd_alloc(taken->unused * sizeof *rows);
    struct parquet_stay stay = { .rows = rows };

    for (uint64_t word = 0; word < words; word++) {
        uint64_t bits = unused_bits(taken, word);

        before[word] = stay.count;
        kept[word] = bits;
        for (; bits != 0; bits &= bits - 1)
            rows[stay.count++] =
                (uint32_t)parquet_taken_place(taken, word * 64 + (uint64_t)__builtin_ctzll(bits));
    }
    must(stay.count == taken->unused);
    parquet_tuples_shrink(tuples, members, member_count, &stay);
    free(rows);
    free(taken->kept);
    free(taken->kept_before);
    taken->kept = kept;
    taken->kept_before = before;
    taken->tuple_count = stay.count;
}
