/* clicks.h - batches of the click log: label, 13 logarithms, 26 ids. */
#ifndef CLICKS_H
#define CLICKS_H

#include <stdint.h>

#include "limit.h"
#include "limit_lookup.h"

enum {
    CLICKS_INTEGERS = 13,
    CLICKS_TERMS = 26,
    CLICKS_COLUMNS = 1 + CLICKS_INTEGERS + CLICKS_TERMS,
    CLICKS_BLOCK = 64, /* rows between asking for an entry and looking at it */
    CLICKS_BATCH_MAX = 8192
};

/* A batch as it lies in a slot. */
struct clicks_batch {
    float label[CLICKS_BATCH_MAX];
    float dense[CLICKS_BATCH_MAX][CLICKS_INTEGERS];
    int64_t ids[CLICKS_BATCH_MAX][CLICKS_TERMS];
};

/* A share's rows on their way to a batch: the keys of a block wait for their entries. */
struct clicks {
    struct share *share;
    uint32_t batch_rows; /* of a full batch */
    uint32_t row;        /* in the batch, of the block's first row */
    uint32_t block_rows;
    uint64_t keys[CLICKS_BLOCK][CLICKS_TERMS];
};

/* Load DIR/vocab/C1.txt .. C26.txt and the logarithms; once, before any thread. */
void clicks_load(const char *folder);

extern struct lookup clicks_lookup[CLICKS_TERMS];
extern float clicks_log1p[4096];

float clicks_log1p_large(int64_t value); /* outside the table */

static inline float
clicks_log(int64_t value)
{
    return (uint64_t)value < 4096 ? clicks_log1p[value] : clicks_log1p_large(value);
}

static inline struct clicks_batch *
clicks_batch(struct clicks *clicks)
{
    return (struct clicks_batch *)(void *)share_slot(clicks->share);
}

/* The row being made, in its batch. */
static inline uint32_t
clicks_row(const struct clicks *clicks)
{
    return clicks->row + clicks->block_rows;
}

static inline void
clicks_put_key(struct clicks *clicks, uint32_t term, uint64_t key)
{
    clicks->keys[clicks->block_rows][term] = key;
    __builtin_prefetch(lookup_home(&clicks_lookup[term], key));
}

/* The row is made. Looks the block's keys up when it is full, and ends a full batch. */
void clicks_end_row(struct clicks *clicks);
void clicks_end(struct clicks *clicks); /* the last batch, however full */

#endif
