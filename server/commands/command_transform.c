/* command_transform.c - `tundish transform`: rows from standard input through a pipeline's content
 * stages to standard output. */
#include "commands/options.h"

#include <string.h>

#include "commands/rows_in.h"
#include "commands/rows_out.h"
#include "core/memory.h"
#include "inference/transform.h"

struct transforming {
    struct transform_options options;
    const char *from, *to; /* forms */
    const char *output;    /* npy: a folder */
    uint64_t batch;
};

static tundish_status
transform_all(struct transformer *transformer, struct rows_in *in, struct rows_out *out,
              uint64_t batch)
{
    for (;;) {
        const struct output_column *columns;
        /* Rows live until the next batch begins, so nothing is freed here. */
        struct scratch *scratch = transformer_begin(transformer);
        const struct byte_view *records;
        const struct column *rows;
        int64_t count;
        tundish_status status = rows_in_next(in, scratch, (int64_t)batch, &records, &rows, &count);

        if (status != TUNDISH_OK || count == 0)
            return status;
        status = rows != NULL ? transformer_run(transformer, rows, count, &columns)
                              : transformer_run_records(transformer, records, count, &columns);
        /* Only bad data has a row to blame. */
        if (status == TUNDISH_E_DATA) {
            const struct transformer_rows failed = { rows, records, count };

            return transformer_blame(transformer, &failed, rows_in_taken(in) - (uint64_t)count,
                                     status);
        }
        if (status == TUNDISH_OK)
            status = rows_out_put(out, columns);
        if (status != TUNDISH_OK)
            /* The number of the first row of the batch helps to find the row. */
            return tnd_fail_while(status, "rows from %llu on",
                                  (unsigned long long)rows_in_taken(in) - (uint64_t)count);
    }
}

static tundish_status
run(const struct transforming *wanted, struct spec_errors *errors)
{
    struct transform *transform = NULL;
    struct transformer *transformer = NULL;
    struct rows_in *in = NULL;
    struct rows_out *out = NULL;
    tundish_status status = transform_open(&wanted->options, errors, &transform);

    if (status == TUNDISH_OK)
        status = rows_in_open(stdin, wanted->from, transform, &in);
    if (status == TUNDISH_OK)
        status = rows_out_open(wanted->to, wanted->output, transform_outputs(transform), &out);
    if (status == TUNDISH_OK) {
        transformer = transformer_open(transform);
        status = transform_all(transformer, in, out, wanted->batch);
    }
    if (status == TUNDISH_OK)
        status = rows_out_finish(out);
    rows_out_close(out);
    rows_in_close(in);
    /* In this order: each uses what is closed after it. */
    transformer_close(transformer);
    transform_close(transform);
    return status;
}

static int
run_transform(const struct transforming *wanted)
{
    struct spec_errors errors = { 0 };
    tundish_status status = run(wanted, &errors);
    int result =
        status == TUNDISH_OK ? EXIT_OK : command_failed(&command_transform, status, &errors);

    spec_errors_close(&errors);
    return result;
}

static int
command_transform_run(int argc, char **argv)
{
    struct transforming wanted = { .from = "csv", .to = "jsonl", .batch = 1024 };
    const struct option_row rows[] = {
        { "stream", .text = &wanted.options.stream },
        { "until", .text = &wanted.options.until },
        { "root", .text = &wanted.options.root },
        { "analysis", .text = &wanted.options.analysis },
        { "cache", .text = &wanted.options.cache_folder },
        { "from", .text = &wanted.from },
        { "to", .text = &wanted.to },
        { "output", .text = &wanted.output },
        { "batch", .number = &wanted.batch, .minimum = 1, .maximum = 1 << 24 },
        { 0 },
    };
    int result = options_read_file(&command_transform, argc, argv, rows, &wanted.options.path);

    if (result != EXIT_OK)
        return result;
    if (!rows_in_knows(wanted.from))
        return command_misused(&command_transform, "--from is csv, jsonl or tfrecord, not '%s'",
                               wanted.from);
    if (!rows_out_knows(wanted.to))
        return command_misused(&command_transform, "--to is jsonl, npy or tfrecord, not '%s'",
                               wanted.to);
    if ((strcmp(wanted.to, "npy") == 0) != (wanted.output != NULL))
        return command_misused(&command_transform, "--output names the folder for --to npy");
    return run_transform(&wanted);
}

const struct command command_transform = {
    .name = "transform",
    .arguments = "FILE < ROWS > ROWS",
    .help = "Apply a pipeline's content stages to rows, as training does, without a server.",
    .details =
        "  --from F            input format: csv (lines), jsonl or tfrecord (default csv)\n"
        "  --to F              output format: jsonl, npy or tfrecord (default jsonl)\n"
        "  --output DIR        npy: the folder for one file per column\n"
        "  --batch N           rows per batch (default 1024)\n"
        "  --stream NAME       stream name (default: the stream that tundish analyze uses)\n"
        "  --until STAGE       stop after the last stage with this name\n"
        "  --root DIR          folder for relative paths (default: the file's folder)\n"
        "  --analysis DIR      folder of learned statistics (default: analysis/FILE beside it)\n"
        "  --cache DIR         folder for vocabulary tables\n",
    .run = command_transform_run,
};
