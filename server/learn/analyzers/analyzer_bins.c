/* analyzer_bins.c - keras.layers.Discretization.adapt: bins of about equal counts.
 *
 * Each element (for Keras, each batch) is summarized: every step-th of its sorted values, with the
 * step as weight. Summaries are merged, and long ones are reduced to 1 / epsilon entries by
 * interpolation. So the bins depend on the batches, as in Keras, and the numbers are equal only if
 * float32 and float64 are used where NumPy uses them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/analyzers/analyzer.h"
#include "learn/results/artifact.h"

/* NumPy sorts up to this many entries by a network, and so must this. */
enum { NETWORK_MAX = 256 };

struct summary {
    int64_t count, capacity;
    float *values, *weights;
};

struct bins {
    struct analyzer_config config;
    int64_t bin_count;
    double epsilon;
    struct summary summary, fresh, merged;
    float *sorted;
    int64_t sorted_capacity;
};

static tundish_status
bins_open(void *state, const struct analyzer_config *config)
{
    struct bins *bins = state;

    bins->config = *config;
    bins->bin_count = spec_int(config->content->stage, "num_bins");
    bins->epsilon = spec_number(config->content->stage, "epsilon");
    if (config->column->dtype == TUNDISH_STRING)
        return stage_complain(config->content,
                              "discretization: '%s' has dtype string; expected a numeric dtype",
                              config->column->name);
    if (!(bins->epsilon > 1e-6 && bins->epsilon <= 1))
        return stage_complain(config->content,
                              "discretization: epsilon must be above 0.000001 and at most 1");
    return TUNDISH_OK;
}

static void
reserve(struct summary *summary, int64_t count)
{
    if (count <= summary->capacity)
        return;
    summary->capacity = count + count / 2;
    summary->values =
        tnd_realloc(summary->values, (size_t)summary->capacity, sizeof *summary->values);
    summary->weights =
        tnd_realloc(summary->weights, (size_t)summary->capacity, sizeof *summary->weights);
}

/* NaN after all other values, as NumPy sorts it. */
static int
compare_floats(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;

    if (isnan(left) || isnan(right))
        return isnan(left) - isnan(right);
    return (left > right) - (left < right);
}

static void
summarize(struct bins *bins, const double *numbers, int64_t count)
{
    /* Keras' own expression: dividing by a reciprocal rounds differently. */
    double step = fmax((double)count / (1.0 / bins->epsilon), 1.0);
    struct summary *fresh = &bins->fresh;

    if (count > bins->sorted_capacity) {
        bins->sorted_capacity = count + count / 2;
        bins->sorted =
            tnd_realloc(bins->sorted, (size_t)bins->sorted_capacity, sizeof *bins->sorted);
    }
    for (int64_t i = 0; i < count; i++)
        bins->sorted[i] = (float)numbers[i];
    qsort(bins->sorted, (size_t)count, sizeof *bins->sorted, compare_floats);
    fresh->count = 0;
    reserve(fresh, count / (int64_t)step + 1);
    for (int64_t i = (int64_t)(step - 1); i < count; i += (int64_t)step) {
        fresh->values[fresh->count] = bins->sorted[i];
        fresh->weights[fresh->count++] = (float)step;
    }
}

