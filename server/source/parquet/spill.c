/* spill.c - see spill.h. */
#include "source/parquet/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
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

/* Arrays lie side by side in the order in which they are placed: first to count their bytes, then
 * to write them, then to move what points to them. */
struct placing {
    enum { PLACE_COUNT, PLACE_WRITE, PLACE_MOVE } step;
    int file;
    int error;
    struct parquet_spill *spill;
    uint64_t at;
};

enum { ALIGNMENT = 64 };

/* A file is written, which costs less than faults of its pages. Where it goes in the file, once
 * that is mapped. */
static void *
place(struct placing *placing, const void *from, uint64_t bytes)
{
    uint64_t at = placing->at;

    placing->at += (bytes + PARQUET_SLACK + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (placing->step == PLACE_WRITE && placing->error == 0 && from != NULL)
        placing->error = tnd_write_at(placing->file, from, bytes, at);
    return placing->step == PLACE_MOVE ? placing->spill->bytes + at : NULL;
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

    if (placing->step != PLACE_MOVE)
        return;
    to = tnd_alloc(sizeof *to);
    *to = (struct parquet_words){ .words = { .count = from->words.count, .text = from->words.text },
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
    column->is_spilled = placing->step == PLACE_MOVE;
}

static void
place_all(struct placing *placing, struct parquet_tuples *tuples,
          const struct parquet_member *members, uint32_t count)
{
    placing->at = 0;
    tuples->tuples = move(placing, tuples->tuples, tuples->bytes);
    tuples->is_spilled = placing->step == PLACE_MOVE;
    for (uint32_t i = 0; i < count; i++)
        place_column(placing, &members[i]);
}

/* All blocks of the file are there before it is mapped: so no SIGBUS comes later where the disk is
 * full. */
static int
open_file(int folder, uint64_t bytes)
{
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), error = EINTR;

    while (file >= 0 && error == EINTR)
        error = posix_fallocate(file, 0, (off_t)bytes);
    if (file < 0 || error == 0)
        return file;
    close(file);
    return -1;
}

struct parquet_spill *
parquet_spill_open(int folder, struct parquet_tuples *tuples, const struct parquet_member *members,
                   uint32_t member_count, uint64_t *ret_bytes)
{
    struct placing placing = { .step = PLACE_COUNT };
    void *bytes = MAP_FAILED;

    place_all(&placing, tuples, members, member_count);
    placing.file = open_file(folder, placing.at);
    if (placing.file < 0)
        return NULL;
    placing.step = PLACE_WRITE;
    place_all(&placing, tuples, members, member_count);
    if (placing.error == 0)
        bytes = mmap(NULL, placing.at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                     placing.file, 0);
    close(placing.file);
    if (bytes == MAP_FAILED)
        return NULL;
    placing.spill = tnd_alloc(sizeof *placing.spill);
    *placing.spill = (struct parquet_spill){ .holds = 1, .bytes = bytes, .count = placing.at };
    placing.step = PLACE_MOVE;
    place_all(&placing, tuples, members, member_count);
    *ret_bytes = placing.spill->count;
    return placing.spill;
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
