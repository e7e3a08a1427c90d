/* metrics_family.c - HELP, TYPE, base units, histograms with `le`. */
#include "metrics_family.h"

#include <inttypes.h>
#include <string.h>

void
metrics_family_begin(const char *scope, const struct tnd_stats_kind_entry *kind, uint32_t field,
                     const char *note, struct metrics_family *family, FILE *file)
{
    static const char *const units[] = { "", "_seconds", "_bytes" };
    static const char *const types[] = { "untyped", "counter", "gauge", "histogram" };
    const struct tnd_stats_field *about = &kind->fields[field];

    family->field = about;
    family->file = file;
    snprintf(family->name, sizeof family->name, "tundish_%s%.23s_%.31s%s%s", scope, kind->name,
             about->name, about->unit < 3 ? units[about->unit] : "",
             about->type == TND_STATS_COUNTER ? "_total" : "");
    fprintf(file, "# HELP %s %s: %s%s\n# TYPE %s %s\n", family->name, kind->help, about->help, note,
            family->name, types[about->type < 4 ? about->type : 0]);
}

void
metrics_node_labels(const struct watcher_node *node, char text[METRICS_NODE_BYTES])
{
    snprintf(text, METRICS_NODE_BYTES, "host=\"%.63s\",rank=\"%u\"", node->now->copy.header->node,
             node->rank);
}

/* {node,labels,extra}: each may be "". */
static void
write_labels(const char *node, const char *labels, const char *extra, FILE *file)
{
    const char *const parts[] = { node, labels, extra };
    const char *before = "{";

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i][0] == '\0')
            continue;
        fputs(before, file);
        fputs(parts[i], file);
        before = ",";
    }
    if (before[0] == ',')
        fputc('}', file);
}

static void
write_histogram(const struct metrics_family *family, const char *node, const char *labels,
                const struct watch_histogram *histogram)
{
    uint64_t below = 0;

    /* Prometheus' buckets are cumulative, and the last one has all observations. */
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++) {
        char bound[40];

        below += histogram->buckets[i];
        if (i + 1 < TND_STATS_BUCKETS)
            snprintf(bound, sizeof bound, "le=\"%.9g\"", (double)tnd_stats_bucket_ns(i) / 1e9);
        else
            snprintf(bound, sizeof bound, "le=\"+Inf\"");
        fprintf(family->file, "%s_bucket", family->name);
        write_labels(node, labels, bound, family->file);
        fprintf(family->file, " %" PRIu64 "\n", below);
    }
    fprintf(family->file, "%s_sum", family->name);
    write_labels(node, labels, "", family->file);
    fprintf(family->file, " %.9g\n%s_count", (double)histogram->sum_ns / 1e9, family->name);
    write_labels(node, labels, "", family->file);
    fprintf(family->file, " %" PRIu64 "\n", below);
}

void
metrics_family_write(const struct metrics_family *family, const char *node, const char *labels,
                     uint64_t value, const struct watch_histogram *histogram)
{
    if (histogram != NULL) {
        write_histogram(family, node, labels, histogram);
        return;
    }
    fputs(family->name, family->file);
    write_labels(node, labels, "", family->file);
    /* Times are kept in nanoseconds; Prometheus wants base units. */
    if (family->field->unit == TND_STATS_SECONDS)
        fprintf(family->file, " %.17g\n", (double)value / 1e9);
    else
        fprintf(family->file, " %" PRIu64 "\n", value);
}

void
metrics_family_write_set(const struct metrics_family *family, const struct watcher_node *node,
                         const struct watch_set *set)
{
    const struct tnd_stats_kind_entry *kind = set->kind;
    char labels[METRICS_NODE_BYTES];
    uint32_t field = 0;

    /* Nodes may run servers of different versions, whose kinds have other fields. */
    while (field < kind->field_count &&
           (strcmp(kind->fields[field].name, family->field->name) != 0 ||
            kind->fields[field].type != family->field->type))
        field++;
    if (field == kind->field_count)
        return;
    metrics_node_labels(node, labels);
    metrics_family_write(
        family, labels, set->labels, set->values[field],
        kind->fields[field].type == TND_STATS_HISTOGRAM ? watch_histogram_of(set, field) : NULL);
}
