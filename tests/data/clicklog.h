/* clicklog.h - rows of a click log in Criteo's shape, made up from a seed.
 *
 * Every value is a function of seed, row and column, so rows can be made in any order and a file
 * of more rows begins with the rows of a smaller one if the cardinalities are the same.
 */
#ifndef CLICKLOG_H
#define CLICKLOG_H

#include <stdbool.h>
#include <stdint.h>

enum { INTEGER_COUNT = 13, CATEGORY_COUNT = 26 };

/* A category that is missing, in place of its rank. */
#define CLICKLOG_MISSING UINT32_MAX

struct clicklog {
    uint64_t seed;
    uint32_t cardinality[CATEGORY_COUNT]; /* how many terms each category draws from */
};

struct clicklog_row {
    bool label;
    bool has_integer[INTEGER_COUNT];
    int64_t integer[INTEGER_COUNT]; /* counts, long-tailed; -1 now and then */
    uint32_t rank[CATEGORY_COUNT];  /* 0 is the most frequent term, or CLICKLOG_MISSING */
};

/* Criteo's cardinalities, none above `row_count` or a million. */
struct clicklog clicklog_like_criteo(uint64_t seed, uint64_t row_count);

/* Some clicks are likelier than others: the label is drawn from a logistic model of the row. */
struct clicklog_row clicklog_row_at(const struct clicklog *log, uint64_t index);

/* The term of a category's rank; distinct within the category. */
uint32_t clicklog_term(uint32_t category, uint32_t rank);

/* The same as 8 hex digits, without a NUL. */
void clicklog_put_term(char text[8], uint32_t category, uint32_t rank);

#endif
