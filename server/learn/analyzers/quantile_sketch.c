/* quantile_sketch.c - a buffer that becomes summaries, merged two and two like the digits of a
 * counter. A summary is sorted; of each value it knows between which ranks it lies. */
#include "learn/analyzers/quantile_sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { LEVELS_MAX = 64 };

struct entry {
    double value, weight;
    double least_rank, most_rank; /* least: weight of all below; most: with its own */
};

struct summary {
    int64_t count, capacity;
    struct entry *entries;
};

struct quantile_sketch {
    double epsilon;
    int64_t block;
    struct summary buffer, local, merged;
    struct summary levels[LEVELS_MAX];
};

static void
add_value(struct summary *summary, struct entry entry)
{
    if (summary->count == summary->capacity) {
        summary->capacity = 2 * summary->capacity + 16;
        summary->entries =
            tnd_realloc(summary->entries, (size_t)summary->capacity, sizeof *summary->entries);
    }
    summary->entries[summary->count++] = entry;
}

static void
swap(struct summary *a, struct summary *b)
{
    struct summary held = *a;

    *a = *b;
    *b = held;
}

struct quantile_sketch *
quantile_sketch_open(double epsilon)
{
    struct quantile_sketch *sketch = tnd_zalloc(1, sizeof *sketch);
    double least = fmax(epsilon, 1e-6);
    int levels = 1;

    sketch->epsilon = least;
    sketch->block = 2;
    while (ldexp((double)sketch->block, levels) < 4294967296.0) {
        sketch->block = (int64_t)ceil((double)levels / least) + 1;
        levels++;
    }
    return sketch;
}

void
quantile_sketch_close(struct quantile_sketch *sketch)
{
    if (sketch == NULL)
        return;
    for (int i = 0; i < LEVELS_MAX; i++)
        free(sketch->levels[i].entries);
    free(sketch->buffer.entries);
    free(sketch->local.entries);
    free(sketch->merged.entries);
    free(sketch);
}

static double
next_least(const struct entry *entry)
{
    return entry->least_rank + entry->weight;
}

static double
before_most(const struct entry *entry)
{
    return entry->most_rank - entry->weight;
}

static int
compare(const void *a, const void *b)
{
    double left = ((const struct entry *)a)->value, right = ((const struct entry *)b)->value;

    return (left > right) - (left < right);
}

/* The buffer's values, each once, with their ranks. */
static void
summarize(struct quantile_sketch *sketch)
{
    struct summary *buffer = &sketch->buffer, *local = &sketch->local;
    double rank = 0;

    if (buffer->count > 0) /* else there may be no entries at all */
        qsort(buffer->entries, (size_t)buffer->count, sizeof *buffer->entries, compare);
    local->count = 0;
    for (int64_t i = 0; i < buffer->count; i++) {
        if (local->count > 0 && local->entries[local->count - 1].value == buffer->entries[i].value)
            local->entries[local->count - 1].weight += buffer->entries[i].weight;
        else
            add_value(local, buffer->entries[i]);
    }
    for (int64_t i = 0; i < local->count; i++) {
        local->entries[i].least_rank = rank;
        rank += local->entries[i].weight;
        local->entries[i].most_rank = rank;
    }
    buffer->count = 0;
}

