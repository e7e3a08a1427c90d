/* metrics_large.c - the figures that alerts ask for, and the trainers that wait most. */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_family.h"

/* TRAINERS trainers are told of: those that waited most in OF_LATE_S seconds, or stand still. */
enum { TRAINERS = 128, OF_LATE_S = 300 };
static const double STANDS_NS = 120e9; /* as in alerts.yml */

static const struct {
    const char *kind, *field;
} of_every_node[] = {
    { "server", "cpu" },
    { "server", "run_delay" },
    { "server", "throttled" },
    { "server", "memory_stalled" },
    { "server", "resident_memory" },
    { "server", "disk_full" },
    { "stream", "rows" },
    { "stream", "rows_skipped" },
    { "stream", "trainers_lost" },
    { "stream", "groups_lost" },
    { "stream", "failed" },
    { "link", "wait" },
    { "link", "failed" },
};

static const char note_on_nodes[] = " (in a large job: for every node)";
static const char note_on_trainers[] =
    " (in a large job: of the 128 trainers that waited most in the last 5 minutes)";

static uint32_t
find_field(const struct tnd_stats_kind_entry *kind, const char *name)
{
    uint32_t field = 0;

    while (field < kind->field_count && strcmp(kind->fields[field].name, name) != 0)
        field++;
    return field;
}

/* The kind as the first node that has it describes it. */
static const struct tnd_stats_kind_entry *
find_kind(const struct watcher *watcher, const char *name)
{
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watcher_node *node = watcher_node(watcher, i);
        const struct watch_set *set = node->there ? watch_next(node->now, name, NULL) : NULL;

        if (set != NULL)
            return set->kind;
    }
    return NULL;
}

static void
write_of_every_node(const struct watcher *watcher, const char *name, const char *field, FILE *file)
{
    const struct tnd_stats_kind_entry *kind = find_kind(watcher, name);
    struct metrics_family family;
    uint32_t number = kind != NULL ? find_field(kind, field) : 0;

    if (kind == NULL || number == kind->field_count)
        return;
    metrics_family_begin("", kind, number, note_on_nodes, &family, file);
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watcher_node *node = watcher_node(watcher, i);
        const struct watch_set *set = NULL;

        while (node->there && (set = watch_next(node->now, name, set)) != NULL)
            metrics_family_write_set(&family, node, set);
    }
}

struct trainer {
    const struct watcher_node *node;
    const struct watch_set *set;
    double matters; /* the share of its time that it waits, or how long it stands */
};

/* Its waits of late, rather than now: so it is told of as long as an alert needs. */
static double
matters(const struct watcher *watcher, const struct watcher_node *node, const struct watch_set *set)
{
    const struct history_series *waits;
    char name[HISTORY_NAME_BYTES];
    double stands = (double)watch_value(set, "silent") / STANDS_NS;

    snprintf(name, sizeof name, "%u|wait|%s", node->rank, set->labels);
    waits = history_find(watcher_history(watcher), name);
    if (watch_value(set, "attached") == 0 ||
        watch_value(set, "released") >= watch_value(set, "published"))
        stands = 0;
    return fmax(fmin(1, stands),
                waits != NULL ? history_mean(watcher_history(watcher), waits, OF_LATE_S) : 0);
}

static int
most_first(const void *one, const void *other)
{
    const struct trainer *a = one, *b = other;

    return (b->matters > a->matters) - (b->matters < a->matters);
}

/* Fills in the trainers that matter most; returns how many there are. */
static uint32_t
find_trainers(const struct watcher *watcher, struct trainer trainers[TRAINERS])
{
    struct trainer *all = NULL;
    uint32_t count = 0, room = 0;

    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watcher_node *node = watcher_node(watcher, i);
        const struct watch_set *set = NULL;

        while (node->there && (set = watch_next(node->now, "reader", set)) != NULL) {
            if (count == room) {
                struct trainer *more = realloc(all, (room + 4096) * sizeof *more);

                if (more == NULL)
                    break;
                all = more;
                room += 4096;
            }
            all[count++] = (struct trainer){ node, set, matters(watcher, node, set) };
        }
    }
    if (all != NULL)
        qsort(all, count, sizeof *all, most_first);
    count = count < TRAINERS ? count : TRAINERS;
    for (uint32_t i = 0; i < count; i++)
        trainers[i] = all[i];
    free(all);
    return count;
}

static void
write_trainers(const struct watcher *watcher, FILE *file)
{
    const struct tnd_stats_kind_entry *kind = find_kind(watcher, "reader");
    struct trainer trainers[TRAINERS];
    uint32_t count = find_trainers(watcher, trainers);

    for (uint32_t field = 0; kind != NULL && field < kind->field_count; field++) {
        struct metrics_family family;

        if (kind->fields[field].type == TND_STATS_HISTOGRAM)
            continue;
        metrics_family_begin("", kind, field, note_on_trainers, &family, file);
        for (uint32_t i = 0; i < count; i++)
            metrics_family_write_set(&family, trainers[i].node, trainers[i].set);
    }
}

static bool
is_told(const struct watch_set *set)
{
    for (size_t i = 0; i < sizeof of_every_node / sizeof *of_every_node; i++)
        if (strcmp(of_every_node[i].kind, set->kind->name) == 0)
            return true;
    return false;
}

uint64_t
metrics_large_write(const struct watcher *watcher, FILE *file)
{
    uint64_t left_out = 0, readers = 0;

    for (size_t i = 0; i < sizeof of_every_node / sizeof *of_every_node; i++)
        write_of_every_node(watcher, of_every_node[i].kind, of_every_node[i].field, file);
    write_trainers(watcher, file);
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watcher_node *node = watcher_node(watcher, i);

        for (uint32_t number = 0; node->there && number < node->now->set_count; number++) {
            const struct watch_set *set = &node->now->sets[number];

            if (strcmp(set->kind->name, "reader") == 0)
                readers++;
            else
                left_out += !is_told(set);
        }
    }
    return left_out + (readers > TRAINERS ? readers - TRAINERS : 0);
}
