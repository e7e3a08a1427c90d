/* command_analyze.c - `tundish analyze`: the full passes over the data that learned stages need. */
#include "commands/options.h"

#include <stdlib.h>

#include "learn/analyze.h"
#include "learn/results/provenance.h"

/* Check that --stream names the stream that the file learns from. Statistics belong to the file,
 * and another stream would give other ones. */
static const struct spec_stream *
choose_stream(const struct spec_file *file, const char *asked, struct spec_errors *errors)
{
    const struct spec_stream *stream = provenance_stream(file);

    if (stream == NULL) {
        spec_complain(
            errors, 0, 0,
            "there are %u streams: say with learn_from, at the top of the file, which one "
            "is learned from",
            file->stream_count);
        return NULL;
    }
    if (asked != NULL && spec_find_stream(file, asked) != stream) {
        spec_complain(errors, 0, 0, "--stream %s, but the file learns from '%s'", asked,
                      stream->name);
        return NULL;
    }
    return stream;
}

static int
run_analyze(const struct pipeline_options *wanted, struct analyze_options *options)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    char *folder = NULL;
    int result = EXIT_OK;
    tundish_status status = spec_open(wanted->path, wanted->root, &errors, &file);

    /* The folder is known only after the file: it lies beside it by default. */
    if (status == TUNDISH_OK) {
        folder = provenance_folder(file, wanted->analysis);
        options->file = file;
        options->folder = folder;
        options->errors = &errors;
        options->stream = choose_stream(file, wanted->stream, &errors);
        status = options->stream != NULL ? analyze_run(options) : TUNDISH_E_PIPELINE;
    }
    if (status != TUNDISH_OK)
        result = command_failed(&command_analyze, status, &errors);
    free(folder);
    spec_close(file);
    spec_errors_close(&errors);
    return result;
}

static int
command_analyze_run(int argc, char **argv)
{
    struct pipeline_options wanted = { 0 };
    struct analyze_options analyze = { .thread_count = pipeline_threads() };
    uint64_t mebibytes = ANALYZE_MEMORY_BYTES >> 20;
    const struct option_row rows[] = {
        PIPELINE_FOLDERS(wanted),
        { "stream", .text = &wanted.stream },
        { "threads", .count = &analyze.thread_count, .minimum = 1, .maximum = 256 },
        { "memory", .number = &mebibytes, .minimum = 1, .maximum = 1 << 20 },
        { "quiet", .flag = &analyze.is_quiet },
        { 0 },
    };
    int result = options_read_file(&command_analyze, argc, argv, rows, &wanted.path);

    if (result != EXIT_OK)
        return result;
    analyze.cache_folder = wanted.cache;
    analyze.memory_bytes = (int64_t)mebibytes << 20;
    return run_analyze(&wanted, &analyze);
}

const struct command command_analyze = {
    .name = "analyze",
    .arguments = "FILE",
    .help =
        "Compute the statistics that a pipeline's stages need: vocabularies, moments, quantiles.",
    .details = "  --stream NAME       the stream to learn from (default: learn_from in the file)\n"
               "  --root DIR          folder for relative paths (default: the file's folder)\n"
               "  --cache DIR         folder for indexes, tables and terms that exceed --memory\n"
               "  --analysis DIR      folder for results (default: analysis/FILE beside it)\n"
               "  --threads N         number of threads (default: one per processor)\n"
               "  --memory M          memory for terms in MiB, approximately (default 1024)\n"
               "  --quiet             do not report progress\n",
    .run = command_analyze_run,
};
