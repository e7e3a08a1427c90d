/* numbers.h - a server of numbers: everything between a session and a trainer, with batches whose
 * every word follows from epoch, step and replica, so that a trainer can check all of it. */
#ifndef RIG_NUMBERS_H
#define RIG_NUMBERS_H

#include <stdbool.h>

#include "deliver/feed.h"
#include "deliver/socket/hub.h"
#include "deliver/wakeup.h"

struct numbers_options {
    const char *path;     /* NULL: in a new folder under /tmp */
    uint32_t replicas;    /* 0: 1 */
    uint32_t slots;       /* 0: 4 */
    uint32_t rows;        /* of the largest batch; 0: 64 */
    uint64_t arena_bytes; /* 0: 1 MiB */
    uint64_t max_batch_bytes;
    uint64_t steps;    /* of an epoch; 0: 10 */
    uint64_t epochs;   /* 0: no limit */
    int64_t rejoin_ns; /* 0: as long as it takes */
    int64_t hello_ns;  /* 0: as long as it takes */
    int64_t detach_ns; /* 0: slow_group: block */
    bool queue, broadcast, memfd, checksums, narrow;
    bool idle;          /* publish nothing until numbers_run */
    uint64_t bad_step;  /* not 0: E_DATA at this step of epoch 0 */
    uint32_t wide_step; /* not 0: the batch of each step that this divides is 40 times as large */
};

struct numbers;

void numbers_open(const struct numbers_options *options, struct numbers **ret_numbers);
void numbers_run(struct numbers *numbers);
void numbers_drain(struct numbers *numbers); /* STOPPED is the next thing published */
void numbers_close(struct numbers *numbers); /* accepts NULL */

const char *numbers_path(const struct numbers *numbers);
struct feed *numbers_feed(struct numbers *numbers);
struct hub *numbers_hub(struct numbers *numbers);

/* What the session was told, counted. */
struct numbers_told {
    uint32_t admitted, joined, left, died, ended, restarts, full_groups;
};
struct numbers_told numbers_told(struct numbers *numbers);

/* Every word of a batch, read through the SDK. False and a line on stderr if one is wrong. */
bool numbers_check(const tundish_batch *batch, uint32_t replica, uint32_t rows, uint32_t wide_step);

/* The rows of a batch. */
uint64_t numbers_rows(uint64_t epoch, uint64_t step, uint32_t rows, uint32_t wide_step);

#endif
