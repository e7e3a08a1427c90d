/* metrics.c - metrics as Prometheus scrapes them: HELP, TYPE, base units, histograms with `le`.
 *
 * Names come from the descriptions beside the values: tundish_KIND_FIELD[_seconds|_bytes][_total].
 * The lines of a family must be together, so each field in turn is written for all nodes.
 */
#include "metrics.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/clock.h"

/* Times are kept in nanoseconds; Prometheus wants base units. */
static double
in_unit(const struct tnd_stats_field *field, uint64_t value)
{
    return field->unit == TND_STATS_SECONDS ? (double)value / 1e9 : (double)value;
}

static void
name_of(const struct tnd_stats_kind_entry *kind, const struct tnd_stats_field *field,
        char name[128])
{
    static const char *const units[] = { "", "_seconds", "_bytes" };

    snprintf(name, 128, "tundish_%.23s_%.31s%s%s", kind->name, field->name,
             field->unit < 3 ? units[field->unit] : "",
             field->type == TND_STATS_COUNTER ? "_total" : "");
}

/* "a node's labels, then the set's", with room for one more. */
static void
write_labels(const struct watch_snapshot *snapshot, uint32_t rank, const struct watch_set *set,
             const char *extra, FILE *file)
{
    fprintf(file, "{host=\"%s\",rank=\"%u\"%s%s%s}", snapshot->copy.header->node, rank,
            set->labels[0] != '\0' ? "," : "", set->labels, extra);
}

static void
write_histogram(const struct watch_snapshot *snapshot, uint32_t rank, const struct watch_set *set,
                const char *name, const struct watch_histogram *histogram, FILE *file)
{
    uint64_t below = 0;

    /* Prometheus' buckets are cumulative, and the last one has all observations. */
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++) {
        char bound[40];

        below += histogram->buckets[i];
        if (i + 1 < TND_STATS_BUCKETS)
            snprintf(bound, sizeof bound, ",le=\"%.9g\"", (double)tnd_stats_bucket_ns(i) / 1e9);
        else
            snprintf(bound, sizeof bound, ",le=\"+Inf\"");
        fprintf(file, "%s_bucket", name);
        write_labels(snapshot, rank, set, bound, file);
        fprintf(file, " %" PRIu64 "\n", below);
    }
    fprintf(file, "%s_sum", name);
    write_labels(snapshot, rank, set, "", file);
    fprintf(file, " %.9g\n%s_count", (double)histogram->sum_ns / 1e9, name);
    write_labels(snapshot, rank, set, "", file);
    fprintf(file, " %" PRIu64 "\n", below);
}

static void
write_value(const struct watch_snapshot *snapshot, uint32_t rank, const struct watch_set *set,
            uint32_t field, const char *name, FILE *file)
{
    const struct tnd_stats_field *about = &set->kind->fields[field];

    if (about->type == TND_STATS_HISTOGRAM) {
        write_histogram(snapshot, rank, set, name, &set->histograms[field], file);
        return;
    }
    fputs(name, file);
    write_labels(snapshot, rank, set, "", file);
    fprintf(file, " %.17g\n", in_unit(about, set->values[field]));
}

static const struct watch_snapshot *
snapshot_of(const struct watcher *watcher, uint32_t node)
{
    const struct watcher_node *shown = watcher_node(watcher, node);

    return shown->there ? shown->now : NULL;
}

/* Is this the first node that has such a set? */
static bool
is_first(const struct watcher *watcher, uint32_t node, const char *kind)
{
    for (uint32_t i = 0; i < node; i++)
        if (snapshot_of(watcher, i) != NULL &&
            watch_next(snapshot_of(watcher, i), kind, NULL) != NULL)
            return false;
    return true;
}

