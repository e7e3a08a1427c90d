/* analyzer_extremes.c - the least and the greatest value, for tft's min-max scalings. A NaN
 * replaces both and is never replaced. Without values the least is infinite and the greatest is
 * minus infinity.
 *
 * tf.Transform takes a key's extremes of each batch first, with unsorted_segment_max: a row
 * with a NaN replaces what its batch had before it, and the next row replaces the NaN.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "content/learned/keyed.h"
#include "core/memory.h"
#include "learn/value_groups.h"

struct extremes {
    struct analyzer_config config;
    struct value_groups groups;
    bool is_integer;
    tundish_dtype dtype;
    double *least, *most;
    int64_t *least_integers, *most_integers;
    struct in_batch *in_batch; /* by key, for numbers */
    int64_t batch;             /* the last one that was begun, from 1 */
    int64_t capacity;
};

/* The extremes of a group in the last batch that had it; batch 0: none. */
struct in_batch {
    int64_t batch;
    double least, most;
};

static tundish_status
extremes_open(void *state, const struct analyzer_config *config)
{
    struct extremes *extremes = state;

    extremes->config = *config;
    extremes->is_integer = tnd_dtype_is_integer(config->column->dtype);
    extremes->dtype = extremes->is_integer                       ? TUNDISH_INT64
                      : config->column->dtype == TUNDISH_FLOAT64 ? TUNDISH_FLOAT64
                                                                 : TUNDISH_FLOAT32;
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "%s: '%s' has dtype string; expected a numeric dtype",
                              config->content->stage->info->name, config->column->name);
    return value_groups_open(&extremes->groups, config);
}

static void
reserve(struct extremes *extremes)
{
    int64_t count = value_groups_count(&extremes->groups);
    size_t capacity = (size_t)(count + count / 2 + 1);

    if (count <= extremes->capacity && extremes->least != NULL)
        return;
    extremes->least = tnd_realloc(extremes->least, capacity, sizeof(double));
    extremes->most = tnd_realloc(extremes->most, capacity, sizeof(double));
    extremes->least_integers = tnd_realloc(extremes->least_integers, capacity, sizeof(int64_t));
    extremes->most_integers = tnd_realloc(extremes->most_integers, capacity, sizeof(int64_t));
    extremes->in_batch = tnd_realloc(extremes->in_batch, capacity, sizeof *extremes->in_batch);
    for (size_t i = (size_t)extremes->capacity; i < capacity; i++) {
        extremes->in_batch[i] = (struct in_batch){ 0 };
        extremes->least[i] = HUGE_VAL;
        extremes->most[i] = -HUGE_VAL;
        extremes->least_integers[i] = INT64_MAX;
        extremes->most_integers[i] = INT64_MIN;
    }
    extremes->capacity = (int64_t)capacity;
}

static inline void
keep_extremes(struct extremes *extremes, int64_t group, double least, double most)
{
    if (least < extremes->least[group] || isnan(least))
        extremes->least[group] = least;
    if (most > extremes->most[group] || isnan(most))
        extremes->most[group] = most;
}

static void
keep_batch(struct extremes *extremes, int64_t group)
{
    const struct in_batch *in_batch = &extremes->in_batch[group];

    if (in_batch->batch > 0)
        keep_extremes(extremes, group, in_batch->least, in_batch->most);
}

/* Add a row of a key: `count` numbers. */
static void
add_row(struct extremes *extremes, int64_t group, const double *row, int64_t count)
{
    struct in_batch *in_batch = &extremes->in_batch[group];
    bool is_double = extremes->dtype == TUNDISH_FLOAT64;
    double least = row[0], most = row[0];

    for (int64_t i = 1; i < count; i++) {
        least = row[i] < least || isnan(row[i]) ? row[i] : least;
        most = row[i] > most || isnan(row[i]) ? row[i] : most;
    }
    if (in_batch->batch != extremes->batch) {
        keep_batch(extremes, group);
        in_batch->batch = extremes->batch;
        /* unsorted_segment_max starts from the lowest finite value of the dtype, so an infinity
         * never becomes the least one. */
        in_batch->least = is_double ? DBL_MAX : (double)FLT_MAX;
        in_batch->most = -in_batch->least;
    }
    /* Written so that a comparison with NaN takes the new value, as in the kernel. */
    in_batch->least = in_batch->least < least ? in_batch->least : least;
    in_batch->most = in_batch->most > most ? in_batch->most : most;
}

/* Add the numbers of keys: by row in a dense column, unless its positions are kept separately. */
static void
feed_keys(struct extremes *extremes, const struct samples *samples, const int64_t *group_of)
{
    const struct column *column = samples->column;
    bool takes_rows = extremes->groups.rank == 0 && extremes->config.column->kind == TUNDISH_DENSE;

    for (int64_t e = 0; e < column->count; e++) {
        int64_t each = takes_rows ? keyed_values_each(samples->key, column, e) : 1, begin, end;

        extremes->batch++;
        column_value_range(column, e, e + 1, &begin, &end);
        for (int64_t i = begin; i < end; i += each)
            add_row(extremes, group_of[i], &samples->numbers[i], each);
    }
}

static void
feed_integers(struct extremes *extremes, const struct samples *samples, const int64_t *group_of)
{
    for (int64_t i = 0; i < samples->column->value_count; i++) {
        int64_t p = group_of != NULL ? group_of[i] : 0, x = samples->integers[i];

        if (x < extremes->least_integers[p])
            extremes->least_integers[p] = x;
        if (x > extremes->most_integers[p])
            extremes->most_integers[p] = x;
    }
}

static tundish_status
extremes_feed(void *state, const struct samples *samples)
{
    struct extremes *extremes = state;
    const int64_t *group_of;
    tundish_status status = value_groups_find(&extremes->groups, samples, &group_of);

    if (status != TUNDISH_OK)
        return status;
    reserve(extremes);
    if (extremes->is_integer)
        feed_integers(extremes, samples, group_of);
    else if (extremes->groups.keys != NULL)
        feed_keys(extremes, samples, group_of);
    else
        for (int64_t i = 0; i < samples->column->value_count; i++)
            keep_extremes(extremes, group_of != NULL ? group_of[i] : 0, samples->numbers[i],
                          samples->numbers[i]);
    return TUNDISH_OK;
}

static tundish_status
extremes_finish(void *state)
{
    struct extremes *extremes = state;
    tundish_status status;

    reserve(extremes);
    for (int64_t p = 0; p < value_groups_count(&extremes->groups); p++)
        keep_batch(extremes, p);
    status =
        value_groups_write(&extremes->groups, &extremes->config, ".min", extremes->dtype, 0,
                           extremes->least, extremes->is_integer ? extremes->least_integers : NULL);
    if (status == TUNDISH_OK)
        status = value_groups_write(&extremes->groups, &extremes->config, ".max", extremes->dtype,
                                    0, extremes->most,
                                    extremes->is_integer ? extremes->most_integers : NULL);
    return status;
}

static void
extremes_close(void *state)
{
    struct extremes *extremes = state;

    value_groups_close(&extremes->groups);
    free(extremes->least);
    free(extremes->most);
    free(extremes->least_integers);
    free(extremes->most_integers);
    free(extremes->in_batch);
}

const struct analyzer_ops analyzer_extremes = {
    .state_bytes = sizeof(struct extremes),
    .open = extremes_open,
    .feed = extremes_feed,
    .finish = extremes_finish,
    .close = extremes_close,
};
