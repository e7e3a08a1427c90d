/* command_trace.c - `tundish trace`: what each thread of a running server did, for Perfetto or
 * Chrome.
 *
 * Threads always write their last events to the file of metrics, and this command collects them
 * while it runs. The server does nothing for it and does not notice it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/options.h"
#include "commands/status_view.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/plural.h"
#include "core/status.h"

enum { TRACKS_MAX = 1024, OVERWRITTEN_MAX = TND_STATS_EVENTS / 4 };

static const struct timespec POLL = { .tv_nsec = 20000000 };

/* How often servers look at their lanes and trainers. */
static const int64_t LANES_NS = 100000000;

struct trace {
    struct tnd_stats_file file; /* with a copy, for the names of stages */
    int64_t began_ns;
    uint32_t track_count;
    uint64_t seen[TRACKS_MAX]; /* events of the k-th track ever made; the first track is the last in
                                  the file */
    uint64_t events, lost;
    struct tnd_stats_file lanes_file; /* opened separately, because its copies are taken away */
    struct watch_snapshot lanes;      /* the last ones; zeros at first */
    struct json json;
};

/* The stage whose set is at this offset. */
static void
name_of(const struct trace *trace, uint64_t what, char name[64])
{
    static const char *const doings[] = {
        "?", "part", "wait for slots", "wait for order", "deal a step", "wait for steps to go"
    };

    snprintf(name, 64, "%s", what < TND_STATS_DOINGS ? doings[what] : "stage");
    if (what < TND_STATS_DOINGS)
        return;
    for (const struct tnd_stats_entry *entry = tnd_stats_next(&trace->file, NULL); entry != NULL;
         entry = tnd_stats_next(&trace->file, entry))
        if ((uint64_t)((const char *)entry - (const char *)trace->file.header) == what &&
            tnd_stats_kind_of(&trace->file, entry) != NULL) {
            struct watch_set set = { .labels =
                                         ((const struct tnd_stats_set_entry *)entry)->labels };

            watch_label(&set, "stage", name, 64);
            return;
        }
}

/* Write an arrow from the deal of a step to each part that is made of it. */
static void
write_flow(struct trace *trace, const char *phase, uint64_t at_ns, uint64_t step, uint32_t thread)
{
    json_object(&trace->json);
    json_key_text(&trace->json, "name", "step");
    json_key_text(&trace->json, "cat", "step");
    json_key_text(&trace->json, "ph", phase);
    json_key_int(&trace->json, "id", (int64_t)step);
    json_key(&trace->json, "ts");
    json_float(&trace->json, (double)(at_ns - (uint64_t)trace->began_ns) / 1e3, 17);
    json_key_int(&trace->json, "pid", trace->file.header->process);
    json_key_int(&trace->json, "tid", thread);
    json_object_end(&trace->json);
}

static void
write_event(struct trace *trace, const struct tnd_stats_event *event, uint32_t thread)
{
    /* The server may be writing the event at this moment. Such an event is skipped. */
    uint64_t begin_ns = tnd_stats_get(&event->begin_ns), end_ns = tnd_stats_get(&event->end_ns);
    uint64_t what = tnd_stats_get(&event->what);
    char name[64];

    /* An event that began before the trace would have a negative time. */
    if (begin_ns < (uint64_t)trace->began_ns || end_ns < begin_ns)
        return;
    name_of(trace, what, name);
    json_object(&trace->json);
    json_key_text(&trace->json, "name", name);
    json_key_text(&trace->json, "cat", what < TND_STATS_DOINGS ? "thread" : "stage");
    /* Complete events ("X") have a begin and a duration, in microseconds. */
    json_key_text(&trace->json, "ph", "X");
    json_key(&trace->json, "ts");
    json_float(&trace->json, (double)(begin_ns - (uint64_t)trace->began_ns) / 1e3, 17);
    json_key(&trace->json, "dur");
    json_float(&trace->json, (double)(end_ns - begin_ns) / 1e3, 17);
    json_key_int(&trace->json, "pid", trace->file.header->process);
    json_key_int(&trace->json, "tid", thread);
    json_key(&trace->json, "args");
    json_object(&trace->json);
    json_key_int(&trace->json, what < TND_STATS_DOINGS ? "step" : "rows",
                 (int64_t)tnd_stats_get(&event->detail));
    json_object_end(&trace->json);
    json_object_end(&trace->json);
    trace->events++;
    if (what == TND_STATS_DEALS)
        write_flow(trace, "s", begin_ns, tnd_stats_get(&event->detail), thread);
    if (what == TND_STATS_MAKES_PART)
        write_flow(trace, "t", begin_ns, tnd_stats_get(&event->detail), thread);
}

