/* command_peek.c - `tundish peek`: print the batches of a stream, in this process, without serving
 * it.
 *
 * All workers of the job are simulated, so that their streams end together as they do in a job.
 */
#include "commands/options.h"

#include <stdlib.h>
#include <string.h>

#include "batch/content_budget.h"
#include "batch/dealer.h"
#include "batch/inputs.h"
#include "commands/column_bytes.h"
#include "commands/print_batch.h"
#include "core/memory.h"
#include "core/plural.h"
#include "session/fill.h"
#include "session/skips.h"
#include "workers/python_pool.h"

/* Without --steps and --epochs a person sees these and no more; programs get all. */
enum { STEPS_SHOWN = 10 };

struct peek {
    struct pipeline_options pipeline_options;
    uint64_t steps; /* UINT64_MAX: until the end */
    uint64_t epochs;
    int64_t worker, replica; /* -1: all */
    bool json, raw, stats;   /* raw: json, but for the values */
    bool twice;              /* make each step on two interpreters, and compare */

    struct pipeline pipeline;
    struct source_files *files;
    struct dealer **dealers;
    struct deal_round *rounds;
    struct fill *fills;
    struct skips *skips;     /* one for each worker, with its own limit */
    uint64_t *order_skipped; /* rows that a worker's order has skipped, included in skips */
    struct evaluation evaluation;
    struct budget_task memory;
    struct json out;
    uint64_t steps_done;
};

/* Each line is a JSON document of its own. */
static void
line_end(struct peek *peek)
{
    fputc('\n', stdout);
    json_start(&peek->out, stdout);
}

static void
say_refused(struct peek *peek)
{
    char *text = spec_errors_text(&peek->pipeline.errors);

    if (peek->json) {
        json_object(&peek->out);
        json_key(&peek->out, "end");
        json_object(&peek->out);
        json_key_bool(&peek->out, "refused", true);
        json_key(&peek->out, "errors");
        json_array(&peek->out);
        /* One entry for each error, as the text has one line for each. */
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            json_text(&peek->out, line);
        json_array_end(&peek->out);
        json_object_end(&peek->out);
        json_object_end(&peek->out);
        line_end(peek);
    } else {
        fputs(text, stderr);
    }
    free(text);
}

static void
say_end(struct peek *peek, const char *how)
{
    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++) {
        if (peek->worker >= 0 && peek->worker != (int64_t)w)
            continue;
        if (!peek->json) {
            if (how != NULL && strcmp(how, "max_steps") == 0)
                printf("worker %u: stops after %llu step%s; --steps N shows more\n", w,
                       (unsigned long long)peek->steps, TND_PLURAL(peek->steps));
            else
                /* Without a text it is the error of this thread. */
                printf("worker %u: %s\n", w, how != NULL ? how : tnd_error_text());
            continue;
        }
        json_object(&peek->out);
        json_key_int(&peek->out, "worker", w);
        json_key(&peek->out, "end");
        if (how != NULL) {
            json_text(&peek->out, how);
        } else {
            json_object(&peek->out);
            json_key_text(&peek->out, "error", "TUNDISH_E_DATA");
            json_key_text(&peek->out, "message", tnd_error_text());
            json_object_end(&peek->out);
        }
        json_object_end(&peek->out);
        line_end(peek);
    }
}

static void
say_epoch_end(struct peek *peek, uint64_t epoch)
{
    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++) {
        if (peek->worker >= 0 && peek->worker != (int64_t)w)
            continue;
        if (!peek->json) {
            printf("worker %u: epoch %llu ends\n", w, (unsigned long long)epoch);
            continue;
        }
        json_object(&peek->out);
        json_key_int(&peek->out, "worker", w);
        json_key_int(&peek->out, "epoch_end", (int64_t)epoch);
        json_object_end(&peek->out);
        line_end(peek);
    }
}

