/* analyzer_moments.c - mean and variance: keras.layers.Normalization.adapt, tft's z-score.
 *
 * In float64. The elements of a task are added up and then merged with the earlier ones (Chan,
 * Golub and LeVeque), so that neither large means nor many batches cost precision.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "learn/value_groups.h"

struct moment {
    double count, mean, squares; /* squares: the sum of squared distances from the mean */
};

struct moments {
    struct analyzer_config config;
    const struct spec_stage *stage;
    struct value_groups groups;
    bool is_keras; /* counts in float32, and NaN counts */
    tundish_dtype dtype;
    struct moment *totals, *parts;
    int64_t capacity;
};

static tundish_status
moments_open(void *state, const struct analyzer_config *config)
{
    struct moments *moments = state;

    moments->config = *config;
    moments->stage = config->content->stage;
    moments->is_keras = config->learning->is_keras;
    moments->dtype = !moments->is_keras && config->column->dtype == TUNDISH_FLOAT64
                         ? TUNDISH_FLOAT64
                         : TUNDISH_FLOAT32;
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "%s: '%s' has dtype string; expected a numeric dtype",
                              config->content->stage->info->name, config->column->name);
    return value_groups_open(&moments->groups, config);
}

static void
reserve(struct moments *moments)
{
    int64_t count = value_groups_count(&moments->groups);

    if (count > moments->capacity) {
        int64_t capacity = count + count / 2;

        moments->totals = tnd_realloc(moments->totals, (size_t)capacity, sizeof(struct moment));
        moments->parts = tnd_realloc(moments->parts, (size_t)capacity, sizeof(struct moment));
        memset(&moments->totals[moments->capacity], 0,
               (size_t)(capacity - moments->capacity) * sizeof(struct moment));
        moments->capacity = capacity;
    }
    memset(moments->parts, 0, (size_t)count * sizeof(struct moment));
}

static void
merge(struct moment *total, const struct moment *part)
{
    double count = total->count + part->count, apart = part->mean - total->mean;

    if (part->count == 0)
        return;
    total->mean += apart * (part->count / count);
    total->squares += part->squares + apart * apart * (total->count * part->count / count);
    total->count = count;
}

/* Add up the values of a task that are all in one group. Two passes: the mean first, then the
 * distances from it. */
static void
add_up(const double *x, int64_t count, bool only_finite, struct moment *ret_part)
{
    struct moment part = { 0 };

    for (int64_t i = 0; i < count; i++)
        if (!only_finite || isfinite(x[i])) {
            part.count++;
            part.mean += x[i];
        }
    if (part.count > 0)
        part.mean /= part.count;
    for (int64_t i = 0; i < count; i++)
        if (!only_finite || isfinite(x[i]))
            part.squares += (x[i] - part.mean) * (x[i] - part.mean);
    *ret_part = part;
}

/* The same for several groups. NaN and infinity count in Keras and not in tf.Transform. */
static void
add_up_groups(const struct moments *moments, const double *x, const int64_t *group_of,
              int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (moments->is_keras || isfinite(x[i])) {
            moments->parts[group_of[i]].count++;
            moments->parts[group_of[i]].mean += x[i];
        }
    for (int64_t p = 0; p < value_groups_count(&moments->groups); p++)
        if (moments->parts[p].count > 0)
            moments->parts[p].mean /= moments->parts[p].count;
    for (int64_t i = 0; i < count; i++) {
        double apart = x[i] - moments->parts[group_of[i]].mean;

        if (moments->is_keras || isfinite(x[i]))
            moments->parts[group_of[i]].squares += apart * apart;
    }
}

static tundish_status
moments_feed(void *state, const struct samples *samples)
{
    struct moments *moments = state;
    const int64_t *group_of;
    int64_t count = samples->column->value_count;
    tundish_status status = value_groups_find(&moments->groups, samples, &group_of);

    if (status != TUNDISH_OK)
        return status;
    reserve(moments);
    if (group_of == NULL)
        add_up(samples->numbers, count, !moments->is_keras, &moments->parts[0]);
    else
        add_up_groups(moments, samples->numbers, group_of, count);
    for (int64_t p = 0; p < value_groups_count(&moments->groups); p++)
        merge(&moments->totals[p], &moments->parts[p]);
    return TUNDISH_OK;
}

/* As in Keras, where a job learns nothing of it until its loss is NaN. */
static void
tell_of_nan(const struct moments *moments, const double *means, int64_t count)
{
    for (int64_t p = 0; p < count; p++)
        if (!isfinite(means[p])) {
            tnd_log_print("note: %s (line %u): the mean of '%s' is not finite, because some values "
                          "are not: leave them out with a filter before it, in the stream that "
                          "learn_from names\n",
                          moments->stage->info->name, moments->stage->line, moments->config.name);
            return;
        }
}

static tundish_status
moments_finish(void *state)
{
    struct moments *moments = state;
    int64_t count = value_groups_count(&moments->groups);
    double *means = tnd_zalloc((size_t)count + 1, sizeof *means);
    double *variances = tnd_zalloc((size_t)count + 1, sizeof *variances);
    tundish_status status;

    for (int64_t p = 0; p < count && p < moments->capacity; p++) {
        means[p] = moments->totals[p].mean;
        if (moments->totals[p].count > 0)
            variances[p] = moments->totals[p].squares / moments->totals[p].count;
    }
    tell_of_nan(moments, means, count < moments->capacity ? count : moments->capacity);
    status = value_groups_write(&moments->groups, &moments->config, ".mean", moments->dtype, 0,
                                means, NULL);
    if (status == TUNDISH_OK)
        status = value_groups_write(&moments->groups, &moments->config, ".variance", moments->dtype,
                                    0, variances, NULL);
    free(means);
    free(variances);
    return status;
}

static void
moments_close(void *state)
{
    struct moments *moments = state;

    value_groups_close(&moments->groups);
    free(moments->totals);
    free(moments->parts);
}

const struct analyzer_ops analyzer_moments = {
    .state_bytes = sizeof(struct moments),
    .open = moments_open,
    .feed = moments_feed,
    .finish = moments_finish,
    .close = moments_close,
};
