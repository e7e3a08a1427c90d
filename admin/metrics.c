/* metrics.c - metrics as Prometheus scrapes them.
 *
 * Names come from the descriptions beside the values: tundish_KIND_FIELD[_seconds|_bytes][_total]
 * of a node, tundish_job_KIND_FIELD... of all nodes together. The lines of a family must be
 * together, so each field in turn is written for all nodes. Series that all nodes have are left out
 * of a large job, so that the answer stays below two megabytes.
 */
#include "metrics.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/clock.h"
#include "metrics_family.h"

/* A job is large if the lines of all nodes are estimated to take more than this: of a line without
 * labels, LINE_BYTES. */
enum { NODES_BYTES = 1000000, LINE_BYTES = 80 };

static const struct watch_snapshot *
snapshot_of(const struct watcher *watcher, uint32_t node)
{
    const struct watcher_node *shown = watcher_node(watcher, node);

    return shown->there ? shown->now : NULL;
}

static uint64_t
lines_of(const struct tnd_stats_kind_entry *kind)
{
    uint64_t lines = 0;

    for (uint32_t i = 0; i < kind->field_count; i++)
        lines += kind->fields[i].type == TND_STATS_HISTOGRAM ? TND_STATS_BUCKETS + 2 : 1;
    return lines;
}

static bool
is_large(const struct watcher *watcher)
{
    uint64_t bytes = 0;

    for (uint32_t node = 0; node < watcher_node_count(watcher); node++) {
        const struct watch_snapshot *snapshot = snapshot_of(watcher, node);

        for (uint32_t i = 0; snapshot != NULL && i < snapshot->set_count; i++)
            bytes +=
                lines_of(snapshot->sets[i].kind) * (LINE_BYTES + strlen(snapshot->sets[i].labels));
    }
    return bytes > NODES_BYTES;
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
    struct metrics_family family;

    metrics_family_begin("", kind, field, "", &family, file);
    for (uint32_t node = 0; node < watcher_node_count(watcher); node++) {
        const struct watch_snapshot *snapshot = snapshot_of(watcher, node);
        const struct watch_set *set = NULL;

        while (snapshot != NULL && (set = watch_next(snapshot, kind->name, set)) != NULL)
            metrics_family_write_set(&family, watcher_node(watcher, node), set);
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

/* The job's sets of one kind lie anywhere among the others. */
static void
write_job_family(const struct job *job, const struct tnd_stats_kind_entry *kind, uint32_t field,
                 FILE *file)
{
    bool is_gauge = kind->fields[field].type == TND_STATS_GAUGE;
    struct metrics_family family;

    metrics_family_begin("job_", kind, field,
                         is_gauge ? " (the highest of all nodes)" : " (the sum of all nodes)",
                         &family, file);
    for (uint32_t i = 0; i < job->count; i++) {
        const struct job_set *set = job->sets[i];
        uint32_t histogram = 0;

        if (strcmp(set->kind->name, kind->name) != 0)
            continue;
        for (uint32_t before = 0; before < field; before++)
            histogram += kind->fields[before].type == TND_STATS_HISTOGRAM;
        metrics_family_write(
            &family, "", set->labels, set->values[field],
            kind->fields[field].type == TND_STATS_HISTOGRAM ? &set->histograms[histogram] : NULL);
    }
}

static bool
is_first_of_job(const struct job *job, uint32_t number)
{
    for (uint32_t i = 0; i < number; i++)
        if (strcmp(job->sets[i]->kind->name, job->sets[number]->kind->name) == 0)
            return false;
    return true;
}

static void
write_job(const struct job *job, FILE *file)
{
    for (uint32_t i = 0; i < job->count; i++)
        for (uint32_t field = 0; is_first_of_job(job, i) && field < job->sets[i]->kind->field_count;
             field++)
            write_job_family(job, job->sets[i]->kind, field, file);
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

/* The shares of the last seconds by which the verdict goes. */
static void
write_verdicts(const struct watcher *watcher, const char *name, const char *help,
               double (*value_of)(const struct watcher_node *), FILE *file)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (uint32_t i = 0; i < watcher_node_count(watcher); i++) {
        const struct watcher_node *node = watcher_node(watcher, i);
        char labels[METRICS_NODE_BYTES];

        if (!node->there)
            continue;
        metrics_node_labels(node, labels);
        fprintf(file, "%s{%s} %.4g\n", name, labels, value_of(node));
    }
}

static double
wait_share(const struct watcher_node *node)
{
    return node->diagnosis.wait_share;
}

static double
file_share(const struct watcher_node *node)
{
    return node->diagnosis.file_share;
}

static double
slowness(const struct watcher_node *node)
{
    return node->slowness;
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
    write_verdicts(watcher, "tundish_node_wait_ratio",
                   "of the last seconds, the share that the trainer waited that waits most",
                   wait_share, file);
    write_verdicts(watcher, "tundish_node_file_wait_ratio",
                   "of the time in which threads work, the share that they wait for files",
                   file_share, file);
    write_verdicts(watcher, "tundish_node_slowness_ratio",
                   "time for a row, of the median of the other nodes; 0: not known", slowness,
                   file);
}

void
metrics_write(const struct watcher *watcher, FILE *file)
{
    uint64_t left_out = 0;

    if (watcher_node_count(watcher) == 0) {
        write_unseen(file);
        return;
    }
    write_servers(watcher, file);
    write_job(watcher_job(watcher), file);
    if (is_large(watcher))
        left_out = metrics_large_write(watcher, file);
    else
        for (uint32_t node = 0; node < watcher_node_count(watcher); node++)
            write_kinds(watcher, node, file);
    fprintf(file,
            "# HELP tundish_sets_left_out sets of metrics of nodes that are not told one by one, "
            "because the job is large\n# TYPE tundish_sets_left_out gauge\n"
            "tundish_sets_left_out %" PRIu64 "\n",
            left_out);
}
