/* job.c - add up the sets of all nodes. */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const told_apart_by[] = { "replica", "thread", "object" };

static bool
tells_apart(const char *key, size_t bytes)
{
    for (size_t i = 0; i < sizeof told_apart_by / sizeof *told_apart_by; i++)
        if (strlen(told_apart_by[i]) == bytes && memcmp(told_apart_by[i], key, bytes) == 0)
            return true;
    return false;
}

/* The labels that sets of several nodes may have in common. They were checked when the file was
 * read (shm/stats.c): key="value",... */
static void
common_labels(const char *labels, char common[TND_STATS_LABEL_BYTES])
{
    size_t used = 0;

    while (*labels != '\0') {
        size_t key = strcspn(labels, "="), end = key + 2;

        while (labels[end] != '"')
            end += labels[end] == '\\' ? 2 : 1;
        end++;
        if (!tells_apart(labels, key)) {
            if (used > 0)
                common[used++] = ',';
            memcpy(common + used, labels, end);
            used += end;
        }
        labels += end + (labels[end] == ',');
    }
    common[used] = '\0';
}

static uint32_t
histogram_count(const struct tnd_stats_kind_entry *kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < kind->field_count; i++)
        count += kind->fields[i].type == TND_STATS_HISTOGRAM;
    return count;
}

static void
close_set(struct job_set *set)
{
    free(set->kind);
    free(set->values);
    free(set->histograms);
    free(set);
}

static struct job_set *
open_set(const struct tnd_stats_kind_entry *kind, const char *labels)
{
    size_t kind_bytes = sizeof *kind + kind->field_count * sizeof *kind->fields;
    struct job_set *set = calloc(1, sizeof *set);

    if (set == NULL)
        return NULL;
    snprintf(set->labels, sizeof set->labels, "%s", labels);
    set->kind = malloc(kind_bytes);
    set->values = calloc(kind->field_count + 1, sizeof *set->values);
    set->histograms = calloc(histogram_count(kind) + 1, sizeof *set->histograms);
    if (set->kind == NULL || set->values == NULL || set->histograms == NULL) {
        close_set(set);
        return NULL;
    }
    memcpy(set->kind, kind, kind_bytes);
    return set;
}

/* A server of another version may have other fields. */
static bool
is_alike(const struct tnd_stats_kind_entry *one, const struct tnd_stats_kind_entry *other)
{
    return one == other ||
           (one->field_count == other->field_count &&
            memcmp(one->fields, other->fields, one->field_count * sizeof *one->fields) == 0);
}

static bool
is_wanted(const struct job *job, uint32_t number, const char *kind, const char *labels)
{
    return number < job->count && strcmp(job->sets[number]->labels, labels) == 0 &&
           strcmp(job->sets[number]->kind->name, kind) == 0;
}

/* The number of a set, or the count of all. */
static uint32_t
find(const struct job *job, const char *kind, const char *labels)
{
    uint32_t number = 0;

    if (is_wanted(job, job->last, kind, labels))
        return job->last;
    if (is_wanted(job, job->last + 1, kind, labels))
        return job->last + 1;
    while (number < job->count && !is_wanted(job, number, kind, labels))
        number++;
    return number;
}

/* The set of the job that this one counts in; NULL: it is left out. */
static struct job_set *
find_or_add(struct job *job, const struct watch_set *set)
{
    char labels[TND_STATS_LABEL_BYTES];

    common_labels(set->labels, labels);
    job->last = find(job, set->kind->name, labels);
    if (job->last < job->count)
        return is_alike(job->sets[job->last]->kind, set->kind) ? job->sets[job->last] : NULL;
    if (job->count == JOB_SETS)
        return NULL;
    job->sets[job->count] = open_set(set->kind, labels);
    return job->sets[job->count] != NULL ? job->sets[job->count++] : NULL;
}

static uint64_t
growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void
add_histogram(struct watch_histogram *sum, const struct watch_histogram *then,
              const struct watch_histogram *now)
{
    static const struct watch_histogram none = { 0 };

    then = then != NULL ? then : &none;
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++)
        sum->buckets[i] += growth(then->buckets[i], now->buckets[i]);
    sum->sum_ns += growth(then->sum_ns, now->sum_ns);
}

/* `then`: the same set before, or NULL. */
static void
add(struct job_set *sum, const struct watch_set *then, const struct watch_set *now)
{
    uint32_t histogram = 0;

    for (uint32_t i = 0; i < now->kind->field_count; i++) {
        uint32_t type = now->kind->fields[i].type;

        if (type == TND_STATS_GAUGE) {
            sum->values[i] = now->values[i] > sum->values[i] ? now->values[i] : sum->values[i];
        } else if (type == TND_STATS_HISTOGRAM) {
            add_histogram(&sum->histograms[histogram],
                          then != NULL ? &then->histograms[histogram] : NULL,
                          &now->histograms[histogram]);
            histogram++;
        } else {
            sum->values[i] += growth(then != NULL ? then->values[i] : 0, now->values[i]);
        }
    }
}

void
job_begin(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct job_set *set = job->sets[i];

        set->is_there = false;
        for (uint32_t field = 0; field < set->kind->field_count; field++)
            if (set->kind->fields[field].type == TND_STATS_GAUGE)
                set->values[field] = 0;
    }
}

void
job_note(struct job *job, const struct watch_snapshot *before, const struct watch_snapshot *now)
{
    for (uint32_t i = 0; i < now->set_count; i++) {
        const struct watch_set *set = &now->sets[i];
        const struct watch_set *then = before != NULL ? watch_again(before, set) : NULL;
        struct job_set *sum = find_or_add(job, set);

        if (sum == NULL)
            continue;
        add(sum, then != NULL && is_alike(then->kind, set->kind) ? then : NULL, set);
        sum->is_there = true;
    }
}

/* A series that no node has any more has ended, as a series of a node's does. */
void
job_end(struct job *job)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < job->count; i++)
        if (job->sets[i]->is_there)
            job->sets[kept++] = job->sets[i];
        else
            close_set(job->sets[i]);
    job->count = kept;
}

void
job_close(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        close_set(job->sets[i]);
    *job = (struct job){ 0 };
}