static void
write_thread_name(struct trace *trace, const struct tnd_stats_track_entry *track, uint32_t thread)
{
    char name[TND_STATS_VALUE_BYTES + 40];

    snprintf(name, sizeof name, "%s: %s", track->stream, track->thread);
    json_object(&trace->json);
    json_key_text(&trace->json, "name", "thread_name");
    json_key_text(&trace->json, "ph", "M");
    json_key_int(&trace->json, "pid", trace->file.header->process);
    json_key_int(&trace->json, "tid", thread);
    json_key(&trace->json, "args");
    json_object(&trace->json);
    json_key_text(&trace->json, "name", name);
    json_object_end(&trace->json);
    json_object_end(&trace->json);
}

/* Write the new events of a track. The server may have overwritten the oldest ones while the copy
 * was taken, so only part of the ring is used. */
static void
collect_track(struct trace *trace, const struct tnd_stats_track_entry *track, uint32_t number,
              bool is_first_look)
{
    uint64_t written = tnd_stats_get(&track->written);
    uint64_t kept = TND_STATS_EVENTS - OVERWRITTEN_MAX;
    uint64_t from = trace->seen[number];

    /* At the first look everything counts as seen: a trace begins when it is asked for. */
    if (!is_first_look && written > kept && from < written - kept) {
        trace->lost += written - kept - from;
        from = written - kept;
    }
    for (; !is_first_look && from < written; from++)
        write_event(trace, &track->events[from % TND_STATS_EVENTS], number);
    trace->seen[number] = written;
}

static tundish_status
collect(struct trace *trace, bool is_first_look)
{
    struct tnd_stats_track_entry *tracks;
    uint32_t count;
    tundish_status status = tnd_stats_read(&trace->file);

    if (status == TUNDISH_OK)
        status = tnd_stats_read_tracks(&trace->file, &tracks, &count);
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t k = 0; k < count && k < TRACKS_MAX; k++) {
        /* Tracks are linked with the newest first, and numbered from the oldest. */
        const struct tnd_stats_track_entry *track = &tracks[count - 1 - k];

        /* Threads may start while the trace runs, with a new session. */
        if (k >= trace->track_count) {
            write_thread_name(trace, track, k);
            trace->track_count = k + 1;
        }
        collect_track(trace, track, k, is_first_look);
    }
    free(tracks);
    return TUNDISH_OK;
}

static void
begin_counter(struct trace *trace, const struct watch_snapshot *now, const struct watch_set *set,
              const char *what)
{
    char stream[TND_STATS_VALUE_BYTES], group[TND_STATS_VALUE_BYTES], replica[16];
    char name[2 * TND_STATS_VALUE_BYTES + 80];

    watch_label(set, "stream", stream, sizeof stream);
    watch_label(set, "group", group, sizeof group);
    watch_label(set, "replica", replica, sizeof replica);
    snprintf(name, sizeof name, "%s: %s%sreplica %s %s", stream, group, group[0] != '\0' ? " " : "",
             replica, what);
    json_object(&trace->json);
    json_key_text(&trace->json, "name", name);
    json_key_text(&trace->json, "ph", "C");
    json_key(&trace->json, "ts");
    json_float(&trace->json, (double)(now->taken_ns - trace->began_ns) / 1e3, 17);
    json_key_int(&trace->json, "pid", now->copy.header->process);
    json_key(&trace->json, "args");
    json_object(&trace->json);
}

static void
end_counter(struct trace *trace)
{
    json_object_end(&trace->json);
    json_object_end(&trace->json);
}

static void
write_lanes(struct trace *trace, const struct watch_snapshot *now)
{
    const struct watch_set *set = NULL;
    double passed_ns = (double)(now->taken_ns - trace->lanes.taken_ns);

    while ((set = watch_next(now, "reader", set)) != NULL) {
        /* As status and the page have it. A lane's own figures are of the slowest of its readers,
         * and keep what any other replica has not given back. */
        begin_counter(trace, now, set, "slots");
        json_key_int(&trace->json, "with the trainer",
                     (int64_t)(watch_value(set, "taken") - watch_value(set, "released")));
        json_key_int(&trace->json, "ready",
                     (int64_t)(watch_value(set, "published") - watch_value(set, "taken")));
        end_counter(trace);
    }
    while (trace->lanes.sets != NULL && (set = watch_next(now, "reader", set)) != NULL) {
        /* A reader that waits in one call over several looks adds it all at the end, so a share may
         * exceed 1. */
        double share = (double)watch_growth(&trace->lanes, set, "wait") / passed_ns;

        begin_counter(trace, now, set, "waits");
        json_key(&trace->json, "percent");
        json_float(&trace->json, share < 1 ? 100 * share : 100, 4);
        end_counter(trace);
    }
}