/* local becomes local and `other` together. */
static void
merge(struct quantile_sketch *sketch, const struct summary *other)
{
    const struct summary *local = &sketch->local;
    struct summary *to = &sketch->merged;
    double local_least = 0, other_least = 0;
    int64_t i = 0, k = 0;

    if (other->count == 0)
        return;
    to->count = 0;
    while (i < local->count || k < other->count) {
        const struct entry *a = i < local->count ? &local->entries[i] : NULL;
        const struct entry *b = k < other->count ? &other->entries[k] : NULL;
        bool is_both = a != NULL && b != NULL && a->value == b->value;

        if (is_both) {
            add_value(to,
                      (struct entry){ a->value, a->weight + b->weight,
                                      a->least_rank + b->least_rank, a->most_rank + b->most_rank });
        } else if (b == NULL || (a != NULL && a->value < b->value)) {
            double above =
                b != NULL ? before_most(b)
                          : (other->count > 0 ? other->entries[other->count - 1].most_rank : 0);

            add_value(to, (struct entry){ a->value, a->weight, a->least_rank + other_least,
                                          a->most_rank + above });
            b = NULL;
        } else {
            double above =
                a != NULL ? before_most(a)
                          : (local->count > 0 ? local->entries[local->count - 1].most_rank : 0);

            add_value(to, (struct entry){ b->value, b->weight, b->least_rank + local_least,
                                          b->most_rank + above });
            a = NULL;
        }
        if (a != NULL) {
            local_least = next_least(a);
            i++;
        }
        if (b != NULL) {
            other_least = next_least(b);
            k++;
        }
    }
    swap(&sketch->local, &sketch->merged);
}

/* Leave out entries as long as the ranks of those that are left are known to within epsilon, but
 * no more than brings the summary to a block. */
static void
compress(struct quantile_sketch *sketch, struct summary *summary)
{
    int64_t size = sketch->block, written = 1, last = 0, at = 0, saved = 0;
    int64_t count = summary->count;
    struct entry *entries = summary->entries;
    double apart;

    if (count <= size)
        return;
    apart = entries[count - 1].most_rank * fmax(1.0 / (double)size, sketch->epsilon);
    while (at + 1 < count) {
        int64_t next = at + 1;

        while (next < count && saved < count &&
               before_most(&entries[next]) - next_least(&entries[at]) <= apart) {
            saved += size;
            next++;
        }
        at = next - 1 == at ? at + 1 : next - 1;
        entries[written++] = entries[at];
        last = at;
        saved -= count;
    }
    if (last + 1 != count)
        entries[written++] = entries[count - 1];
    summary->count = written;
}

static void
carry(struct quantile_sketch *sketch)
{
    for (int level = 0; level < LEVELS_MAX; level++) {
        struct summary *held = &sketch->levels[level];
        int64_t was_held = held->count;

        merge(sketch, held);
        if (was_held == 0 || sketch->local.count <= sketch->block + 1) {
            swap(held, &sketch->local);
            sketch->local.count = 0;
            return;
        }
        compress(sketch, &sketch->local);
        held->count = 0;
    }
}

void
quantile_sketch_put(struct quantile_sketch *sketch, double value, double weight)
{
    if (isnan(value) || !(weight > 0))
        return;
    add_value(&sketch->buffer, (struct entry){ .value = value, .weight = weight });
    if (sketch->buffer.count < 2 * sketch->block)
        return;
    summarize(sketch);
    compress(sketch, &sketch->local);
    carry(sketch);
}

void
quantile_sketch_take(struct quantile_sketch *sketch, int64_t count, double *ret_boundaries)
{
    const struct summary *all = &sketch->local;
    int64_t at = 0;

    summarize(sketch);
    compress(sketch, &sketch->local);
    if (sketch->local.count > 0)
        carry(sketch);
    sketch->local.count = 0;
    for (int level = 0; level < LEVELS_MAX; level++)
        merge(sketch, &sketch->levels[level]);
    memset(ret_boundaries, 0, (size_t)(count - 1) * sizeof *ret_boundaries);
    if (all->count == 0)
        return;
    for (int64_t rank = 0; rank < count; rank++) {
        double total = all->entries[all->count - 1].most_rank;
        double twice = 2.0 * ((double)rank * total / (double)count);
        int64_t next = at + 1;

        while (next < all->count &&
               twice >= all->entries[next].least_rank + all->entries[next].most_rank)
            next++;
        at = next - 1;
        if (rank > 0)
            ret_boundaries[rank - 1] =
                next == all->count ||
                        twice < next_least(&all->entries[at]) + before_most(&all->entries[next])
                    ? all->entries[at].value
                    : all->entries[next].value;
    }
}
