/* test_bin_summary.c - entries equal, bit for bit, to those of Keras' own steps, each made plainly.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "learn/analyzers/bin_summary.h"
#include "unit/test_file.h"

/* The plain steps: summarize, numpy.argsort of both summaries as one, two of numpy.interp. */
enum { NETWORK_MAX = 256 };

/* Of one thread ThreadSanitizer has little to tell, and takes long. */
#if defined __SANITIZE_THREAD__
enum { VALUES = 1000 };
#else
enum { VALUES = 4000 };
#endif

struct summary {
    int64_t count, capacity;
    float *values, *weights;
};

struct bins {
    double epsilon;
    struct summary summary, fresh, merged;
    float *sorted;
    int64_t sorted_capacity;
};

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

static void
free_bins(struct bins *bins)
{
    struct summary *const all[] = { &bins->summary, &bins->fresh, &bins->merged };

    for (size_t i = 0; i < 3; i++) {
        free(all[i]->values);
        free(all[i]->weights);
    }
    free(bins->sorted);
}

static uint64_t
next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

enum kind { CONTINUOUS, FEW, ZEROS, RISING, FALLING, SKEWED, INFINITE, NANS, KINDS };

static double
number_of(enum kind kind, int at, uint64_t *random)
{
    uint64_t draw = next_random(random);

    switch (kind) {
    case FEW:
        return (double)(draw % 7);
    case ZEROS:
        return draw % 4 > 0 ? 0.0 : (double)(draw % 1000) - 500;
    case RISING:
        return at;
    case FALLING:
        return -at / 3;
    case SKEWED:
        return floor(exp((double)(draw % 1000) / 100));
    case INFINITE:
        return draw % 50 == 0 ? (double)INFINITY : (double)(draw % 97) / 9;
    case NANS:
        return draw % 200 == 0 ? (double)NAN : (double)(draw % 97) / 9;
    default:
        return (double)draw / 1000;
    }
}

static void
assert_same_entries(const struct summary *expected, const struct bin_entries *entries)
{
    size_t bytes = (size_t)expected->count * sizeof(float);

    assert_int_equal(entries->count, expected->count);
    assert_memory_equal(entries->values, expected->values, bytes);
    assert_memory_equal(entries->weights, expected->weights, bytes);
}

/* Batches of at most `most` values. */
static void
assert_like_plain(enum kind kind, double epsilon, uint64_t most)
{
    struct bins plain = { .epsilon = epsilon };
    struct bin_summary summary = { .epsilon = epsilon };
    uint64_t random = 1;
    double numbers[300];

    for (int at = 0; at < VALUES;) {
        int64_t count = 1 + (int64_t)(next_random(&random) % most);

        for (int64_t i = 0; i < count; i++)
            numbers[i] = number_of(kind, at++, &random);
        summarize(&plain, numbers, count);
        merge(&plain);
        bin_summary_put(&summary, numbers, count);
        assert_same_entries(&plain.summary, &summary.kept);
    }
    compress(&plain.summary, 1.0 / 7);
    bin_summary_finish(&summary, 7);
    assert_same_entries(&plain.summary, &summary.kept);
    free_bins(&plain);
    bin_summary_close(&summary);
}

static void
entries_are_those_of_plain_steps(void **state)
{
    static const double epsilons[] = { 0.01, 0.1, 0.003, 0.017, 0.5, 1 };

    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof epsilons / sizeof *epsilons; i++) {
            assert_like_plain((enum kind)kind, epsilons[i], 1);
            assert_like_plain((enum kind)kind, epsilons[i], 2);
            assert_like_plain((enum kind)kind, epsilons[i], 300);
        }
}

TEST_FILE(test_bin_summary)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_those_of_plain_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