static void
say_slice(struct peek *peek, uint32_t worker, uint32_t replica, const struct output_column *columns,
          uint32_t column_count)
{
    const struct deal_round *round = &peek->rounds[worker];

    if (!peek->json) {
        printf("worker %u replica %u epoch %llu step %llu\n", worker, replica,
               (unsigned long long)round->epoch, (unsigned long long)round->step);
        for (uint32_t i = 0; i < column_count; i++)
            print_column_text(stdout, &columns[i]);
        return;
    }
    json_object(&peek->out);
    json_key_int(&peek->out, "worker", worker);
    json_key_int(&peek->out, "replica", replica);
    json_key_int(&peek->out, "epoch", (int64_t)round->epoch);
    json_key_int(&peek->out, "step", (int64_t)round->step);
    json_key(&peek->out, "columns");
    json_object(&peek->out);
    for (uint32_t i = 0; i < column_count; i++) {
        json_key(&peek->out, columns[i].spec->name);
        if (peek->raw)
            print_column_parts(&peek->out, &columns[i]);
        else
            print_column(&peek->out, &columns[i]);
    }
    json_object_end(&peek->out);
    json_object_end(&peek->out);
    line_end(peek);
    for (uint32_t i = 0; peek->raw && i < column_count; i++)
        print_column_values(stdout, &columns[i]);
}

static bool
is_shown(const struct peek *peek, uint32_t worker, uint32_t replica)
{
    return (peek->worker < 0 || peek->worker == (int64_t)worker) &&
           (peek->replica < 0 || peek->replica == (int64_t)replica);
}

/* The shown slices of a step: `columns` of each replica of each worker. `counts`: the rows that are
 * skipped. */
static tundish_status
make_slices(struct peek *peek, struct output_column *columns, bool counts)
{
    uint32_t replicas = peek->pipeline.plans[0]->replicas;
    uint32_t column_count = peek->pipeline.plans[0]->element_spec.count;
    tundish_status status = TUNDISH_OK;

    scratch_reset(peek->evaluation.scratch);
    for (uint32_t w = 0; w < peek->pipeline.worker_count && status == TUNDISH_OK; w++)
        for (uint32_t r = 0; r < replicas && status == TUNDISH_OK; r++)
            if (is_shown(peek, w, r)) {
                /* The evaluation is shared, so the rows that a slice skipped are a difference. */
                uint64_t skipped = peek->evaluation.skipped;

                status =
                    fill_columns(&peek->fills[w], &peek->evaluation, &peek->rounds[w].slices[r],
                                 &columns[(w * replicas + r) * column_count]);
                if (status == TUNDISH_OK && counts)
                    status = skips_add(&peek->skips[w], peek->evaluation.skipped - skipped,
                                       peek->evaluation.skipped_text);
            }
    return status;
}

/* Make a step's slices again by other interpreters, and compare the bits. Twice, and compare the
 * second time: one that keeps something from row to row has then kept other things than the first
 * interpreter. */
static tundish_status
make_again(struct peek *peek, struct output_column *columns, size_t count)
{
    struct column_bytes *first = column_bytes_open(columns, count);
    uint64_t skipped = peek->evaluation.skipped;
    tundish_status status = TUNDISH_OK;

    python_pools_turn(2);
    for (int i = 0; i < 2 && status == TUNDISH_OK; i++)
        status = make_slices(peek, columns, false);
    python_pools_turn(1);
    peek->evaluation.skipped = skipped;
    if (status == TUNDISH_OK)
        status = column_bytes_compare(first, columns, count);
    column_bytes_close(first, count);
    return status == TUNDISH_E_CORRUPT ? tnd_fail_while(TUNDISH_E_DATA, "step %llu of epoch %llu",
                                                        (unsigned long long)peek->rounds[0].step,
                                                        (unsigned long long)peek->rounds[0].epoch)
                                       : status;
}

/* Make all wanted slices of a step before any is printed: a step that fails for one worker fails
 * for all. */
