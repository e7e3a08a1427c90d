/* command_pipeline.c - opens and plans the pipeline file of a command line. */
#include "commands/commands.h"

#include <stdlib.h>
#include <sys/random.h>

#include "batch/sample.h"
#include "core/cpu_room.h"
#include "core/memory.h"
#include "learn/analyze.h"
#include "learn/results/provenance.h"

static tundish_status
choose_stream(struct pipeline *pipeline, const char *name)
{
    const struct spec_file *file = pipeline->file;

    if (name != NULL) {
        pipeline->stream = spec_find_stream(file, name);
        if (pipeline->stream == NULL) {
            const char **names = tnd_zalloc(file->stream_count, sizeof *names);
            const char *nearest;

            for (uint32_t i = 0; i < file->stream_count; i++)
                names[i] = file->streams[i].name;
            nearest = spec_nearest(name, names, file->stream_count);
            spec_complain(&pipeline->errors, 0, 0, "there is no stream '%s'; %s is '%s'", name,
                          nearest != NULL ? "the nearest" : "the first",
                          nearest != NULL ? nearest : names[0]);
            free(names);
            return TUNDISH_E_PIPELINE;
        }
        return TUNDISH_OK;
    }
    if (file->stream_count != 1)
        return spec_complain(&pipeline->errors, 0, 0,
                             "there are %u streams: name one with --stream (the first is '%s')",
                             file->stream_count, file->streams[0].name);
    pipeline->stream = &file->streams[0];
    return TUNDISH_OK;
}

/* Printed or logged by the commands, so a run can be repeated. */
uint64_t
pipeline_draw_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed; /* a kernel without entropy: any number will do */
    return seed;
}

uint32_t
pipeline_threads(void)
{
    uint32_t count = tnd_cpu_count();

    return count < 256 ? count : 256;
}

/* Compute the statistics, for the first time or again. */
static tundish_status
learn(const struct pipeline_options *options, const struct spec_file *file, const char *folder,
      struct spec_errors *errors)
{
    const struct analyze_options analyze = {
        .file = file,
        .stream = provenance_stream(file),
        .folder = folder,
        .cache_folder = options->cache,
        .thread_count = pipeline_threads(),
        .memory_bytes = ANALYZE_MEMORY_BYTES,
        .errors = errors,
    };
    tundish_status status = analyze_run(&analyze);

    if (status != TUNDISH_OK && errors->count == 0)
        spec_complain(errors, 0, 0, "%s", tnd_error_text());
    return status;
}

tundish_status
pipeline_open_learned(const struct pipeline_options *options, const struct spec_file *file,
                      struct spec_errors *errors, struct learned **ret_learned)
{
    struct learned *learned;
    char *folder;
    tundish_status status = TUNDISH_OK;

    /* Files without stages that learn are not looked for. */
    if (!provenance_is_needed(file))
        return TUNDISH_OK;
    learned = tnd_zalloc(1, sizeof *learned);
    folder = provenance_folder(file, options->analysis);
    provenance_find(file, options->analysis, true, learned);
    if (options->analyzes && learned->problem != NULL && provenance_stream(file) != NULL) {
        status = learn(options, file, folder, errors);
        /* Read again, since they are on the disk now. */
        provenance_close(learned);
        provenance_find(file, options->analysis, true, learned);
    }
    free(folder);
    *ret_learned = learned;
    return status;
}

void
pipeline_close_learned(struct learned *learned)
{
    if (learned != NULL)
        provenance_close(learned);
    free(learned);
}

tundish_status
pipeline_open(const struct pipeline_options *options, struct pipeline *ret_pipeline)
{
    struct plan_options plan_options = {
        .worker_count = options->worker_count,
        .replicas = options->replicas,
        .root_seed = options->has_seed ? options->seed : pipeline_draw_seed(),
        .cache_folder = options->cache,
        .sample = sample_input,
    };
    struct pipeline *pipeline = ret_pipeline;
    tundish_status status;

    *pipeline = (struct pipeline){ .worker_count = options->worker_count };
    status = spec_open(options->path, options->root, &pipeline->errors, &pipeline->file);
    if (status != TUNDISH_OK) {
        if (pipeline->errors.count == 0)
            spec_complain(&pipeline->errors, 0, 0, "%s", tnd_error_text());
        return status == TUNDISH_E_PIPELINE ? status : TUNDISH_E_SYSTEM;
    }
    status = choose_stream(pipeline, options->stream);
    if (status != TUNDISH_OK)
        return status;
    status = pipeline_open_learned(options, pipeline->file, &pipeline->errors, &pipeline->learned);
    if (status != TUNDISH_OK)
        return status;
    plan_options.learned = pipeline->learned;
    pipeline->plans = tnd_zalloc(options->worker_count, sizeof(struct plan *));
    /* The first worker that cannot be planned gives the error: the others have the same one. */
    for (uint32_t w = 0; w < options->worker_count; w++) {
        plan_options.worker = w;
        status = plan_open(pipeline->file, pipeline->stream, &plan_options, &pipeline->errors,
                           &pipeline->plans[w]);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

void
pipeline_close(struct pipeline *pipeline)
{
    for (uint32_t w = 0; pipeline->plans != NULL && w < pipeline->worker_count; w++)
        plan_close(pipeline->plans[w]);
    free(pipeline->plans);
    pipeline_close_learned(pipeline->learned);
    spec_close(pipeline->file);
    spec_errors_close(&pipeline->errors);
    *pipeline = (struct pipeline){ 0 };
}
