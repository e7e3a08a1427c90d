/* report.c - a server's state as JSON. */
#include "watch/report.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"

const char *
watch_state_name(const struct watch_snapshot *snapshot)
{
    static const char *const names[] = { "starting", "serving", "draining", "stopped" };
    uint32_t state = tnd_stats_get_state(snapshot->copy.header);

    return state < 4 ? names[state] : "?";
}

static double
in_unit(const struct tnd_stats_field *field, uint64_t value)
{
    return field->unit == TND_STATS_SECONDS ? (double)value / 1e9 : (double)value;
}

static void
key_of(const struct tnd_stats_field *field, const char *suffix, char key[64])
{
    static const char *const units[] = { "", "_seconds", "_bytes" };

    snprintf(key, 64, "%.31s%s%s", field->name, field->unit < 3 ? units[field->unit] : "", suffix);
}

static void
write_number(struct json *json, const struct tnd_stats_field *field, uint64_t value)
{
    if (field->unit == TND_STATS_SECONDS)
        json_float(json, in_unit(field, value), 9);
    else
        json_uint(json, value);
}

static void
write_rate(struct json *json, const struct watch_snapshot *before, const struct watch_snapshot *now,
           const struct watch_set *set, const struct tnd_stats_field *field)
{
    double passed_s = (double)(now->taken_ns - before->taken_ns) / 1e9;
    double growth = in_unit(field, watch_growth(before, set, field->name));
    char key[64];

    snprintf(key, sizeof key, "%.31s_rate", field->name);
    json_key(json, key);
    json_float(json, passed_s > 0 ? growth / passed_s : 0, 9);
}

static void
write_quantile(struct json *json, const char *key, double share,
               const struct watch_histogram *grown)
{
    json_key(json, key);
    json_float(json, (double)watch_quantile_ns(grown, share) / 1e9, 9);
}

/* Counts since the start; quantiles of what came between the two snapshots, 0 if nothing did. */
static void
write_histogram(struct json *json, const struct tnd_stats_field *field,
                const struct watch_histogram *histogram, const struct watch_histogram *grown)
{
    char key[64];

    key_of(field, "", key);
    json_key(json, key);
    json_object(json);
    json_key(json, "sum");
    json_float(json, (double)histogram->sum_ns / 1e9, 9);
    json_key(json, "counts");
    json_array(json);
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++)
        json_uint(json, histogram->buckets[i]);
    json_array_end(json);
    write_quantile(json, "p50", 0.5, grown);
    write_quantile(json, "p99", 0.99, grown);
    json_object_end(json);
}

static void
write_label(struct json *json, const struct watch_set *set, const char *key)
{
    char value[TND_STATS_LABEL_BYTES];

    watch_label(set, key, value, sizeof value);
    if (value[0] != '\0')
        json_key_text(json, key, value);
}