/* Counters at intervals: the batches of each reader, and how long trainers waited. */
static void
collect_lanes(struct trace *trace)
{
    struct watch_snapshot now;

    if (trace->lanes.sets != NULL && tnd_clock_ns() - trace->lanes.taken_ns < LANES_NS)
        return;
    if (watch_snapshot_open(&trace->lanes_file, &now) != TUNDISH_OK)
        return;
    write_lanes(trace, &now);
    watch_snapshot_close(&trace->lanes);
    trace->lanes = now;
}

static tundish_status
record(struct trace *trace, int64_t duration_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(duration_ns);
    tundish_status status = collect(trace, true);

    while (status == TUNDISH_OK && tnd_clock_left_ns(deadline_ns) > 0) {
        nanosleep(&POLL, NULL);
        status = collect(trace, false);
        collect_lanes(trace);
    }
    watch_snapshot_close(&trace->lanes);
    return status;
}

static int
trace_to(const char *socket, const char *path, int64_t duration_ns)
{
    struct trace trace = { .file = TND_STATS_FILE_NONE,
                           .lanes_file = TND_STATS_FILE_NONE,
                           .began_ns = tnd_clock_ns() };
    FILE *file;
    tundish_status status = status_find_metrics(socket, &trace.file);

    if (status == TUNDISH_OK)
        status = status_find_metrics(socket, &trace.lanes_file);
    if (status == TUNDISH_OK)
        status = tnd_stats_read(&trace.file);
    if (status == TUNDISH_OK && !tnd_stats_is_alive(&trace.file))
        status =
            tnd_fail(TUNDISH_E_SERVER_GONE, "the server is gone: it does nothing that could be "
                                            "recorded");
    if (status != TUNDISH_OK) {
        fprintf(stderr, "tundish trace: %s\n", tnd_error_text());
        tnd_stats_close(&trace.file);
        tnd_stats_close(&trace.lanes_file);
        return EXIT_SYSTEM;
    }
    file = path != NULL ? fopen(path, "we") : stdout;
    if (file == NULL) {
        perror(path);
        tnd_stats_close(&trace.file);
        tnd_stats_close(&trace.lanes_file);
        return EXIT_SYSTEM;
    }
    json_start(&trace.json, file);
    json_object(&trace.json);
    json_key_text(&trace.json, "displayTimeUnit", "ms");
    json_key(&trace.json, "traceEvents");
    json_array(&trace.json);
    status = record(&trace, duration_ns);
    json_array_end(&trace.json);
    json_object_end(&trace.json);
    fputc('\n', file);
    if ((path != NULL ? fclose(file) : fflush(file)) != 0 && status == TUNDISH_OK)
        status = tnd_fail(TUNDISH_E_SYSTEM, "%s cannot be written", path != NULL ? path : "output");
    if (status != TUNDISH_OK)
        fprintf(stderr, "tundish trace: %s\n", tnd_error_text());
    else
        fprintf(stderr, "%" PRIu64 " event%s of %u thread%s%s%s\n", trace.events,
                TND_PLURAL(trace.events), trace.track_count, TND_PLURAL(trace.track_count),
                path != NULL ? " in " : "", path != NULL ? path : "");
    if (trace.lost > 0)
        fprintf(stderr, "%" PRIu64 " event%s lost: they came faster than they could be read\n",
                trace.lost, trace.lost == 1 ? " was" : "s were");
    tnd_stats_close(&trace.file);
    tnd_stats_close(&trace.lanes_file);
    return status == TUNDISH_OK ? EXIT_OK : EXIT_SYSTEM;
}

static int
command_trace_run(int argc, char **argv)
{
    const char *socket = NULL, *path = NULL;
    uint64_t seconds = 5;
    const struct option_row rows[] = {
        { "socket", .text = &socket },
        { "seconds", .number = &seconds, .minimum = 1, .maximum = 3600 },
        { "output", .text = &path },
        { 0 },
    };
    int result = options_read_alone(&command_trace, argc, argv, rows);

    return result == EXIT_OK ? trace_to(socket, path, (int64_t)seconds * 1000000000) : result;
}

const struct command command_trace = {
    .name = "trace",
    .arguments = "",
    .help = "Record the activity of the server's threads, for Perfetto or chrome://tracing.",
    .details = "  --socket PATH       the server's socket (default: as for trainers)\n"
               "  --seconds S         how long to record (default 5)\n"
               "  --output FILE       output file (default: standard output)\n",
    .run = command_trace_run,
};
