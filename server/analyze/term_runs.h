/* term_runs.h - sorted terms in a file without a name, and reading several of them in one order. */
#ifndef ANALYZE_TERM_RUNS_H
#define ANALYZE_TERM_RUNS_H

#include "analyze/terms.h"

struct term_runs {
    int folder; /* where the file is made */
    int file;   /* -1: none yet */
    uint32_t count;
    int64_t *ends; /* of each run, in the file */
};

void term_sort(struct term *list, uint32_t count, term_order *order);

/* Sort the terms and write them behind what is there. */
tundish_status term_runs_write(struct term_runs *runs, struct term *list, uint32_t count,
                               term_order *order);
void term_runs_close(struct term_runs *runs); /* accepts what was never written to */

/* One run, or a sorted list in memory. */
struct term_reader {
    struct term term;        /* where it stands */
    const struct term *list; /* in memory, or NULL */
    uint32_t left;
    int file;
    int64_t at, end; /* of what is to be read from the file */
    uint8_t *buffer;
    size_t begin, filled, capacity;
};

/* Both stand on their first term, which there must be. */
tundish_status term_reader_open(struct term_reader *reader, const struct term_runs *runs,
                                uint32_t run);
void term_reader_open_list(struct term_reader *reader, const struct term *list, uint32_t count);
void term_reader_close(struct term_reader *reader);

/* Order readers so that readers[0] has the least term, and step past it: a reader that is used up
 * is closed and *count falls. */
void term_readers_order(struct term_reader *readers, uint32_t count, term_order *order);
tundish_status term_readers_step(struct term_reader *readers, uint32_t *count, term_order *order);

#endif