/* Labels and fields, into an object that is open. */
static void
write_set(struct json *json, const struct watch_snapshot *before, const struct watch_snapshot *now,
          const struct watch_set *set)
{
    static const char *const keys[] = { "stream",     "session", "group",  "replica", "thread",
                                        "stage",      "node",    "line",   "part",    "vocabulary",
                                        "codec",      "asked",   "how",    "why",     "mode",
                                        "on_devices", "store",   "object", "helper",  "process",
                                        "command",    "call",    "column" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        write_label(json, set, keys[i]);
    for (uint32_t i = 0; i < set->kind->field_count; i++) {
        const struct tnd_stats_field *field = &set->kind->fields[i];
        char key[64];

        if (field->type == TND_STATS_HISTOGRAM) {
            struct watch_histogram grown = { 0 };

            watch_observed(before, set, field->name, &grown);
            write_histogram(json, field, watch_histogram_of(set, i), &grown);
            continue;
        }
        key_of(field, "", key);
        json_key(json, key);
        write_number(json, field, set->values[i]);
        if (field->type == TND_STATS_COUNTER)
            write_rate(json, before, now, set, field);
    }
}

/* All sets of a kind, of one session if that is given. */
static void
write_sets(struct json *json, const struct watch_snapshot *before, const struct watch_snapshot *now,
           const char *kind, const struct watch_set *session, const char *key)
{
    const struct watch_set *set = NULL;

    json_key(json, key);
    json_array(json);
    while ((set = watch_next(now, kind, set)) != NULL) {
        if (session != NULL && !watch_is_of(set, session))
            continue;
        json_object(json);
        write_set(json, before, now, set);
        json_object_end(json);
    }
    json_array_end(json);
}

void
watch_report_verdict(const struct watch_diagnosis *diagnosis, struct json *json)
{
    json_key(json, "verdict");
    json_object(json);
    json_key_text(json, "level", watch_level_name(diagnosis->level));
    json_key_text(json, "cause", watch_cause_name(diagnosis->cause));
    json_key_text(json, "stream", diagnosis->stream);
    json_key_text(json, "culprit", diagnosis->culprit);
    json_key(json, "wait_share");
    json_float(json, diagnosis->wait_share, 9);
    json_key(json, "share");
    json_float(json, diagnosis->share, 9);
    json_key_text(json, "sentence", diagnosis->sentence);
    json_key_text(json, "advice", diagnosis->advice);
    json_object_end(json);
}

/* Where the pipeline file is, and the folders that the server was told; null: none. */
static void
write_paths(struct json *json, const struct watch_snapshot *now)
{
    static const char *const names[] = { "file", "root", "analysis" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tnd_stats_text_entry *path = watch_text(now, names[i], "");

        json_key(json, names[i]);
        if (path != NULL)
            json_text(json, path->text);
        else
            json_null(json);
    }
}

static void
write_server(struct json *json, const struct watch_snapshot *before,
             const struct watch_snapshot *now)
{
    const struct tnd_stats_header *header = now->copy.header;
    const struct watch_set *server = watch_next(now, "server", NULL);

    json_key(json, "server");
    json_object(json);
    json_key_text(json, "host", header->node);
    json_key_text(json, "version", header->version);
    json_key_int(json, "process", header->process);
    json_key_text(json, "state", watch_state_name(now));
    json_key_bool(json, "alive", tnd_stats_is_alive(&now->copy));
    write_paths(json, now);
    json_key(json, "started_unix");
    json_float(json, (double)header->started_wall_ns / 1e9, 17);
    json_key(json, "uptime_seconds");
    json_float(json, ((double)tnd_clock_wall_ns() - (double)header->started_wall_ns) / 1e9, 9);
    if (server != NULL)
        write_set(json, before, now, server);
    json_object_end(json);
}

/* The verdict on the server is that on one of its streams, which says the same. */
static void
write_stream(struct json *json, const struct watch_snapshot *before,
             const struct watch_snapshot *now, const struct watch_set *stream,
             const struct watch_diagnosis *verdict)
{
    struct watch_diagnosis diagnosis;

    watch_diagnose_stream(before, now, stream, &diagnosis);
    if (strcmp(diagnosis.stream, verdict->stream) == 0)
        diagnosis = *verdict;
    json_object(json);
    write_set(json, before, now, stream);
    watch_report_verdict(&diagnosis, json);
    write_sets(json, before, now, "thread", stream, "threads");
    write_sets(json, before, now, "helper", stream, "helpers");
    write_sets(json, before, now, "stage", stream, "stages");
    write_sets(json, before, now, "vocabulary", stream, "vocabularies");
    write_sets(json, before, now, "column", stream, "columns");
    write_sets(json, before, now, "lane", stream, "lanes");
    write_sets(json, before, now, "compression", stream, "compression");
    write_sets(json, before, now, "encoding", stream, "encodings");
    write_sets(json, before, now, "reader", stream, "readers");
    write_sets(json, before, now, "device", stream, "devices");
    write_sets(json, before, now, "group", stream, "groups");
    json_object_end(json);
}

static void
write_notes(struct json *json, const struct watch_snapshot *now)
{
    static const char *const levels[] = { "error", "warning", "notice" };
    struct watch_note notes[TND_STATS_NOTES];
    uint32_t count = watch_notes(now, 0, notes, TND_STATS_NOTES);

    json_key(json, "notes");
    json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        json_object(json);
        json_key_int(json, "number", (int64_t)notes[i].number);
        json_key(json, "time_unix");
        json_float(json, (double)notes[i].wall_ns / 1e9, 17);
        json_key_text(json, "level", notes[i].level < 3 ? levels[notes[i].level] : "?");
        json_key(json, "text");
        json_bytes(json, bytes_of_text(notes[i].text));
        json_object_end(json);
    }
    json_array_end(json);
}

void
watch_report(const struct watch_snapshot *before, const struct watch_snapshot *now,
             const struct watch_diagnosis *verdict, struct json *json)
{
    const struct watch_set *stream = NULL;

    json_object(json);
    json_key(json, "window_seconds");
    json_float(json, (double)(now->taken_ns - before->taken_ns) / 1e9, 9);
    write_server(json, before, now);
    watch_report_verdict(verdict, json);
    json_key(json, "streams");
    json_array(json);
    while ((stream = watch_next(now, "stream", stream)) != NULL)
        write_stream(json, before, now, stream, verdict);
    json_array_end(json);
    write_sets(json, before, now, "link", NULL, "links");
    write_sets(json, before, now, "store", NULL, "stores");
    write_sets(json, before, now, "delay", NULL, "delays");
    write_sets(json, before, now, "python", NULL, "interpreters");
    write_sets(json, before, now, "rival", NULL, "rivals");
    write_notes(json, now);
    json_object_end(json);
}
