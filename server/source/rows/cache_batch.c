/* cache_batch.c - see cache_batch.h. */
#include "source/rows/cache_batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/source.h"

/* A row without values takes no bytes of a record, so a record of any length may hold many of them.
 * A count from a damaged file is bounded all the same. */
enum { EMPTY_ROWS_MAX = 1 << 20 };

tundish_status
cache_batch_count(const struct frame *frame, int64_t element, uint64_t *ret_rows)
{
    int64_t rows = -1;

    for (uint32_t i = 0; i < frame->column_count; i++) {
        const struct column *column = &frame->columns[i];
        int64_t here;

        /* A scalar belongs to the whole batch and says nothing about its rows. In a sparse column
         * the lists hold only the values that are there, so its shape counts. */
        if (column->level_count == 0)
            continue;
        here = column->dense_shape != NULL ? column->dense_shape[element * column->level_count]
                                           : level_length(&column->levels[0], element);
        if (rows >= 0 && here != rows)
            return tnd_fail(TUNDISH_E_PIPELINE,
                            "the columns of a batch have %" PRId64 " and %" PRId64
                            " rows, though no stage before the cache is known to change them",
                            rows, here);
        rows = here;
    }
    *ret_rows = rows > 0 ? (uint64_t)rows : 1;
    return TUNDISH_OK;
}

/* A run has a reference for each row, and all of these refer to the one record. */
uint64_t
cache_batch_word(const uint64_t *record, uint64_t rows)
{
    uint64_t *each = tnd_alloc(rows * SOURCE_WIDTH * sizeof *each);
    struct run *run;

    for (uint64_t i = 0; i < rows; i++)
        memcpy(each + SOURCE_WIDTH * i, record, SOURCE_WIDTH * sizeof *record);
    run = run_new(each, rows, SOURCE_WIDTH, 0);
    free(each);
    return run_word(run);
}

uint64_t
cache_batch_rows(const struct cache_rows *rows, uint64_t index)
{
    /* The stretches hold running sums, so the first whose sum exceeds the index has the batch. */
    size_t low = 0, high = rows->stretch_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rows->stretches[middle].batches <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->stretch_count ? rows->stretches[low].rows : 0;
}

bool
cache_batch_is_sound(const uint64_t *record, uint64_t rows)
{
    return rows > 0 && rows <= reference_length(record) + EMPTY_ROWS_MAX;
}