static void
write_family(const struct watcher *watcher, const struct tnd_stats_kind_entry *kind, uint32_t field,
             FILE *file)
{
    static const char *const types[] = { "untyped", "counter", "gauge", "histogram" };
    const struct tnd_stats_field *about = &kind->fields[field];
    char name[128];

    name_of(kind, about, name);
    fprintf(file, "# HELP %s %s: %s\n# TYPE %s %s\n", name, kind->help, about->help, name,
            types[about->type < 4 ? about->type : 0]);
    for (uint32_t node = 0; node < watcher_node_count(watcher); node++) {
        const struct watch_snapshot *snapshot = snapshot_of(watcher, node);
        const struct watch_set *set = NULL;

        while (snapshot != NULL && (set = watch_next(snapshot, kind->name, set)) != NULL)
            /* Nodes may run servers of different versions, whose kinds have other fields at this
             * number. */
            if (field < set->kind->field_count &&
                strcmp(set->kind->fields[field].name, about->name) == 0)
                write_value(snapshot, watcher_node(watcher, node)->rank, set, field, name, file);
    }
}

/* A kind is written where its first set is met. */
static void
write_kinds(const struct watcher *watcher, uint32_t node, FILE *file)
{
    const struct watch_snapshot *snapshot = snapshot_of(watcher, node);

    for (uint32_t i = 0; snapshot != NULL && i < snapshot->set_count; i++) {
        const struct tnd_stats_kind_entry *kind = snapshot->sets[i].kind;

        if (watch_next(snapshot, kind->name, NULL) != &snapshot->sets[i] ||
            !is_first(watcher, node, kind->name))
            continue;
        for (uint32_t field = 0; field < kind->field_count; field++)
            write_family(watcher, kind, field, file);
    }
}

static const char up_help[] = "1: the node's server is alive; 0: it is not, or was never seen";

/* A figure of each node's server, under the labels that all of these have in common. */
static void
write_about(const struct watcher *watcher, const char *name, const char *help,
            double (*value_of)(const struct watch_snapshot *), FILE *file)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watch_snapshot *snapshot = snapshot_of(watcher, i);

        if (snapshot != NULL)
            fprintf(file, "%s{host=\"%s\",rank=\"%u\",version=\"%s\"} %.9g\n", name,
                    snapshot->copy.header->node, watcher_node(watcher, i)->rank,
                    snapshot->copy.header->version, value_of(snapshot));
    }
}

static double
is_up(const struct watch_snapshot *snapshot)
{
    return tnd_stats_is_alive(&snapshot->copy);
}

static double
is_finished(const struct watch_snapshot *snapshot)
{
    return watch_is_finished(snapshot);
}

/* Measured here, so that an alert need not look at several scrapes. */
static double
silent_s(const struct watch_snapshot *snapshot)
{
    return (double)watch_silent_ns(snapshot, tnd_clock_ns()) / 1e9;
}

static void
write_restarts(const struct watcher *watcher, FILE *file)
{
    fputs("# HELP tundish_restarts_total restarts of the server, as seen by tundish-admin\n"
          "# TYPE tundish_restarts_total counter\n",
          file);
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++)
        if (snapshot_of(watcher, i) != NULL)
            fprintf(file, "tundish_restarts_total{host=\"%s\",rank=\"%u\"} %" PRIu64 "\n",
                    snapshot_of(watcher, i)->copy.header->node, watcher_node(watcher, i)->rank,
                    watcher_node(watcher, i)->restarts);
}

/* Without this line an alert on tundish_up == 0 would not fire before the first server started. */
static void
write_unseen(FILE *file)
{
    struct utsname machine = { 0 };

    uname(&machine);
    fprintf(file,
            "# HELP tundish_up %s\n# TYPE tundish_up gauge\n"
            "tundish_up{host=\"%s\",rank=\"0\",version=\"\"} 0\n",
            up_help, machine.nodename);
}

static void
write_servers(const struct watcher *watcher, FILE *file)
{
    write_about(watcher, "tundish_up", up_help, is_up, file);
    write_about(watcher, "tundish_finished", "1: the server was stopped normally", is_finished,
                file);
    write_about(watcher, "tundish_server_silent_seconds",
                "time since the server's last sign of life; 0 after it has stopped", silent_s,
                file);
    write_restarts(watcher, file);
}

void
metrics_write(const struct watcher *watcher, FILE *file)
{
    if (watcher_node_count(watcher) == 0) {
        write_unseen(file);
        return;
    }
    write_servers(watcher, file);
    for (uint32_t node = 0; node < watcher_node_count(watcher); node++)
        write_kinds(watcher, node, file);
}