static tundish_status
show_step(struct peek *peek)
{
    uint32_t replicas = peek->pipeline.plans[0]->replicas;
    /* All plans are of one stream, so replicas and columns are those of the first. */
    uint32_t column_count = peek->pipeline.plans[0]->element_spec.count;
    uint32_t worker_count = peek->pipeline.worker_count;
    size_t count = (size_t)worker_count * replicas * column_count;
    struct output_column *columns = tnd_zalloc(count, sizeof *columns);
    tundish_status status = make_slices(peek, columns, true);

    if (status == TUNDISH_OK && peek->twice)
        status = make_again(peek, columns, count);
    for (uint32_t w = 0; w < worker_count && status == TUNDISH_OK; w++)
        for (uint32_t r = 0; r < replicas; r++)
            if (is_shown(peek, w, r))
                say_slice(peek, w, r, &columns[(w * replicas + r) * column_count], column_count);
    free(columns);
    return status;
}

static tundish_status
next_rounds(struct peek *peek, uint32_t *ret_present)
{
    uint32_t present = 0;

    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++) {
        tundish_status status = dealer_next(peek->dealers[w], &peek->rounds[w]);
        const char *text;
        uint64_t skipped = dealer_skipped(peek->dealers[w], &text);

        if (status == TUNDISH_OK)
            status = skips_add(&peek->skips[w], skipped - peek->order_skipped[w], text);
        /* The dealer counts from its start, and the limit counts what is new. */
        peek->order_skipped[w] = skipped;
        if (status != TUNDISH_OK)
            return status;
        present += peek->rounds[w].present_count;
    }
    *ret_present = present;
    return TUNDISH_OK;
}

static void
release_rounds(struct peek *peek)
{
    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++)
        dealer_release_round(&peek->rounds[w]);
}

/* Print the steps of one epoch. Sets *ret_limit if --steps ended it, or nobody takes them. */
static tundish_status
show_epoch(struct peek *peek, bool *ret_limit)
{
    bool drop_partial = peek->pipeline.stream->distribute.drop_remainder_step;

    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++) {
        tundish_status status = dealer_start_epoch(peek->dealers[w]);

        if (status != TUNDISH_OK)
            return status;
    }
    for (;;) {
        uint32_t all = peek->pipeline.worker_count * peek->pipeline.plans[0]->replicas;
        uint32_t present = 0;
        tundish_status status;

        if (peek->steps_done == peek->steps || ferror(stdout)) {
            *ret_limit = true;
            return TUNDISH_OK;
        }
        status = next_rounds(peek, &present);
        /* An epoch ends for all workers at the same step. */
        if (status == TUNDISH_OK && (present == 0 || (drop_partial && present < all))) {
            release_rounds(peek);
            return TUNDISH_OK;
        }
        if (status == TUNDISH_OK)
            status = show_step(peek);
        release_rounds(peek);
        if (status != TUNDISH_OK)
            return status;
        peek->steps_done++;
    }
}

static tundish_status
show_all(struct peek *peek)
{
    bool limit = false;

    if (peek->json) {
        json_object(&peek->out);
        json_key(&peek->out, "element_spec");
        print_element_spec(&peek->out, &peek->pipeline.plans[0]->element_spec);
        json_object_end(&peek->out);
        line_end(peek);
    }
    for (uint64_t epoch = 0; epoch < peek->epochs; epoch++) {
        tundish_status status = show_epoch(peek, &limit);

        if (status != TUNDISH_OK)
            return status;
        if (limit)
            break;
        say_epoch_end(peek, epoch);
    }
    say_end(peek, limit ? "max_steps" : "end");
    return TUNDISH_OK;
}

/* With DATA sharding every worker reads and skips the same rows, so they are counted once. */
static uint64_t
count_skipped(const struct peek *peek)
{
    bool same = peek->pipeline.plans[0]->policy == SHARD_DATA;
    uint64_t skipped = peek->evaluation.skipped;
    const char *text;

    for (uint32_t w = 0; w < (same ? 1 : peek->pipeline.worker_count); w++)
        skipped += dealer_skipped(peek->dealers[w], &text);
    return skipped;
}

static void
say_stats(const struct peek *peek)
{
    struct source_files_stats stats = { 0 };

    source_files_stats(peek->files, &stats);
    fprintf(
        stderr,
        "rows parsed %llu, bytes read %llu, bytes scanned %llu, files opened %llu, rows skipped "
        "%llu\n",
        (unsigned long long)stats.rows_read, (unsigned long long)stats.bytes_read,
        (unsigned long long)stats.bytes_scanned, (unsigned long long)stats.files_opened,
        (unsigned long long)count_skipped(peek));
}

