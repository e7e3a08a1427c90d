/* run.h - a run: the elements of a batch, as one word.
 *
 * An element, as the order part sees it, is a fixed number of 64-bit words (plan_node.width), which
 * it moves and never looks into: two for a row of a source, one for each ordinal that a stage has
 * put beside it, and one - the address of a run - for a batch. So every stage moves whole elements
 * of a fixed size, wherever `batch` stands.
 *
 * Runs are counted. A word that holds a run owns one count (0 is not a run). Made by the order's
 * thread, given up by any.
 *
 * rebatch and deal_carry join rows of several batches, which may come from different parts of the
 * plan (concatenate) and have been padded differently. So they make a run of pieces: each
 * piece is evaluated, and the batch is their results, one after the other along dimension 0. A
 * piece is an element of their input whose runs are cut to the rows wanted; or, where content is
 * cut (plan_node.cuts_content), the whole element and two more words: the first row wanted, and how
 * many. The latter are never sliced.
 */
#ifndef ORDER_RUN_H
#define ORDER_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run {
    _Atomic uint32_t count_of_owners;
    uint32_t width;     /* words of an element in here */
    uint64_t run_words; /* bit i: word i of each element owns a run */
    uint64_t element_count;
    bool in_pieces;      /* the elements are pieces */
    bool is_series;      /* windows are views of it; it goes on beyond them */
    bool is_large;       /* it is finished, and worth keeping for the next one (run_drop_spares) */
    bool lies_in_parent; /* a view that lies in the memory of its series */
    union {
        uint64_t row_count; /* rows of the batch: element_count, unless in pieces */
        uint64_t room;      /* of a series: of elements */
    };
    union {
        uint64_t repeated;   /* the last ones of those rows, which run_fill has added */
        uint64_t views_left; /* of a series: how many more views can lie in it */
    };
    struct run *parent; /* of a slice: the whole batch. A view's elements lie in there; the pieces
                           of a run of pieces are its own */
    const uint64_t *words; /* element_count * width */
    uint64_t storage[];    /* unless a view */
};

/* An empty run with room for elements, which its maker puts into `storage`, counting them in
 * `element_count`. Nobody else may have it until run_finish. */
struct run *run_begin(uint32_t width, uint64_t run_words, uint64_t room);
struct run *run_grow(struct run *run, uint64_t room);
struct run *run_finish(struct run *run, uint64_t room);

/* A run that takes over the elements at `words`. */
struct run *run_new(const uint64_t *words, uint64_t element_count, uint32_t width,
                    uint64_t run_words);

/* Elements [begin, begin + count) of `parent`, without copying. Retains the parent (a view of a
 * view hangs on the first). count 0 is an empty slice that still knows its batch. */
struct run *run_view(struct run *parent, uint64_t begin, uint64_t count);

/* A series: a run that its maker does not finish, but goes on filling while others have views of
 * it. `views` of these lie behind its elements, so that they take no memory of their own. */
struct run *run_begin_series(uint32_t width, uint64_t run_words, uint64_t room, uint64_t views);

/* The same for a series that nobody has a view of; it becomes no smaller. */
struct run *run_grow_series(struct run *series, uint64_t room, uint64_t views);

/* Elements [begin, begin + count) of a series. Who has them never looks beyond them. */
struct run *run_of_series(struct run *series, uint64_t begin, uint64_t count);

/* True: nobody has it or a view of it but the caller. */
bool run_is_unshared(struct run *run);

/* A run of pieces, which it takes over, of `rows` rows in all. */
struct run *run_join(const uint64_t *pieces, uint64_t piece_count, uint32_t width,
                     uint64_t run_words, uint64_t row_count);

/* Rows [begin, begin + count) of a batch: a view, or of a run of pieces another one. */
struct run *run_slice(struct run *run, uint64_t begin, uint64_t count);

/* The same for a while, of a run whose elements are rows: what it returns owns nothing. */
struct run run_part(const struct run *run, uint64_t begin, uint64_t count);

/* How many of rows [begin, begin + count) run_fill has added. */
uint64_t run_repeated(const struct run *run, uint64_t begin, uint64_t count);

/* The rows of `run` and, after them, `rows` rows from the beginning of `from`, over and over if it
 * has fewer. Both hold elements of one node; `from` has a row. */
struct run *run_fill(const struct run *run, struct run *from, uint64_t rows);

/* How many rows an element has that holds runs. False if they disagree, or if it holds none. */
bool run_words_rows(const uint64_t *words, uint32_t width, uint64_t run_words, uint64_t *ret_rows);

/* Rows [begin, begin + count) of such an element: its runs sliced, other words copied. */
void run_words_slice(const uint64_t *words, uint32_t width, uint64_t run_words, uint64_t begin,
                     uint64_t count, uint64_t *ret_words);

/* The memory of a few large runs that are gone is kept for others of the same size: the kernel
 * takes longer to give their pages than the order takes to fill them. Give it back. */
void run_drop_spares(void);

void run_release(struct run *run); /* accepts NULL */

/* For tests: from now on `count` goes up with every run made and down with every run freed, in all
 * threads; NULL ends this. It stays the caller's and must outlive its use. */
void run_count_living(_Atomic int64_t *count);

static inline struct run *
run_of_word(uint64_t word)
{
    return (struct run *)(uintptr_t)word;
}

static inline uint64_t
run_word(struct run *run)
{
    return (uint64_t)(uintptr_t)run;
}

/* Give up, or take once more, what `element_count` elements own. */
void run_words_release(const uint64_t *words, uint64_t element_count, uint32_t width,
                       uint64_t run_words);
void run_words_retain(const uint64_t *words, uint64_t element_count, uint32_t width,
                      uint64_t run_words);

#endif
