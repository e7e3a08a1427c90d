/* term_runs.h - sorted terms in a file without a name, and reading several of them in one order. */
#ifndef LEARN_TERMS_TERM_RUNS_H
#define LEARN_TERMS_TERM_RUNS_H

#include "learn/terms/terms.h"

/* So many runs of one level become one run of the next, so that a merge never reads more than a few
 * dozen at once. */
enum { TERM_RUNS_A_LEVEL = 32 };

struct term_run {
    int64_t begin, end; /* in the file */
    uint32_t level;
};

struct term_runs {
    int folder; /* where the file is made */
    int file;   /* -1: none yet */
    uint32_t count;
    struct term_run *list; /* falling levels */
};

void term_sort(struct term *list, uint32_t count, const struct term_order *order);

/* Sort the terms and write them after the existing ones. */
tundish_status term_runs_write(struct term_runs *runs, struct term *list, uint32_t count,
                               const struct term_order *order);
void term_runs_close(struct term_runs *runs); /* accepts runs that were never written to */

/* One run, or a sorted list in memory. */
struct term_reader {
    struct term term;        /* where it stands */
    const struct term *list; /* in memory, or NULL */
    uint32_t left;
    int file;
    int64_t at, end; /* of the bytes to read from the file */
    uint8_t *buffer;
    size_t begin, filled, capacity;
};

/* Both stand on their first term, which there must be. */
tundish_status term_reader_open(struct term_reader *reader, const struct term_runs *runs,
                                uint32_t run);
void term_reader_open_list(struct term_reader *reader, const struct term *list, uint32_t count);
tundish_status term_reader_step(struct term_reader *reader); /* NO_VALUE: there is no other */
void term_reader_close(struct term_reader *reader);

/* Several, and their array. */
void term_readers_close(struct term_reader *readers, uint32_t count);

/* Order readers so that readers[0] has the least term, and step past it: a reader that is used up
 * is closed and *count falls. */
void term_readers_order(struct term_reader *readers, uint32_t count,
                        const struct term_order *order);
tundish_status term_readers_step(struct term_reader *readers, uint32_t *count,
                                 const struct term_order *order);

/* Merges (terms.h) of readers, which become the merge's also when it fails, and of the runs from
 * `first` on. `status` is how opening the readers went. */
tundish_status term_merge_open_readers(struct term_reader *readers, uint32_t count,
                                       const struct term_order *order, tundish_status status,
                                       struct term_merge **ret_merge);
tundish_status term_merge_open_runs(const struct term_runs *runs, uint32_t first,
                                    const struct term_order *order, struct term_merge **ret_merge);

#endif