/* Check that there is a file for each shard of an evaluation. The shards are printed as one stream,
 * which would not show it. Other streams report missing files at the step that needs them. */
static tundish_status
check_shards(const struct peek *peek)
{
    const struct source_files_options options = { .root = peek->pipeline.file->root,
                                                  .cache_folder = peek->pipeline_options.cache,
                                                  .remote = &peek->pipeline.file->remote };

    if (peek->pipeline.stream->distribute.evaluation_shards == 0)
        return TUNDISH_OK;
    return inputs_check(peek->pipeline.plans[0], &options, NULL);
}

static tundish_status
open_dealers(struct peek *peek)
{
    struct source_files_options files_options = {
        .root = peek->pipeline.file->root,
        .cache_folder = peek->pipeline_options.cache,
        .row_group_bytes = peek->pipeline.plans[0]->stream->deliver.memory_limit,
        .skip_damage = peek->pipeline.plans[0]->stream->deliver.skip_errors,
        .remote = &peek->pipeline.file->remote,
        /* Files are scanned in this thread: a few steps do not need more of them. */
        .reader_count = 0,
    };
    tundish_status status = source_files_open(&files_options, &peek->files);

    peek->dealers = tnd_zalloc(peek->pipeline.worker_count, sizeof(struct dealer *));
    peek->rounds = tnd_zalloc(peek->pipeline.worker_count, sizeof *peek->rounds);
    peek->fills = tnd_zalloc(peek->pipeline.worker_count, sizeof *peek->fills);
    peek->skips = tnd_zalloc(peek->pipeline.worker_count, sizeof *peek->skips);
    peek->order_skipped = tnd_zalloc(peek->pipeline.worker_count, sizeof *peek->order_skipped);
    for (uint32_t w = 0; w < peek->pipeline.worker_count; w++)
        peek->skips[w] = (struct skips){
            .stream = peek->pipeline.stream->name,
            .limit = peek->pipeline.stream->deliver.skip_limit,
        };
    peek->evaluation = (struct evaluation){
        .files = peek->files,
        .scratch = scratch_open(),
        .skip_bad = peek->pipeline.stream->deliver.skip_errors,
    };
    /* Content has the limits that a server would have. */
    peek->memory.budget = content_budget_open(peek->pipeline.plans[0], 1);
    scratch_share(peek->evaluation.scratch, &peek->memory);
    for (uint32_t w = 0; status == TUNDISH_OK && w < peek->pipeline.worker_count; w++) {
        struct dealer_options options = {
            .files = peek->files,
            .skip_bad = peek->evaluation.skip_bad,
        };

        fill_open(peek->pipeline.plans[w], &peek->fills[w]);
        status = dealer_open(peek->pipeline.plans[w], &options, &peek->dealers[w]);
    }
    return status;
}

static void
close_dealers(struct peek *peek)
{
    for (uint32_t w = 0; peek->dealers != NULL && w < peek->pipeline.worker_count; w++)
        dealer_close(peek->dealers[w]);
    for (uint32_t w = 0; peek->skips != NULL && w < peek->pipeline.worker_count; w++)
        skips_tell_rest(&peek->skips[w]);
    for (uint32_t w = 0; peek->fills != NULL && w < peek->pipeline.worker_count; w++)
        fill_close(&peek->fills[w]);
    free(peek->dealers);
    free(peek->fills);
    free(peek->rounds);
    free(peek->skips);
    free(peek->order_skipped);
    scratch_close(peek->evaluation.scratch);
    budget_close(peek->memory.budget);
    source_files_close(peek->files);
    pipeline_close(&peek->pipeline);
}

