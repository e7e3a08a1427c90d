/* terms.h - the different terms of a column and their counts, in bounded memory.
 *
 * A table counts in memory. When it has grown too large it is written as a run: sorted, after the
 * earlier runs, into a file without a name. Then it starts empty. In the end all runs are merged,
 * in whatever order is asked for.
 */
#ifndef LEARN_TERMS_TERMS_H
#define LEARN_TERMS_TERMS_H

#include <stdatomic.h>

#include "core/bytes.h"
#include "core/status.h"

struct term {
    struct byte_view text;
    int64_t count;
    int64_t documents; /* that have it */
    double weight;
    uint64_t last_document; /* while counting: the serial number of the last one seen */
};

struct terms;

/* Bytes that several tables hold together. */
struct terms_memory {
    _Atomic int64_t used_bytes;
    _Atomic uint32_t table_count;
    int64_t limit_bytes;
};

struct terms *terms_open(struct terms_memory *memory, int folder);
void terms_close(struct terms *terms); /* accepts NULL */

/* The term, made if it is not there: all counts 0. Valid until the next call. */
struct term *terms_at(struct terms *terms, struct byte_view text);

/* Each text is there once more: the fastest way to count. It shows in the terms' counts only when
 * they are gathered, merged or written. */
void terms_tally(struct terms *terms, const struct byte_view *texts, size_t count);

/* The number of the term in the table, in the order in which they came. Only while nothing has
 * been written. */
uint32_t terms_number(const struct terms *terms, const struct term *term);
uint32_t terms_count(const struct terms *terms);
const struct term *terms_list(const struct terms *terms);

/* Write the table out if the tables together are above their limit and it holds its share. */
tundish_status terms_relieve(struct terms *terms);

/* Put all that the tables hold into the first one, whose list has every term once, in no order
 * that means anything. False: some of it was written, only a merge finds it all. */
bool terms_gather(struct terms **tables, uint32_t table_count);

/* The words of the key, the first before the second, order terms as `compare` does where they
 * differ; where they are equal, `compare` decides. Negative: a comes first. */
struct term_order {
    int (*compare)(const struct term *a, const struct term *b);
    void (*key)(const struct term *term, uint64_t ret_key[2]);
};

extern const struct term_order term_order_text; /* bytes, rising */

int term_compare_text(const struct term *a, const struct term *b);

/* The eight bytes of a text from `at` on, as a number that orders as they do: bytes that it does
 * not have are 0. */
uint64_t term_text_word(struct byte_view text, uint64_t at);

struct term_merge;

/* All terms of some tables, by text; equal ones are added up. The tables stay the caller's, and
 * must not change before the merge is closed. */
tundish_status term_merge_open(struct terms **tables, uint32_t table_count,
                               struct term_merge **ret_merge);

/* The next term, valid until the next call; NO_VALUE at the end. */
tundish_status term_merge_next(struct term_merge *merge, struct term *ret_term);
void term_merge_close(struct term_merge *merge);

/* Terms put in one by one and taken out in `order`; no more than `most` of them (-1: all). */
struct term_ranking;

struct term_ranking *term_ranking_open(const struct term_order *order, int64_t most,
                                       int64_t limit_bytes, int folder);
tundish_status term_ranking_put(struct term_ranking *ranking, const struct term *term);

/* After the last one. NO_VALUE at the end. */
tundish_status term_ranking_take(struct term_ranking *ranking, struct term *ret_term);
void term_ranking_close(struct term_ranking *ranking);

#endif