/* numpy.interp of one point: the value at x of the line through the points (from, to). */
static double
interpolate(double x, const float *from, const float *to, int64_t count)
{
    int64_t low = 0, high = count; /* the last point that is not above x is in [low, high) */
    double slope;

    if (!(x >= (double)from[0]))
        return (double)to[0];
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if ((double)from[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    if (low == count - 1 || (double)from[low] == x)
        return (double)to[low];
    slope = ((double)to[low + 1] - (double)to[low]) / ((double)from[low + 1] - (double)from[low]);
    return slope * (x - (double)from[low]) + (double)to[low];
}

/* Reduce a summary to 1 / epsilon entries, if it has as many. */
static void
compress(struct summary *summary, double epsilon)
{
    int64_t count = (int64_t)ceil(1.0 / epsilon), from = summary->count;
    float *sums, *shares, *values;
    double before = 0;
    float sum = 0;

    if ((double)from * epsilon < 1)
        return;
    sums = tnd_alloc((size_t)from * sizeof *sums);
    shares = tnd_alloc((size_t)from * sizeof *shares);
    values = tnd_alloc((size_t)from * sizeof *values);
    memcpy(values, summary->values, (size_t)from * sizeof *values);
    for (int64_t i = 0; i < from; i++)
        sums[i] = sum += summary->weights[i];
    for (int64_t i = 0; i < from; i++)
        shares[i] = sums[i] / sum;
    reserve(summary, count);
    for (int64_t i = 0; i < count; i++) {
        double share = epsilon + (double)i * epsilon;
        double weight = interpolate(share, shares, sums, from);

        summary->values[i] = (float)interpolate(share, shares, values, from);
        summary->weights[i] = (float)(weight - before);
        before = weight;
    }
    summary->count = count;
    free(sums);
    free(shares);
    free(values);
}

static void
exchange(struct summary *summary, int64_t a, int64_t b)
{
    float value = summary->values[a], weight = summary->weights[a];

    if (!(value > summary->values[b]))
        return;
    summary->values[a] = summary->values[b];
    summary->weights[a] = summary->weights[b];
    summary->values[b] = value;
    summary->weights[b] = weight;
}

/* Sort by a bitonic network: a block is merged from two sorted halves, the second of which is read
 * from its end. The network decides the order of the weights of equal values. Entries beyond the
 * end count as infinite and never move. */
static void
sort_by_network(struct summary *summary)
{
    int64_t count = summary->count;

    for (int64_t block = 2; block < 2 * count; block *= 2) {
        for (int64_t a = 0; a < count; a++) {
            int64_t b = a ^ (block - 1);

            if (a < b && b < count)
                exchange(summary, a, b);
        }
        for (int64_t apart = block / 4; apart > 0; apart /= 2)
            for (int64_t a = 0; a + apart < count; a++)
                if ((a & apart) == 0)
                    exchange(summary, a, a + apart);
    }
}

static bool
ends_with_nan(const struct summary *summary)
{
    return summary->count > 0 && isnan(summary->values[summary->count - 1]);
}

/* Merge the fresh entries before the others, as numpy.argsort sorts them on a processor with AVX2.
 * With more entries, or with NaN, the fresh ones come first among equals. */
static void
merge(struct bins *bins)
{
    const struct summary *a = &bins->fresh, *b = &bins->summary;
    struct summary *to = &bins->merged;
    int64_t i = 0, k = 0;
    bool by_network = a->count + b->count <= NETWORK_MAX && !ends_with_nan(a) && !ends_with_nan(b);

    reserve(to, a->count + b->count);
    for (to->count = 0; i < a->count || k < b->count; to->count++) {
        bool takes_fresh =
            k == b->count ||
            (i < a->count && (by_network || compare_floats(&a->values[i], &b->values[k]) <= 0));

        to->values[to->count] = takes_fresh ? a->values[i] : b->values[k];
        to->weights[to->count] = takes_fresh ? a->weights[i++] : b->weights[k++];
    }
    if (by_network)
        sort_by_network(to);
    {
        struct summary swapped = bins->summary;

        bins->summary = bins->merged;
        bins->merged = swapped;
    }
    compress(&bins->summary, bins->epsilon);
}

static tundish_status
bins_feed(void *state, const struct samples *samples)
{
    struct bins *bins = state;

    for (int64_t e = 0; e < samples->column->count; e++) {
        int64_t begin, end;

        column_value_range(samples->column, e, e + 1, &begin, &end);
        if (begin == end)
            continue;
        summarize(bins, samples->numbers + begin, end - begin);
        merge(bins);
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

    compress(&bins->summary, 1.0 / (double)bins->bin_count);
    count = bins->summary.count > 0 ? bins->summary.count - 1 : 0; /* without data: one bin */
    boundaries = tnd_zalloc((size_t)count + 1, sizeof *boundaries);
    for (int64_t i = 0; i < count; i++)
        boundaries[i] = (double)bins->summary.values[i];
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
    struct summary *const all[] = { &bins->summary, &bins->fresh, &bins->merged };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->values);
        free(all[i]->weights);
    }
    free(bins->sorted);
}

const struct analyzer_ops analyzer_bins = {
    .state_bytes = sizeof(struct bins),
    .open = bins_open,
    .feed = bins_feed,
    .finish = bins_finish,
    .close = bins_close,
};
