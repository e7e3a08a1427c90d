/* analyzer_tails.c - tft.scale_to_gaussian: the Tukey hh distribution with the first L-moments of
 * the values. L-moments are computed from sorted samples: here from each of tf.Transform's batches,
 * weighted by its number of pairs, triples and quadruples. Without long tails the result is the
 * z-score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "content/numbers/tukey.h"
#include "core/memory.h"
#include "learn/transform_batches.h"
#include "learn/value_groups.h"

enum { MOMENTS = 4 };

struct tail {
    double counts[MOMENTS], moments[MOMENTS];
    int64_t held_count, held_capacity;
    double *held; /* values of the batch at hand */
    double count, mean, squares;
};

struct tails {
    struct analyzer_config config;
    struct value_groups groups;
    tundish_dtype dtype;
    uint32_t depth;
    int64_t rows, batch_end; /* rows seen; where the batch ends */
    struct tail *tails;
    int64_t tail_count;
};

static tundish_status
tails_open(void *state, const struct analyzer_config *config)
{
    struct tails *tails = state;

    tails->config = *config;
    tails->depth = config->content->depth;
    tails->dtype = config->column->dtype == TUNDISH_FLOAT64 ? TUNDISH_FLOAT64 : TUNDISH_FLOAT32;
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "%s: '%s' has dtype string; expected a numeric dtype",
                              config->content->stage->info->name, config->column->name);
    return value_groups_open(&tails->groups, config);
}

/* The number of ways to choose k of n, in float64 because n may be large. */
static double
choose(double n, int k)
{
    double ways = 1;

    for (int i = 0; i < k; i++)
        ways *= (n - i) / (i + 1);
    return n < k ? 0 : ways;
}

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The L-moments of a sorted sample. */
static void
sample_moments(const double *x, int64_t count, double counts[MOMENTS], double moments[MOMENTS])
{
    double n = (double)count;

    memset(moments, 0, MOMENTS * sizeof *moments);
    for (int k = 0; k < MOMENTS; k++)
        counts[k] = choose(n, k + 1);
    for (int64_t i = 0; i < count; i++) {
        double below = (double)i, above = n - (double)i - 1;

        moments[0] += x[i];
        moments[1] += x[i] * (choose(below, 1) - choose(above, 1));
        moments[2] +=
            x[i] * (choose(below, 2) - 2 * choose(below, 1) * choose(above, 1) + choose(above, 2));
        moments[3] += x[i] * (choose(below, 3) - 3 * choose(below, 2) * choose(above, 1) +
                              3 * choose(below, 1) * choose(above, 2) - choose(above, 3));
    }
    for (int k = 0; k < MOMENTS; k++)
        moments[k] = counts[k] > 0 ? moments[k] / (k + 1) / counts[k] : 0;
}

/* Add the moments of a batch to those of the earlier ones, as a weighted mean. */
static void
settle(struct tail *tail)
{
    double counts[MOMENTS], moments[MOMENTS];

    qsort(tail->held, (size_t)tail->held_count, sizeof *tail->held, compare);
    sample_moments(tail->held, tail->held_count, counts, moments);
    for (int k = 0; k < MOMENTS; k++) {
        double total = tail->counts[k] + counts[k];

        if (total > 0)
            tail->moments[k] += counts[k] / total * (moments[k] - tail->moments[k]);
        tail->counts[k] = total;
    }
    tail->held_count = 0;
}

static void
hold_value(struct tail *tail, double x)
{
    if (tail->held_count == tail->held_capacity) {
        tail->held_capacity = 2 * tail->held_capacity + 64;
        tail->held = tnd_realloc(tail->held, (size_t)tail->held_capacity, sizeof *tail->held);
    }
    tail->held[tail->held_count++] = x;
    /* Welford's update, for the z-score. */
    if (isfinite(x)) {
        double apart = x - tail->mean;

        tail->count++;
        tail->mean += apart / tail->count;
        tail->squares += apart * (x - tail->mean);
    }
}

static void
settle_all(struct tails *tails)
{
    for (int64_t p = 0; p < tails->tail_count; p++)
        if (tails->tails[p].held_count > 0)
            settle(&tails->tails[p]);
}

static void
reserve(struct tails *tails)
{
    int64_t count = value_groups_count(&tails->groups);

    if (count <= tails->tail_count)
        return;
    tails->tails = tnd_realloc(tails->tails, (size_t)count, sizeof *tails->tails);
    memset(&tails->tails[tails->tail_count], 0,
           (size_t)(count - tails->tail_count) * sizeof *tails->tails);
    tails->tail_count = count;
}

static tundish_status
tails_feed(void *state, const struct samples *samples)
{
    struct tails *tails = state;
    const int64_t *group_of;
    int64_t rows, at = 0;
    tundish_status status = value_groups_find(&tails->groups, samples, &group_of);

    if (status != TUNDISH_OK)
        return status;
    reserve(tails);
    rows = column_list_count(samples->column, tails->depth);
    for (int64_t row = 0; row < rows; row++) {
        int64_t end = row + 1;

        if (tails->rows == tails->batch_end) {
            settle_all(tails);
            tails->batch_end += transform_batch_rows(tails->rows);
        }
        for (uint32_t k = tails->depth; k < samples->column->level_count; k++)
            end = level_begin(&samples->column->levels[k], end);
        for (; at < end; at++)
            hold_value(&tails->tails[group_of != NULL ? group_of[at] : 0], samples->numbers[at]);
        tails->rows++;
    }
    return TUNDISH_OK;
}

static tundish_status
tails_finish(void *state)
{
    static const char *const suffixes[] = { ".location", ".scale", ".left_tail", ".right_tail" };
    struct tails *tails = state;
    int64_t count = value_groups_count(&tails->groups);
    double *parts = tnd_zalloc((size_t)count * MOMENTS + 1, sizeof *parts);
    tundish_status status = TUNDISH_OK;

    reserve(tails);
    settle_all(tails);
    for (int64_t p = 0; p < count; p++) {
        const double *moments = tails->tails[p].moments;
        double left = 0, right = 0, mean, scale, size;

        if (moments[1] > 0 && tails->tails[p].counts[3] > 0)
            tukey_fit(moments[2] / moments[1], moments[3] / moments[1], &left, &right);
        tukey_moments(left, right, &mean, &scale);
        size = moments[1] > 0 ? moments[1] / scale : 0;
        if (left == 0 && right == 0 && tails->tails[p].count > 0)
            size = sqrt(tails->tails[p].squares / tails->tails[p].count);
        parts[p] = moments[0] - size * mean;
        parts[count + p] = size;
        parts[2 * count + p] = left;
        parts[3 * count + p] = right;
    }
    for (int i = 0; i < MOMENTS && status == TUNDISH_OK; i++)
        status = value_groups_write(&tails->groups, &tails->config, suffixes[i], tails->dtype, 0,
                                    &parts[i * count], NULL);
    free(parts);
    return status;
}

static void
tails_close(void *state)
{
    struct tails *tails = state;

    for (int64_t p = 0; p < tails->tail_count; p++)
        free(tails->tails[p].held);
    free(tails->tails);
    value_groups_close(&tails->groups);
}

const struct analyzer_ops analyzer_tails = {
    .state_bytes = sizeof(struct tails),
    .open = tails_open,
    .feed = tails_feed,
    .finish = tails_finish,
    .close = tails_close,
};
