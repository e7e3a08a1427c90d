/* bin_summary.c - see bin_summary.h. */
#include "learn/analyzers/bin_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* NumPy sorts up to this many entries by a network, and so must this. */
enum { NETWORK_MAX = 256 };

/* An entry's share of the weight: the sum of the weights up to it, and its value. */
typedef double sum_and_value __attribute__((vector_size(16)));

struct bin_point {
    sum_and_value to;
    double share;
};

static void
reserve(struct bin_entries *entries, int64_t count)
{
    if (count <= entries->capacity)
        return;
    entries->capacity = count + count / 2;
    entries->values =
        tnd_realloc(entries->values, (size_t)entries->capacity, sizeof *entries->values);
    entries->weights =
        tnd_realloc(entries->weights, (size_t)entries->capacity, sizeof *entries->weights);
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
summarize(struct bin_summary *summary, const double *numbers, int64_t count)
{
    /* Keras' own expression: dividing by a reciprocal rounds differently. */
    double step = fmax((double)count / (1.0 / summary->epsilon), 1.0);
    struct bin_entries *fresh = &summary->fresh;

    if (count > summary->sorted_capacity) {
        summary->sorted_capacity = count + count / 2;
        summary->sorted =
            tnd_realloc(summary->sorted, (size_t)summary->sorted_capacity, sizeof *summary->sorted);
    }
    for (int64_t i = 0; i < count; i++)
        summary->sorted[i] = (float)numbers[i];
    if (count > 1)
        qsort(summary->sorted, (size_t)count, sizeof *summary->sorted, compare_floats);
    fresh->count = 0;
    reserve(fresh, count / (int64_t)step + 1);
    for (int64_t i = (int64_t)(step - 1); i < count; i += (int64_t)step) {
        fresh->values[fresh->count] = summary->sorted[i];
        fresh->weights[fresh->count++] = (float)step;
    }
}

/* The points of a line, by share. True: no share is below the one before it. */
static bool
mark_points(struct bin_summary *summary)
{
    const struct bin_entries *entries = &summary->kept;
    struct bin_point *points;
    bool is_sorted = true;
    float sum = 0;

    if (entries->count > summary->point_capacity) {
        free(summary->points);
        summary->point_capacity = entries->count + entries->count / 2;
        summary->points = tnd_alloc((size_t)summary->point_capacity * sizeof *summary->points);
    }
    points = summary->points;
    for (int64_t i = 0; i < entries->count; i++) {
        sum += entries->weights[i];
        points[i].to = (sum_and_value){ (double)sum, (double)entries->values[i] };
    }
    for (int64_t i = 0; i < entries->count; i++) {
        points[i].share = (double)((float)points[i].to[0] / sum);
        is_sorted &= i == 0 || points[i].share >= points[i - 1].share;
    }
    return is_sorted;
}

/* The last point whose share is not above x, if the first one's is not. */
static int64_t
find_point(const struct bin_point *points, int64_t count, double x)
{
    int64_t low = 0, high = count;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (points[middle].share <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* numpy.interp at x, of both at once: the line through the points `low` and the one after it. */
static sum_and_value
interpolate(const struct bin_point *points, int64_t count, int64_t low, double x)
{
    const struct bin_point *point = &points[low];
    double share = point->share, apart, beyond = x - share;

    if (!(share < x) || low == count - 1) /* at a point, or before the first */
        return point->to;
    apart = point[1].share - share;
    return (point[1].to - point->to) / (sum_and_value){ apart, apart } *
               (sum_and_value){ beyond, beyond } +
           point->to;
}

/* Reduce a summary to 1 / epsilon entries, if it has as many. */
static void
compress(struct bin_summary *summary, double epsilon)
{
    int64_t count = (int64_t)ceil(1.0 / epsilon), from = summary->kept.count, low = 0;
    struct bin_entries *kept = &summary->kept;
    bool is_sorted = true, rises = true, in_order;
    double before = 0;

    if ((double)from * epsilon < 1)
        return;
    in_order = mark_points(summary);
    reserve(kept, count);
    for (int64_t i = 0; i < count; i++) {
        double share = epsilon + (double)i * epsilon;
        sum_and_value at;
        float value;

        if (!in_order)
            low = find_point(summary->points, from, share);
        while (in_order && low + 1 < from && summary->points[low + 1].share <= share)
            low++;
        at = interpolate(summary->points, from, low, share);
        value = (float)at[1];
        is_sorted &= i == 0 || value >= kept->values[i - 1];
        rises &= i == 0 || value > kept->values[i - 1];
        kept->values[i] = value;
        kept->weights[i] = (float)(at[0] - before);
        before = at[0];
    }
    kept->count = count;
    kept->is_sorted = is_sorted && !isnan(kept->values[0]);
    kept->rises = rises && kept->is_sorted;
}

static bool
exchange(struct bin_entries *entries, int64_t a, int64_t b)
{
    float value = entries->values[a], weight = entries->weights[a];

    if (!(value > entries->values[b]))
        return false;
    entries->values[a] = entries->values[b];
    entries->weights[a] = entries->weights[b];
    entries->values[b] = value;
    entries->weights[b] = weight;
    return true;
}

/* Sort by a bitonic network: a block is merged from two sorted halves, the second of which is read
 * from its end. The network decides the order of the weights of equal values. Entries beyond the
 * end count as infinite and never move. */
static void
sort_by_network(struct bin_entries *entries)
{
    int64_t count = entries->count;

    for (int64_t block = 2; block < 2 * count; block *= 2) {
        for (int64_t a = 0; a < count; a++) {
            int64_t b = a ^ (block - 1);

            if (a < b && b < count)
                exchange(entries, a, b);
        }
        for (int64_t apart = block / 4; apart > 0; apart /= 2)
            for (int64_t a = 0; a + apart < count; a++)
                if ((a & apart) == 0)
                    exchange(entries, a, a + apart);
    }
}

/* The network's exchanges in the `size` entries from `begin` on, of which all but the first are
 * sorted: others compare entries that are. */
static void
sort_behind(struct bin_entries *entries, int64_t begin, int64_t size)
{
    for (int64_t apart = size / 2; apart > 0; apart /= 2)
        if (begin + apart < entries->count && exchange(entries, begin, begin + apart))
            sort_behind(entries, begin + apart, apart);
}

/* The network where all entries but the first are sorted. Only its first block has anything to
 * exchange, as long as the first entry is above all others in there. */
static void
sort_first_by_network(struct bin_entries *entries)
{
    for (int64_t half = 1; half < entries->count; half *= 2) {
        if (!exchange(entries, half - 1, half))
            return;
        sort_behind(entries, half, half);
    }
}

/* Where the first value lies that is not below `value`, among values that rise. */
static int64_t
find_value(const struct bin_entries *entries, float value)
{
    int64_t begin = 0, count = entries->count;

    while (count > 0) {
        int64_t half = count / 2;
        bool is_below = entries->values[begin + half] < value;

        begin += is_below ? half + 1 : 0;
        count = is_below ? count - half - 1 : half;
    }
    return begin;
}

/* Merge one entry, which is a number, as numpy.argsort does. */
static void
insert(struct bin_entries *entries, float value, float weight)
{
    int64_t at = entries->rises ? find_value(entries, value) : 0;
    bool is_new = entries->rises && (at == entries->count || entries->values[at] != value);

    if (!is_new)
        at = 0;
    reserve(entries, entries->count + 1);
    memmove(entries->values + at + 1, entries->values + at,
            (size_t)(entries->count - at) * sizeof *entries->values);
    memmove(entries->weights + at + 1, entries->weights + at,
            (size_t)(entries->count - at) * sizeof *entries->weights);
    entries->values[at] = value;
    entries->weights[at] = weight;
    entries->count++;
    if (!is_new)
        sort_first_by_network(entries);
    entries->rises = is_new;
}

static bool
ends_with_nan(const struct bin_entries *entries)
{
    return entries->count > 0 && isnan(entries->values[entries->count - 1]);
}

static void
note_order(struct bin_entries *entries)
{
    entries->is_sorted = entries->rises = !ends_with_nan(entries);
    for (int64_t i = 1; i < entries->count; i++) {
        entries->is_sorted &= entries->values[i] >= entries->values[i - 1];
        entries->rises &= entries->values[i] > entries->values[i - 1];
    }
}

/* Merge the fresh entries before the others, as numpy.argsort sorts them on a processor with AVX2.
 * With more entries, or with NaN, the fresh ones come first among equals. */
static void
merge(struct bin_summary *summary)
{
    const struct bin_entries *a = &summary->fresh, *b = &summary->kept;
    struct bin_entries *to = &summary->merged, swapped;
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
    note_order(to);
    swapped = summary->kept;
    summary->kept = summary->merged;
    summary->merged = swapped;
}

void
bin_summary_put(struct bin_summary *summary, const double *numbers, int64_t count)
{
    const struct bin_entries *fresh = &summary->fresh, *kept = &summary->kept;

    summarize(summary, numbers, count);
    if (fresh->count == 1 && kept->is_sorted && kept->count < NETWORK_MAX &&
        !isnan(fresh->values[0]))
        insert(&summary->kept, fresh->values[0], fresh->weights[0]);
    else
        merge(summary);
    compress(summary, summary->epsilon);
}

void
bin_summary_finish(struct bin_summary *summary, int64_t bins)
{
    compress(summary, 1.0 / (double)bins);
}

void
bin_summary_close(struct bin_summary *summary)
{
    struct bin_entries *const all[] = { &summary->kept, &summary->fresh, &summary->merged };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->values);
        free(all[i]->weights);
    }
    free(summary->sorted);
    free(summary->points);
}
