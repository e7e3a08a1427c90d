/* clicks.c - batches of the click log. */
#include "clicks.h"

#include <math.h>

struct lookup clicks_lookup[CLICKS_TERMS];
float clicks_log1p[4096];

void
clicks_load(const char *folder)
{
    for (int i = 0; i < CLICKS_TERMS; i++)
        clicks_lookup[i] = lookup_load(limit_path("%s/vocab/C%d.txt", folder, i + 1));
    for (int i = 0; i < 4096; i++)
        clicks_log1p[i] = log1pf((float)i);
}

float
clicks_log1p_large(int64_t value)
{
    return value < 0 ? 0.0f : log1pf((float)value);
}

static void
look_up_block(struct clicks *clicks)
{
    struct clicks_batch *batch = clicks_batch(clicks);

    for (uint32_t i = 0; i < clicks->block_rows; i++) {
        for (uint32_t term = 0; term < CLICKS_TERMS; term++)
            batch->ids[clicks->row + i][term] =
                lookup_find(&clicks_lookup[term], clicks->keys[i][term]);
    }
    clicks->row += clicks->block_rows;
    clicks->block_rows = 0;
}

static void
end_batch(struct clicks *clicks)
{
    clicks->share->rows += clicks->row;
    clicks->share->bytes += clicks->row * (4 + 4 * CLICKS_INTEGERS + 8 * CLICKS_TERMS);
    clicks->share->batches++;
    clicks->row = 0;
}

void
clicks_end_row(struct clicks *clicks)
{
    clicks->block_rows++;
    if (clicks->block_rows == CLICKS_BLOCK || clicks_row(clicks) == clicks->batch_rows)
        look_up_block(clicks);
    if (clicks->row == clicks->batch_rows)
        end_batch(clicks);
}

void
clicks_end(struct clicks *clicks)
{
    look_up_block(clicks);
    if (clicks->row > 0)
        end_batch(clicks);
}
