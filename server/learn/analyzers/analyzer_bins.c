/* analyzer_bins.c - keras.layers.Discretization.adapt: bins of about equal counts. Each element is
 * a batch to Keras. */
#include <stdlib.h>

#include "core/memory.h"
#include "learn/analyzers/analyzer.h"
#include "learn/analyzers/bin_summary.h"
#include "learn/results/artifact.h"

struct bins {
    struct analyzer_config config;
    int64_t bin_count;
    struct bin_summary summary;
};

static tundish_status
bins_open(void *state, const struct analyzer_config *config)
{
    struct bins *bins = state;

    bins->config = *config;
    bins->bin_count = spec_int(config->content->stage, "num_bins");
    bins->summary.epsilon = spec_number(config->content->stage, "epsilon");
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "discretization: '%s' has dtype string; expected a numeric dtype",
                              config->column->name);
    if (!(bins->summary.epsilon > 1e-6 && bins->summary.epsilon <= 1))
        return stage_complain(config->content,
                              "discretization: epsilon must be above 0.000001 and at most 1");
    return TUNDISH_OK;
}

static tundish_status
bins_feed(void *state, const struct samples *samples)
{
    struct bins *bins = state;

    for (int64_t e = 0; e < samples->column->count; e++) {
        int64_t begin, end;

        column_value_range(samples->column, e, e + 1, &begin, &end);
        if (begin < end)
            bin_summary_put(&bins->summary, samples->numbers + begin, end - begin);
    }
    return TUNDISH_OK;
}

static tundish_status
bins_finish(void *state)
{
    struct bins *bins = state;
    struct artifact_table table = { .dtype = TUNDISH_FLOAT32, .rank = 1 };
    int64_t count;
    double *boundaries;
    tundish_status status;

    bin_summary_finish(&bins->summary, bins->bin_count);
    count = bins->summary.kept.count;
    count -= count > 0; /* without data: one bin */
    boundaries = tnd_zalloc((size_t)count + 1, sizeof *boundaries);
    for (int64_t i = 0; i < count; i++)
        boundaries[i] = (double)bins->summary.kept.values[i];
    table.shape = &count;
    table.numbers = boundaries;
    status = artifact_write_table(bins->config.folder, bins->config.name, ".boundaries", &table);
    free(boundaries);
    return status;
}

static void
bins_close(void *state)
{
    struct bins *bins = state;

    bin_summary_close(&bins->summary);
}

const struct analyzer_ops analyzer_bins = {
    .state_bytes = sizeof(struct bins),
    .open = bins_open,
    .feed = bins_feed,
    .finish = bins_finish,
    .close = bins_close,
};
