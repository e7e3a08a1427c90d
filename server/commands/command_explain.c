/* command_explain.c - `tundish explain`: where the rows of a batch come from. */
#include "commands/explain.h"

#include "commands/options.h"

static int
run_explain(struct explain *explain)
{
    const struct spec_errors *errors = &explain->pipeline.errors;
    tundish_status status = TUNDISH_OK;

    if (explain->token != NULL)
        status = explain_read_place(explain);
    if (status != TUNDISH_OK)
        return command_failed(&command_explain, status, errors);
    if (explain->worker >= explain->pipeline_options.worker_count)
        return command_misused(&command_explain, "--worker %u, but --num-workers is %u",
                               explain->worker, explain->pipeline_options.worker_count);
    status = pipeline_open(&explain->pipeline_options, &explain->pipeline);
    if (status != TUNDISH_OK)
        return command_failed(&command_explain, status, errors);
    if (explain->replica >= explain_plan(explain)->replicas)
        return command_misused(&command_explain,
                               "--replica %u, but a worker has %u (0 is the first; --replicas)",
                               explain->replica, explain_plan(explain)->replicas);
    status = explain_find(explain);
    if (status == TUNDISH_OK)
        status = explain_print(explain);
    return status == TUNDISH_OK ? EXIT_OK : command_failed(&command_explain, status, errors);
}

static int
command_explain_run(int argc, char **argv)
{
    struct explain explain = { .pipeline_options.worker_count = 1 };
    struct pipeline_options *wanted = &explain.pipeline_options;
    const struct option_row rows[] = {
        PIPELINE_OPTIONS(*wanted),
        { "place", .text = &explain.token },
        { "epoch", .number = &explain.epoch, .maximum = UINT32_MAX, .flag = &explain.has_epoch },
        { "step", .number = &explain.step, .maximum = INT64_MAX, .flag = &explain.has_step },
        { "num-workers", .count = &wanted->worker_count, .minimum = 1, .maximum = WORKERS_MAX,
          .flag = &explain.has_workers },
        { "worker", .count = &explain.worker, .maximum = UINT32_MAX },
        { "replicas", .count = &wanted->replicas, .minimum = 1, .maximum = 4096 },
        { "replica", .count = &explain.replica, .maximum = UINT32_MAX },
        { "row", .number = &explain.row, .maximum = UINT64_MAX, .flag = &explain.has_row },
        { "show", .flag = &explain.shows },
        { "json", .flag = &explain.json },
        { 0 },
    };
    int result = options_read_file(&command_explain, argc, argv, rows, &wanted->path);

    if (result == EXIT_OK && explain.token != NULL && wanted->has_seed)
        result =
            command_misused(&command_explain, "--seed or --place, not both: a place has a seed");
    if (result == EXIT_OK)
        result = run_explain(&explain);
    explain_close(&explain);
    return result;
}

const struct command command_explain = {
    .name = "explain",
    .arguments = "FILE",
    .help = "Name the file, the bytes and the record that each row of a batch comes from.",
    .details =
        "  --place TOKEN       a saved place: explain the batch that opening at it returns next\n"
        "                      (default: a run from its start)\n"
        "  --epoch E           another epoch of the run (default: that of the place, or 0)\n"
        "  --step S            another step of the epoch (default: that of the place; 0 with\n"
        "                      --epoch, or without a place)\n"
        "  --row N             only row N of the batch, from 0 (default: all)\n"
        "  --show              print the record and the columns of each row, too\n"
        "  --stream NAME       stream name; required if there are several\n"
        "  --num-workers W     number of workers of the job (default: that of the place if "
        "batches\n"
        "                      depend on it, else 1)\n"
        "  --worker I          the worker whose batch it is (default 0)\n"
        "  --replicas R        replicas on each worker, if the stream uses lanes\n"
        "                      (default: replicas in the file)\n"
        "  --replica J         the replica of that worker (default 0)\n" PIPELINE_OPTIONS_HELP
        "  --seed N            seed of stages that have no seed in the file; a place has one\n"
        "  --json              print JSON\n"
        "\n"
        "Nothing is served. The order of the epoch is gone through up to the step, as when a job\n"
        "resumes there; 'tundish plan' says how long that takes. Files that changed since the\n"
        "place was saved are refused. Offsets are those of a record's own bytes (of a TFRecord:\n"
        "its data, after its header); for compressed files they count uncompressed bytes. For\n"
        "rows that lie in no file, or in a cache, the output says what can be named.\n",
    .run = command_explain_run,
};
