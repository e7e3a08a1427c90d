/* command_plan.c - `tundish plan`: a stream's stages, batches and costs. */
#include "commands/options.h"
#include "commands/status_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/inputs.h"
#include "batch/portable.h"
#include "plan/memory_cost.h"
#include "plan/print.h"
#include "session/deliverable.h"
#include "session/lane_size.h"

/* Check that the files exist. With local files those of other nodes are not known here; the servers
 * check them when they are linked. */
static tundish_status
check_inputs(const struct pipeline_options *wanted, const struct plan *plan)
{
    const struct source_files_options options = { .root = plan->file->root,
                                                  .cache_folder = wanted->cache,
                                                  .remote = &plan->file->remote };

    if (plan->stream->distribute.files_local && plan->options.worker_count > 1)
        return TUNDISH_OK;
    return inputs_check(plan, &options, NULL);
}

/* May machines without trainers make parts of the batches (serve --helpers)? */
static void
print_helpers(const struct plan *plan)
{
    char *obstacle = portable_obstacle(plan);

    if (obstacle != NULL)
        printf("helpers: none can be used: %s\n", obstacle);
    else
        printf("helpers: they can make parts of the batches, if they read the same files\n");
    free(obstacle);
}

#define RATES_OVER_NS INT64_C(1000000000)

/* A running server's. */
struct rates {
    const struct status_view *view;
    const char *stream;
};

static bool
has_label(const struct watch_set *set, const char *key, const char *value)
{
    char label[TND_STATS_VALUE_BYTES];

    watch_label(set, key, label, sizeof label);
    return strcmp(label, value) == 0;
}

static void
put_rates(void *user, const struct plan_node *node, FILE *file)
{
    static const char *const parts[] = { "order", "content" };
    const struct rates *rates = user;
    const struct watch_snapshot *before = &rates->view->before, *now = &rates->view->now;
    double ns = (double)(now->taken_ns - before->taken_ns);
    char number[16];

    snprintf(number, sizeof number, "%u", node->index);
    for (uint32_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const struct watch_set *set = watch_next(now, "stage", NULL);

        /* The name, too: the server may run another pipeline file. */
        while (set != NULL &&
               !(has_label(set, "part", parts[p]) && has_label(set, "node", number) &&
                 has_label(set, "stage", node->name) && has_label(set, "stream", rates->stream)))
            set = watch_next(now, "stage", set);
        if (set == NULL || ns <= 0)
            continue;
        fprintf(file, "\\n%s: %.0f rows/s", parts[p],
                (double)watch_growth(before, set, "rows") * 1e9 / ns);
        if (watch_value(set, "busy") > 0)
            fprintf(file, ", %.0f%% of a thread",
                    (double)watch_growth(before, set, "busy") * 100 / ns);
    }
}

/* With the rates of the server at `socket`, if it is not NULL. */
static tundish_status
draw(const struct plan *plan, const char *socket)
{
    struct status_view view;
    struct rates rates = { &view, plan->stream->name };
    tundish_status status;

    if (socket == NULL) {
        plan_print_dot(plan, NULL, NULL, stdout);
        return TUNDISH_OK;
    }
    status = status_view_open(socket, &view);
    if (status != TUNDISH_OK)
        return status;
    status = status_view_next(&view, RATES_OVER_NS);
    if (status == TUNDISH_OK)
        plan_print_dot(plan, put_rates, &rates, stdout);
    status_view_close(&view);
    return status;
}

enum form { AS_TEXT, AS_JSON, AS_DRAWING };

static void
print(const struct plan *plan, enum form form)
{
    struct plan_lanes lanes;

    /* The forecast is that of a server which starts now: free memory counts. */
    lane_forecast(plan, &lanes);
    if (form == AS_JSON)
        plan_print_json(plan, &lanes, stdout);
    else
        plan_print_text(plan, &lanes, stdout);
    if (form == AS_TEXT)
        print_helpers(plan);
}

static int
run_plan(const struct pipeline_options *wanted, uint32_t worker, enum form form, const char *socket)
{
    struct pipeline pipeline;
    tundish_status status = pipeline_open(wanted, &pipeline);
    int result = EXIT_OK;

    if (status != TUNDISH_OK) {
        result = command_failed(&command_plan, status, &pipeline.errors);
    } else {
        /* The plan is printed first: it helps to understand the error. */
        if (form != AS_DRAWING)
            print(pipeline.plans[worker], form);
        else
            status = draw(pipeline.plans[worker], socket);
        if (status == TUNDISH_OK)
            status = deliverable_check(pipeline.plans[worker], &pipeline.errors);
        if (status == TUNDISH_OK)
            status = plan_memory_check(pipeline.plans[worker]);
        if (status == TUNDISH_OK)
            status = check_inputs(wanted, pipeline.plans[worker]);
        if (status != TUNDISH_OK)
            result =
                command_failed(&command_plan, pipeline.errors.count > 0 ? status : TUNDISH_E_SYSTEM,
                               &pipeline.errors);
    }
    pipeline_close(&pipeline);
    return result;
}

static int
command_plan_run(int argc, char **argv)
{
    struct pipeline_options wanted = { .worker_count = 1 };
    uint32_t worker = 0;
    bool json = false, dot = false;
    const char *socket = NULL;
    const struct option_row rows[] = {
        PIPELINE_OPTIONS(wanted),
        { "worker", .count = &worker, .maximum = UINT32_MAX },
        { "num-workers", .count = &wanted.worker_count, .minimum = 1, .maximum = 65536 },
        { "replicas", .count = &wanted.replicas, .minimum = 1, .maximum = 4096 },
        { "json", .flag = &json },
        { "dot", .flag = &dot },
        { "socket", .text = &socket },
        { 0 },
    };
    int result = options_read_file(&command_plan, argc, argv, rows, &wanted.path);

    if (result != EXIT_OK)
        return result;
    if (json && dot)
        return command_misused(&command_plan, "--json or --dot, not both");
    if (socket != NULL && !dot)
        return command_misused(&command_plan, "--socket is for --dot");
    if (worker >= wanted.worker_count)
        return command_misused(&command_plan, "--worker %u, but --num-workers is %u", worker,
                               wanted.worker_count);
    return run_plan(&wanted, worker, json ? AS_JSON : dot ? AS_DRAWING : AS_TEXT, socket);
}

const struct command command_plan = {
    .name = "plan",
    .arguments = "FILE",
    .help = "Explain a stream: stages, sharding, rebatching, columns, memory.",
    .details =
        "  --stream NAME       stream name; required if there are several\n"
        "  --num-workers W     plan for a job of W workers (default 1)\n"
        "  --worker I          the worker to plan for (default 0)\n"
        "  --replicas R        replicas on each worker, if the stream uses lanes\n"
        "                      (default: replicas in the file)\n" PIPELINE_OPTIONS_HELP
        "  --seed N            seed of stages that have no seed in the file\n"
        "  --json              print JSON\n"
        "  --dot               print a graph for 'dot -Tsvg'\n"
        "  --socket PATH       with --dot: write the rates of each stage of the server that\n"
        "                      runs there into the graph, measured for a second\n"
        "\n"
        "Exits with status 3 after printing the plan if files are missing, a pattern matches no\n"
        "file, there are fewer files than workers or shards, or a batch exceeds\n"
        "max_batch_bytes, memory_limit or the available memory.\n",
    .run = command_plan_run,
};
