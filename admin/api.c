/* api.c - nodes, plans and the pipeline file as JSON. */
#include "api.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/report.h"

/* Reports are long: those of NODES_IN_FULL nodes are told at once. */
enum { NODES_IN_FULL = 16 };

static void
write_node(struct json *json, const struct watcher_node *node)
{
    json_object(json);
    json_key_int(json, "rank", node->rank);
    json_key_int(json, "restarts", (int64_t)node->restarts);
    json_key(json, "report");
    watch_report(node->before, node->now, &node->diagnosis, json);
    json_object_end(json);
}

/* The beginning of every answer about the job. */
static void
write_job(struct json *json, const struct admin *admin, const uint32_t *numbers, uint32_t count)
{
    json_key_int(json, "time_unix", (int64_t)time(NULL));
    json_key_int(json, "worst_rank",
                 count > 0 ? watcher_node(admin->watcher, numbers[0])->rank : 0);
    json_key_bool(json, "may_change", admin->guard.token[0] != '\0');
    json_key_int(json, "node_count", count);
}

static int
by_number(const void *one, const void *other)
{
    const uint32_t *a = one, *b = other;

    return (*a > *b) - (*a < *b);
}

/* The job and its nodes, the worst first; or the `told` worst of them, by number. */
static unsigned
answer_job(const struct admin *admin, FILE *body, uint32_t told,
           void (*write_one)(struct json *json, const struct watcher_node *node))
{
    uint32_t numbers[WATCHER_NODES], count = watcher_rank_nodes(admin->watcher, numbers);
    struct json json;

    json_start(&json, body);
    json_object(&json);
    write_job(&json, admin, numbers, count);
    json_key(&json, "nodes");
    json_array(&json);
    if (count > told)
        count = told;
    if (told < WATCHER_NODES)
        qsort(numbers, count, sizeof *numbers, by_number);
    for (uint32_t i = 0; i < count; i++)
        write_one(&json, watcher_node(admin->watcher, numbers[i]));
    json_array_end(&json);
    json_object_end(&json);
    fputc('\n', body);
    return 200;
}

unsigned
api_answer_status(const struct admin *admin, const struct route *route, FILE *body)
{
    (void)route;
    return answer_job(admin, body, NODES_IN_FULL, write_node);
}

/* Growth of a counter over the window, over all sets of the kind. */
static double
rate_of(const struct watcher_node *node, const char *kind, const char *field)
{
    double passed_s = (double)(node->now->taken_ns - node->before->taken_ns) / 1e9, grown = 0;
    const struct watch_set *set = NULL;

    while ((set = watch_next(node->now, kind, set)) != NULL)
        grown += (double)watch_growth(node->before, set, field);
    return passed_s > 0 ? grown / passed_s : 0;
}

static uint64_t
sum_of(const struct watcher_node *node, const char *kind, const char *field)
{
    const struct watch_set *set = NULL;
    uint64_t sum = 0;

    while ((set = watch_next(node->now, kind, set)) != NULL)
        sum += watch_value(set, field);
    return sum;
}

static void
key_float(struct json *json, const char *key, double value)
{
    json_key(json, key);
    json_float(json, value, 9);
}

/* A node in one line of a table. */
static void
write_summary(struct json *json, const struct watcher_node *node)
{
    const struct watch_set *server = watch_next(node->now, "server", NULL);

    json_object(json);
    json_key_int(json, "rank", node->rank);
    json_key_text(json, "host", node->now->copy.header->node);
    json_key_text(json, "state", watch_state_name(node->now));
    json_key_bool(json, "alive", tnd_stats_is_alive(&node->now->copy));
    json_key_int(json, "restarts", (int64_t)node->restarts);
    watch_report_verdict(&node->diagnosis, json);
    key_float(json, "slowness", node->slowness);
    json_key_int(json, "trainers", (int64_t)sum_of(node, "reader", "attached"));
    key_float(json, "rows_rate", rate_of(node, "stream", "rows"));
    key_float(json, "cpu_rate", rate_of(node, "server", "cpu") / 1e9);
    json_key_int(json, "resident_memory_bytes", (int64_t)watch_value(server, "resident_memory"));
    json_key_int(json, "segments_bytes", (int64_t)sum_of(node, "lane", "segments"));
    json_key_int(json, "log_errors", (int64_t)watch_value(server, "log_errors"));
    key_float(json, "link_wait_rate", rate_of(node, "link", "wait") / 1e9);
    key_float(json, "link_sent_rate", rate_of(node, "link", "sent"));
    key_float(json, "link_received_rate", rate_of(node, "link", "received"));
    json_object_end(json);
}

unsigned
api_answer_nodes(const struct admin *admin, const struct route *route, FILE *body)
{
    (void)route;
    return answer_job(admin, body, WATCHER_NODES, write_summary);
}

unsigned
api_answer_node(const struct admin *admin, const struct route *route, FILE *body)
{
    struct json json;

    json_start(&json, body);
    for (uint32_t i = 0; i < watcher_node_count(admin->watcher); i++) {
        const struct watcher_node *node = watcher_node(admin->watcher, i);

        if (!node->there || node->rank != (uint32_t)route->number)
            continue;
        write_node(&json, node);
        fputc('\n', body);
        return 200;
    }
    fputs("{\"error\": \"no node of that rank has been seen\"}\n", body);
    return 404;
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
