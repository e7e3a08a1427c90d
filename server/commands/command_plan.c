/* command_plan.c - `tundish plan`: a stream's stages, batches and costs. */
#include "commands/options.h"

#include <stdio.h>
#include <stdlib.h>

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

enum form { AS_TEXT, AS_JSON, AS_DRAWING };

static void
print(const struct plan *plan, enum form form)
{
    struct plan_lanes lanes;

    /* The forecast is that of a server which starts now: free memory counts. */
    lane_forecast(plan, &lanes);
    if (form == AS_JSON)
        plan_print_json(plan, &lanes, stdout);
    else if (form == AS_DRAWING)
        plan_print_dot(plan, stdout);
    else
        plan_print_text(plan, &lanes, stdout);
    if (form == AS_TEXT)
        print_helpers(plan);
}

static int
run_plan(const struct pipeline_options *wanted, uint32_t worker, enum form form)
{
    struct pipeline pipeline;
    tundish_status status = pipeline_open(wanted, &pipeline);
    int result = EXIT_OK;

    if (status != TUNDISH_OK) {
        result = command_failed(&command_plan, status, &pipeline.errors);
    } else {
        /* The plan is printed first: it helps to understand the error. */
        print(pipeline.plans[worker], form);
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
    const struct option_row rows[] = {
        PIPELINE_OPTIONS(wanted),
        { "worker", .count = &worker, .maximum = UINT32_MAX },
        { "num-workers", .count = &wanted.worker_count, .minimum = 1, .maximum = 65536 },
        { "replicas", .count = &wanted.replicas, .minimum = 1, .maximum = 4096 },
        { "json", .flag = &json },
        { "dot", .flag = &dot },
        { 0 },
    };
    int result = options_read_file(&command_plan, argc, argv, rows, &wanted.path);

    if (result != EXIT_OK)
        return result;
    if (json && dot)
        return command_misused(&command_plan, "--json or --dot, not both");
    if (worker >= wanted.worker_count)
        return command_misused(&command_plan, "--worker %u, but --num-workers is %u", worker,
                               wanted.worker_count);
    return run_plan(&wanted, worker, json ? AS_JSON : dot ? AS_DRAWING : AS_TEXT);
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
        "\n"
        "Exits with status 3 after printing the plan if files are missing, a pattern matches no\n"
        "file, there are fewer files than workers or shards, or a batch exceeds\n"
        "max_batch_bytes, memory_limit or the available memory.\n",
    .run = command_plan_run,
};