static int
run_peek(struct peek *peek)
{
    tundish_status status;
    int result;

    json_start(&peek->out, stdout);
    status = pipeline_open(&peek->pipeline_options, &peek->pipeline);
    if (status != TUNDISH_OK) {
        say_refused(peek);
        pipeline_close(&peek->pipeline);
        return status == TUNDISH_E_SYSTEM ? EXIT_SYSTEM : EXIT_REFUSED;
    }
    /* Only the plan knows the number of replicas, which --replicas or the file may set. */
    if (peek->replica >= peek->pipeline.plans[0]->replicas) {
        result =
            command_misused(&command_peek, "--replica %lld, but a worker has %u (0 is the first)",
                            (long long)peek->replica, peek->pipeline.plans[0]->replicas);
        pipeline_close(&peek->pipeline);
        return result;
    }
    status = check_shards(peek);
    if (status == TUNDISH_OK)
        status = open_dealers(peek);
    if (status == TUNDISH_OK)
        status = show_all(peek);
    if (status != TUNDISH_OK)
        say_end(peek, NULL);
    if (peek->stats && peek->files != NULL)
        say_stats(peek);
    close_dealers(peek);
    return status == TUNDISH_OK ? EXIT_OK : EXIT_REFUSED;
}

static int
command_peek_run(int argc, char **argv)
{
    struct peek peek = { .steps = UINT64_MAX, .epochs = 1 };
    struct pipeline_options *wanted = &peek.pipeline_options;
    uint32_t worker = 0, replica = 0;
    bool one_worker = false, one_replica = false, some_epochs = false;
    const struct option_row rows[] = {
        PIPELINE_OPTIONS(*wanted),
        { "steps", .number = &peek.steps, .maximum = UINT64_MAX - 1 },
        { "epochs", .number = &peek.epochs, .minimum = 1, .maximum = UINT64_MAX,
          .flag = &some_epochs },
        { "worker", .count = &worker, .maximum = UINT32_MAX, .flag = &one_worker },
        { "num-workers", .count = &wanted->worker_count, .minimum = 1, .maximum = 65536 },
        { "replica", .count = &replica, .maximum = UINT32_MAX, .flag = &one_replica },
        { "json", .flag = &peek.json },
        { "raw", .flag = &peek.raw },
        { "stats", .flag = &peek.stats },
        { "twice", .flag = &peek.twice },
        { 0 },
    };
    int result;

    wanted->worker_count = 1;
    result = options_read_file(&command_peek, argc, argv, rows, &wanted->path);
    if (result != EXIT_OK)
        return result;
    peek.json |= peek.raw;
    if (peek.twice)
        python_pools_turn(1);
    if (peek.steps == UINT64_MAX && !peek.json && !some_epochs)
        peek.steps = STEPS_SHOWN;
    peek.worker = one_worker ? (int64_t)worker : -1;
    peek.replica = one_replica ? (int64_t)replica : -1;
    if (worker >= wanted->worker_count)
        return command_misused(&command_peek, "--worker %u, but --num-workers is %u", worker,
                               wanted->worker_count);
    return run_peek(&peek);
}

const struct command command_peek = {
    .name = "peek",
    .arguments = "FILE",
    .help = "Print the batches of a stream without serving it.",
    .details =
        "  --stream NAME       stream name; required if there are several\n"
        "  --steps N           stop after N steps (default: 10; with --epochs, --json or\n"
        "                      --raw at the end of the epochs)\n"
        "  --epochs N          number of epochs (default 1)\n"
        "  --num-workers W     simulate a job of W workers (default 1)\n"
        "  --worker I          print only worker I (default: all)\n"
        "  --replica J         print only replica J of each worker (default: "
        "all)\n" PIPELINE_OPTIONS_HELP
        "  --seed N            seed of stages that have no seed in the file\n"
        "  --json              print all values, one JSON object per line\n"
        "  --raw               the same for programs: the line of a batch has the sizes in\n"
        "                      bytes of its columns' parts, and the parts follow the line.\n"
        "                      Parts are values (of strings: bytes and offsets), then\n"
        "                      row_splits or indices; numbers are little-endian\n"
        "  --twice             make each step on two interpreters of Python, and stop at the\n"
        "                      first one that differs, naming the column\n"
        "  --stats             report rows and bytes read on standard error\n",
    .run = command_peek_run,
};
