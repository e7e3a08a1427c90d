/* limit_order.c - numbers through a shuffle buffer of a million, into batches: limit_order DIR
 * [THREADS] */
#include <stdlib.h>

#include "core/memory.h"
#include "limit.h"

enum { ROWS = 20000000, BUFFER_ROWS = 1000000, BATCH_ROWS = 8192 };

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void
put(struct share *share, int64_t value)
{
    ((int64_t *)(void *)share_slot(share))[share->rows % BATCH_ROWS] = value;
    if (++share->rows % BATCH_ROWS == 0)
        share->batches++;
}

static void
pass(struct share *share)
{
    int64_t *held = tnd_zalloc(BUFFER_ROWS, sizeof(*held));
    uint64_t random = 42;

    for (int64_t i = 0; i < BUFFER_ROWS; i++)
        held[i] = i;
    for (int64_t i = BUFFER_ROWS; i < ROWS; i++) {
        uint64_t place = (next_random(&random) >> 32) * BUFFER_ROWS >> 32;

        put(share, held[place]);
        held[place] = i;
    }
    for (uint64_t left = BUFFER_ROWS; left > 0; left--) {
        uint64_t place = (next_random(&random) >> 32) * left >> 32;

        put(share, held[place]);
        held[place] = held[left - 1];
    }
    share->bytes = share->rows * sizeof(int64_t);
    free(held);
}

int
main(int argc, char **argv)
{
    const struct limit limit = { BATCH_ROWS * sizeof(int64_t), 1, false, pass };

    limit_folder(argc, argv);
    return limit_measure(&limit, NULL, 0, 1);
}
