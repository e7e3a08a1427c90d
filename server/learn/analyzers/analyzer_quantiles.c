/* analyzer_quantiles.c - tft.bucketize: boundaries of buckets of about equal weight. */
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "learn/analyzers/quantile_sketch.h"
#include "learn/value_groups.h"

struct quantiles {
    struct analyzer_config config;
    struct value_groups groups;
    int64_t bucket_count;
    double epsilon;
    struct quantile_sketch **sketches; /* one for each group */
    int64_t sketch_count;
};

static tundish_status
quantiles_open(void *state, const struct analyzer_config *config)
{
    struct quantiles *quantiles = state;
    const struct spec_stage *stage = config->content->stage;

    quantiles->config = *config;
    quantiles->bucket_count = spec_int(stage, "num_buckets");
    /* The default of tf.Transform. */
    quantiles->epsilon = spec_has_value(stage, "epsilon")
                             ? spec_number(stage, "epsilon")
                             : fmin(1.0 / (double)quantiles->bucket_count, 0.01);
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "%s: '%s' has dtype string; expected a numeric dtype",
                              stage->info->name, config->column->name);
    return value_groups_open(&quantiles->groups, config);
}

static void
reserve(struct quantiles *quantiles)
{
    int64_t count = value_groups_count(&quantiles->groups);

    if (count <= quantiles->sketch_count)
        return;
    quantiles->sketches =
        tnd_realloc(quantiles->sketches, (size_t)count, sizeof(struct quantile_sketch *));
    for (int64_t i = quantiles->sketch_count; i < count; i++)
        quantiles->sketches[i] = quantile_sketch_open(quantiles->epsilon);
    quantiles->sketch_count = count;
}

static tundish_status
quantiles_feed(void *state, const struct samples *samples)
{
    struct quantiles *quantiles = state;
    int64_t count = samples->column->value_count;
    const int64_t *group_of;
    tundish_status status = value_groups_find(&quantiles->groups, samples, &group_of);

    if (status != TUNDISH_OK)
        return status;
    if (samples->weights != NULL && samples->weights->value_count != count)
        return tnd_fail(TUNDISH_E_DATA, "there are %lld weights for %lld values of '%s'",
                        (long long)samples->weights->value_count, (long long)count,
                        quantiles->config.name);
    reserve(quantiles);
    for (int64_t i = 0; i < count; i++)
        /* tf.Transform's sketch is of float32. */
        quantile_sketch_put(quantiles->sketches[group_of != NULL ? group_of[i] : 0],
                            (double)(float)samples->numbers[i],
                            samples->weights != NULL ? (double)(float)samples->weight_numbers[i]
                                                     : 1.0);
    return TUNDISH_OK;
}

static tundish_status
quantiles_finish(void *state)
{
    struct quantiles *quantiles = state;
    int64_t each = quantiles->bucket_count - 1;
    double *boundaries;
    tundish_status status;

    reserve(quantiles);
    boundaries = tnd_zalloc((size_t)(quantiles->sketch_count * each) + 1, sizeof *boundaries);
    for (int64_t i = 0; i < quantiles->sketch_count && each > 0; i++)
        quantile_sketch_take(quantiles->sketches[i], quantiles->bucket_count,
                             &boundaries[i * each]);
    if (each == 0) { /* one bucket has no boundary: a list without entries */
        quantiles->groups.shape[quantiles->groups.rank++] = 0;
        status = value_groups_write(&quantiles->groups, &quantiles->config, ".boundaries",
                                    TUNDISH_FLOAT32, 0, boundaries, NULL);
    } else {
        status = value_groups_write(&quantiles->groups, &quantiles->config, ".boundaries",
                                    TUNDISH_FLOAT32, each, boundaries, NULL);
    }
    free(boundaries);
    return status;
}

static void
quantiles_close(void *state)
{
    struct quantiles *quantiles = state;

    for (int64_t i = 0; i < quantiles->sketch_count; i++)
        quantile_sketch_close(quantiles->sketches[i]);
    free(quantiles->sketches);
    value_groups_close(&quantiles->groups);
}

const struct analyzer_ops analyzer_quantiles = {
    .state_bytes = sizeof(struct quantiles),
    .open = quantiles_open,
    .feed = quantiles_feed,
    .finish = quantiles_finish,
    .close = quantiles_close,
};
