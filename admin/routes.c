/* routes.c - the table of paths, and the short answers. */
#include "routes.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "control.h"
#include "core/clock.h"
#include "core/json.h"
#include "metrics.h"
#include "page.h"

static unsigned
answer_health(const struct admin *admin, const struct route *route, FILE *body)
{
    (void)admin;
    (void)route;
    /* Health is that of this process. The server's is in /readyz and /api/v1/status. */
    fputs("ok\n", body);
    return 200;
}

static unsigned
answer_readiness(const struct admin *admin, const struct route *route, FILE *body)
{
    const struct watcher_node *node = watcher_node(admin->watcher, 0);
    bool serving = node->there && tnd_stats_is_alive(&node->now->copy) &&
                   atomic_load(&node->now->copy.header->state) == TND_STATS_SERVING;
    bool hung = serving && watch_is_hung(node->now, tnd_clock_ns());

    (void)route;
    fputs(hung      ? "the server does not respond\n"
          : serving ? "ok\n"
                    : "no server is serving\n",
          body);
    return serving && !hung ? 200 : 503;
}

static unsigned
answer_metrics(const struct admin *admin, const struct route *route, FILE *body)
{
    (void)route;
    metrics_write(admin->watcher, body);
    return 200;
}

static unsigned
answer_control(const struct admin *admin, const struct route *route, FILE *body)
{
    char text[2048];
    struct json json;
    tundish_status status =
        control_ask(admin->socket_path, (enum tnd_control)route->number, text, sizeof text);

    json_start(&json, body);
    json_object(&json);
    json_key_bool(&json, "done", status == TUNDISH_OK);
    json_key_text(&json, "text", text);
    json_object_end(&json);
    fputc('\n', body);
    /* 503: trying again may help. 409: the server has answered, and refused. */
    if (status == TUNDISH_OK)
        return 200;
    return status == TUNDISH_E_SERVER_GONE || status == TUNDISH_E_TIMEOUT ? 503 : 409;
}

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain; charset=utf-8";

static const struct route routes[] = {
    { "/", ROUTE_PAGE, "text/html; charset=utf-8", page_answer, PAGE_HTML },
    { "/dashboard.css", ROUTE_PAGE, "text/css; charset=utf-8", page_answer, PAGE_CSS },
    { "/dashboard.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_JS },
    { "/pipeline.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_PIPELINE_JS },
    { "/lanes.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_LANES_JS },
    { "/stages.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_STAGES_JS },
    { "/nodes.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_NODES_JS },
    { "/dom.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_DOM_JS },
    { "/format.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_FORMAT_JS },
    { "/latency.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_LATENCY_JS },
    { "/charts.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_CHARTS_JS },
    { "/view.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_VIEW_JS },
    { "/marks.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_MARKS_JS },
    { "/report.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_REPORT_JS },
    { "/compare.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer, PAGE_COMPARE_JS },
    { "/chart.js", ROUTE_PAGE, "text/javascript; charset=utf-8", page_answer_chart, 0 },
    { "/favicon.svg", ROUTE_PAGE, "image/svg+xml", page_answer, PAGE_ICON },
    { "/api/v1/openapi.json", ROUTE_PAGE, json_type, page_answer, PAGE_OPENAPI },
    { "/api/v1/status", ROUTE_METRICS, json_type, api_answer_status, 0 },
    { "/api/v1/nodes", ROUTE_METRICS, json_type, api_answer_nodes, 0 },
    { "/api/v1/nodes/", ROUTE_NODE, json_type, api_answer_node, 0 },
    { "/api/v1/history", ROUTE_METRICS, json_type, api_answer_history, HISTORY_SECONDS },
    { "/api/v1/history/recent", ROUTE_METRICS, json_type, api_answer_history, 300 },
    { "/api/v1/history/", ROUTE_NODE, json_type, api_answer_node_history, 0 },
    { "/api/v1/plans", ROUTE_METRICS, json_type, api_answer_plans, 0 },
    { "/api/v1/pipeline", ROUTE_METRICS, text_type, api_answer_pipeline, 0 },
    { "/metrics", ROUTE_METRICS, "text/plain; version=0.0.4; charset=utf-8", answer_metrics, 0 },
    { "/healthz", ROUTE_NOW, text_type, answer_health, 0 },
    { "/readyz", ROUTE_NOW, text_type, answer_readiness, 0 },
    { "/api/v1/pause", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_PAUSE },
    { "/api/v1/resume", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_RESUME },
    { "/api/v1/drain", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_DRAIN },
    { "/api/v1/checkpoint", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_CHECKPOINT },
    { "/api/v1/log-level/error", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_LOG_ERROR },
    { "/api/v1/log-level/warning", ROUTE_CONTROL, json_type, answer_control,
      TND_CONTROL_LOG_WARNING },
    { "/api/v1/log-level/notice", ROUTE_CONTROL, json_type, answer_control,
      TND_CONTROL_LOG_NOTICE },
    { "/api/v1/log-level/debug", ROUTE_CONTROL, json_type, answer_control, TND_CONTROL_LOG_DEBUG },
};

const struct route *
route_at(unsigned number)
{
    return number < sizeof routes / sizeof *routes ? &routes[number] : NULL;
}

/* A rank as it is written: digits, and no zero before others. -1: it is none. */
static int
read_rank(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 5 || text[digits] != '\0' || (text[0] == '0' && digits > 1))
        return -1;
    return atoi(text);
}

const struct route *
route_find(const char *path, int *ret_rank)
{
    for (unsigned i = 0; route_at(i) != NULL; i++) {
        size_t bytes = strlen(routes[i].path);

        *ret_rank = 0;
        if (routes[i].kind != ROUTE_NODE && strcmp(routes[i].path, path) == 0)
            return &routes[i];
        if (routes[i].kind == ROUTE_NODE && strncmp(routes[i].path, path, bytes) == 0 &&
            (*ret_rank = read_rank(path + bytes)) >= 0)
            return &routes[i];
    }
    return NULL;
}
