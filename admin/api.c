/* api.c - the metrics as JSON. */
#include "api.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "watch/report.h"

/* The rank of the node that is worst off. */
static uint32_t
worst_rank(const struct watcher *watcher)
{
    uint32_t worst = 0;

    for (uint32_t i = 1; i < watcher_node_count(watcher); i++)
        if (watcher_node(watcher, i)->there &&
            watch_is_worse(&watcher_node(watcher, i)->diagnosis,
                           &watcher_node(watcher, worst)->diagnosis))
            worst = i;
    return watcher_node(watcher, worst)->rank;
}

static void
write_node(struct json *json, const struct watcher_node *node)
{
    json_object(json);
    json_key_int(json, "rank", node->rank);
    json_key_int(json, "restarts", (int64_t)node->restarts);
    json_key(json, "report");
    watch_report(node->before, node->now, json);
    json_object_end(json);
}

unsigned
api_answer_status(const struct admin *admin, const struct route *route, FILE *body)
{
    struct json json;

    (void)route;
    json_start(&json, body);
    json_object(&json);
    json_key_int(&json, "time_unix", (int64_t)time(NULL));
    json_key_int(&json, "worst_rank", worst_rank(admin->watcher));
    json_key_bool(&json, "may_change", admin->guard.token[0] != '\0');
    json_key(&json, "nodes");
    json_array(&json);
    for (uint32_t i = 0; i < watcher_node_count(admin->watcher); i++)
        if (watcher_node(admin->watcher, i)->there)
            write_node(&json, watcher_node(admin->watcher, i));
    json_array_end(&json);
    json_object_end(&json);
    fputc('\n', body);
    return 200;
}

/* JSON has no NaN, which stands for seconds without a value. */
static void
write_values(const struct history *history, const struct history_series *series, unsigned seconds,
             FILE *body)
{
    fputc('[', body);
    for (unsigned i = 0; i < seconds; i++) {
        uint64_t second = history->second - seconds + 1 + i;
        float value = series->values[second % HISTORY_SECONDS];

        fprintf(body, isnan(value) ? "%snull" : "%s%.4g", i > 0 ? "," : "", (double)value);
    }
    fputc(']', body);
}

/* "NODE|WHAT|LABELS" as three members. */
static void
write_name(struct json *json, const struct history_series *series)
{
    char name[HISTORY_NAME_BYTES];
    char *what, *labels;

    memcpy(name, series->name, sizeof name);
    what = strchr(name, '|');
    labels = what != NULL ? strchr(what + 1, '|') : NULL;
    if (labels == NULL)
        return;
    *what++ = *labels++ = '\0';
    json_key_text(json, "rank", name);
    json_key_text(json, "what", what);
    json_key_text(json, "labels", labels);
}

unsigned
api_answer_history(const struct admin *admin, const struct route *route, FILE *body)
{
    const struct history *history = watcher_history(admin->watcher);
    unsigned seconds = (unsigned)route->number;
    struct json json;

    json_start(&json, body);
    json_object(&json);
    json_key_int(&json, "end_unix", (int64_t)history->second);
    json_key_int(&json, "seconds", seconds);
    json_key(&json, "series");
    json_array(&json);
    for (unsigned i = 0; i < HISTORY_SERIES; i++) {
        const struct history_series *series = &history->series[i];

        /* A series that ended before the wanted time would be a row of nulls. */
        if (series->name[0] == '\0' || series->last + seconds <= history->second)
            continue;
        json_object(&json);
        write_name(&json, series);
        json_key(&json, "values");
        json_raw(&json);
        write_values(history, series, seconds, body);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    fputc('\n', body);
    return 200;
}

static const struct watch_snapshot *
own_snapshot(const struct admin *admin)
{
    const struct watcher_node *node = watcher_node(admin->watcher, 0);

    return node->there ? node->now : NULL;
}

/* Is this the first session of its stream? The sessions of a stream share one plan, shown once. */
static bool
is_first_of(const struct watch_snapshot *snapshot, const struct watch_set *wanted, const char *name)
{
    const struct watch_set *set = NULL;
    char other[TND_STATS_VALUE_BYTES];

    while ((set = watch_next(snapshot, "stream", set)) != wanted) {
        watch_label(set, "stream", other, sizeof other);
        if (strcmp(other, name) == 0)
            return false;
    }
    return true;
}

unsigned
api_answer_plans(const struct admin *admin, const struct route *route, FILE *body)
{
    const struct watch_snapshot *snapshot = own_snapshot(admin);
    const struct watch_set *stream = NULL;
    struct json json;

    (void)route;
    json_start(&json, body);
    json_object(&json);
    while (snapshot != NULL && (stream = watch_next(snapshot, "stream", stream)) != NULL) {
        const struct tnd_stats_text_entry *plan;
        char name[TND_STATS_VALUE_BYTES];

        watch_label(stream, "stream", name, sizeof name);
        plan = watch_text(snapshot, "plan", name);
        if (plan == NULL || !is_first_of(snapshot, stream, name))
            continue;
        json_key(&json, name);
        json_raw(&json);
        fwrite(plan->text, 1, plan->text_bytes, body);
    }
    json_object_end(&json);
    fputc('\n', body);
    return 200;
}

unsigned
api_answer_pipeline(const struct admin *admin, const struct route *route, FILE *body)
{
    const struct watch_snapshot *snapshot = own_snapshot(admin);
    const struct tnd_stats_text_entry *pipeline =
        snapshot != NULL ? watch_text(snapshot, "pipeline", "") : NULL;

    (void)route;
    if (pipeline == NULL) {
        fputs("no server has been seen yet\n", body);
        return 503;
    }
    fwrite(pipeline->text, 1, pipeline->text_bytes, body);
    return 200;
}
