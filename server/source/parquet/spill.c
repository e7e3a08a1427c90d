/* spill.c - see spill.h. */
#include "source/parquet/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/read_write.h"
#include "source/parquet/bits.h"
#include "source/parquet/tuples.h"

struct parquet_spill {
    _Atomic uint32_t holds;
    uint8_t *bytes;
    uint64_t count;
};

/* Arrays lie side by side in the order in which they are placed: first to gather them, then to move
 * what points to them. */
struct placing {
    struct parquet_spill *spill; /* NULL: gather */
    struct iovec *parts;
    size_t part_count, part_room;
    uint64_t at;
};

enum { ALIGNMENT = 64, ZEROS = 1 << 16 };

static uint8_t zeros[ZEROS]; /* stands for memos, and between arrays */

static void
add_part(struct placing *placing, void *from, uint64_t bytes)
{
    if (placing->part_count == placing->part_room) {
        placing->part_room = 2 * placing->part_room + 64;
        placing->parts = tnd_realloc(placing->parts, placing->part_room, sizeof *placing->parts);
    }
    placing->parts[placing->part_count++] = (struct iovec){ from, bytes };
}

/* Where an array, or zeros, goes in the file, once it is there. */
static void *
place(struct placing *placing, void *from, uint64_t bytes)
{
    uint64_t at = placing->at,
             whole = (bytes + PARQUET_SLACK + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    placing->at += whole;
    if (placing->spill != NULL)
        return placing->spill->bytes + at;
    if (from != NULL)
        add_part(placing, from, bytes);
    for (uint64_t done = from != NULL ? bytes : 0; done < whole; done += ZEROS)
        add_part(placing, zeros, whole - done < ZEROS ? whole - done : ZEROS);
    return NULL;
}

/* Move an array, unless it is not there. */
static void *
move(struct placing *placing, void *from, uint64_t bytes)
{
    void *to = from == NULL ? NULL : place(placing, from, bytes);

    if (to == NULL)
        return from;
    free(from);
    return to;
}

/* Others may have the words, so these are copied. One stage's memo has room beside them. */
static void
place_words(struct placing *placing, struct parquet_words **words)
{
    struct parquet_words *from = *words, *to;
    void *list = place(placing, from->list, from->words.count * sizeof *from->list);
    uint8_t *texts = place(placing, from->texts, from->text_bytes);
    void *memo = place(placing, NULL, words_memo_bytes(from->words.count));

    if (placing->spill == NULL)
        return;
    to = tnd_alloc(sizeof *to);
    *to = (struct parquet_words){ .words = { .count = from->words.count,
                                             .text = from->words.text,
                                             .expect = from->words.expect },
                                  .holds = 1,
                                  .list = list,
                                  .texts = texts,
                                  .text_bytes = from->text_bytes,
                                  .bytes = from->bytes,
                                  .spill = placing->spill };
    words_give_room(&to->words, memo);
    parquet_spill_hold(placing->spill);
    parquet_words_release(from);
    *words = to;
}

static void
place_column(struct placing *placing, const struct parquet_member *member)
{
    struct parquet_column *column = member->column;
    uint64_t values = column->value_count;

    column->texts = move(placing, column->texts, column->text_bytes);
    column->numbers = move(placing, column->numbers, values * sizeof *column->numbers);
    column->values = move(placing, column->values, values * parquet_value_bytes(member->dtype));
    column->nulls = move(placing, column->nulls, values);
    column->splits =
        move(placing, column->splits, (column->row_count + 1) * sizeof *column->splits);
    if (column->words != NULL)
        place_words(placing, &column->words);
    column->is_spilled = placing->spill != NULL;
}

static void
place_all(struct placing *placing, struct parquet_tuples *tuples,
          const struct parquet_member *members, uint32_t count)
{
    tuples->tuples = move(placing, tuples->tuples, tuples->bytes);
    tuples->is_spilled = placing->spill != NULL;
    for (uint32_t i = 0; i < count; i++)
        place_column(placing, &members[i]);
}

/* All blocks of the file are there before it is written: so no SIGBUS comes later where the disk is
 * full. It is written as a whole, not by faults of its pages, so that these may be huge. */
static void *
map_file(int folder, struct placing *gathered)
{
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), error = EINTR;
    void *mapped = MAP_FAILED;

    while (file >= 0 && error == EINTR)
        error = posix_fallocate(file, 0, (off_t)gathered->at);
    if (file >= 0 && error == 0)
        error = tnd_write_parts_at(file, gathered->parts, gathered->part_count, 0);
    if (file >= 0 && error == 0)
        mapped =
            mmap(NULL, gathered->at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (file >= 0)
        close(file);
    free(gathered->parts);
    return mapped == MAP_FAILED ? NULL : mapped;
}

struct parquet_spill *
parquet_spill_open(int folder, struct parquet_tuples *tuples, const struct parquet_member *members,
                   uint32_t member_count, uint64_t *ret_bytes)
{
    struct placing placing = { 0 };
    struct parquet_spill *spill;
    void *bytes;

    place_all(&placing, tuples, members, member_count);
    bytes = map_file(folder, &placing);
    if (bytes == NULL)
        return NULL;
    spill = tnd_alloc(sizeof *spill);
    *spill = (struct parquet_spill){ .holds = 1, .bytes = bytes, .count = placing.at };
    placing = (struct placing){ .spill = spill };
    place_all(&placing, tuples, members, member_count);
    *ret_bytes = spill->count;
    return spill;
}

void
parquet_spill_hold(struct parquet_spill *spill)
{
    atomic_fetch_add_explicit(&spill->holds, 1, memory_order_relaxed);
}

/* Pairs with the others' releases, as that of words. */
void
parquet_spill_release(struct parquet_spill *spill)
{
    if (spill == NULL || atomic_fetch_sub_explicit(&spill->holds, 1, memory_order_acq_rel) > 1)
        return;
    munmap(spill->bytes, spill->count);
    free(spill);
}
