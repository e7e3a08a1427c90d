/* analyze.c - passes over the data, one after the other.
 *
 * A stage that learns may need the output of an earlier one that learns too. Every pass therefore
 * learns all stages whose input can already be made, until none is left, as tf.Transform runs its
 * analyzers in phases. */
#include "learn/analyze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/sample.h"
#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/parallel_for.h"
#include "core/plural.h"
#include "learn/interruption.h"
#include "learn/learn_view.h"
#include "learn/pass.h"
#include "learn/results/artifact_folder.h"
#include "learn/results/provenance.h"

/* A terminal shows one line that is overwritten; in a log the lines add up, so they come less
 * often. */
static const int64_t PROGRESS_NS = INT64_C(1000000000), PROGRESS_LOG_NS = INT64_C(30000000000);

struct analysis {
    const struct analyze_options *options;
    struct learners learners;
    uint32_t run; /* index in learners.runs of the run that is being learned */
    struct learn_view view;
    struct spec_stream stream; /* the view's, cut where a pass ends */
    struct learned learned;
    bool *is_learned; /* of each stage of the view */
    struct provenance_name *names;
    size_t name_count;
    struct input_files files; /* what the stream reads, hashed with the first pass */
    uint32_t pass_count;
    int cache_folder;
    struct artifact_folder *folder;
    bool is_terminal; /* where progress is shown */
    int64_t said_ns, began_ns;
};

static void
say_progress(void *context, uint64_t rows)
{
    struct analysis *analysis = context;
    int64_t now = tnd_clock_ns();
    int64_t every_ns = analysis->is_terminal ? PROGRESS_NS : PROGRESS_LOG_NS;

    if (analysis->options->is_quiet || now - analysis->said_ns < every_ns)
        return;
    analysis->said_ns = now;
    tnd_log_print("pass %u: %llu rows, %.0f per second%s", analysis->pass_count,
                  (unsigned long long)rows,
                  (double)rows / ((double)(now - analysis->began_ns + 1) / 1e9),
                  analysis->is_terminal ? "\033[K\r" : "\n");
}

/* How many stages of the view lead up to the last that is still to be learned; 0: all are learned.
 */
static uint32_t
next_to_learn(const struct analysis *analysis)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < analysis->view.dataset.stage_count; i++)
        if (learned_is_needed(&analysis->view.dataset.stages[i]) && !analysis->is_learned[i])
            last = i + 1;
    return last;
}

/* The learner of a stage of the view, which must have one. */
static const struct learner *
learner_at(const struct analysis *analysis, uint32_t stage)
{
    const struct learners *learners = &analysis->learners;
    uint32_t i = 0;

    while (learners->list[i].run != analysis->run ||
           learners->list[i].at != analysis->view.written_at[stage]) {
        i++;
        must(i < learners->count);
    }
    return &learners->list[i];
}

/* Plan this pass over as many stages as possible. The observer blocks at the first stage that needs
 * something that is not learned yet; the plan is then made again without that stage and those after
 * it. */
static tundish_status
plan_pass(struct analysis *analysis, struct observer *observer, struct terms_memory *memory,
          struct plan **ret_plan)
{
    const struct analyze_options *options = analysis->options;
    uint32_t count = next_to_learn(analysis);

    for (;;) {
        struct plan_options plan_options = {
            .worker_count = 1,
            .replicas = 1,
            .cache_folder = options->cache_folder,
            .learned = &analysis->learned,
            .learning = &observer->learning,
            .sample = sample_input,
        };
        tundish_status status;

        *observer = (struct observer){
            .stages = analysis->view.dataset.stages,
            .stage_count = count,
            .is_learned = analysis->is_learned,
            .folder = analysis->folder,
            .cache_folder = analysis->cache_folder,
            .thread_count = options->thread_count,
            .memory = memory,
        };
        observer_open(observer);
        analysis->stream.dataset.stage_count = count;
        status =
            plan_open(options->file, &analysis->stream, &plan_options, options->errors, ret_plan);
        if (status == TUNDISH_OK && observer->observed_count > 0)
            return TUNDISH_OK;
        if (status == TUNDISH_OK)
            plan_close(*ret_plan);
        if (status == TUNDISH_OK || observer->blocked <= 0 ||
            (uint32_t)observer->blocked >= count) {
            observer_close(observer);
            *observer = (struct observer){ 0 };
            return status != TUNDISH_OK
                       ? status
                       : spec_complain(options->errors, options->stream->line,
                                       options->stream->column, "nothing can be learned here");
        }
        count = (uint32_t)observer->blocked;
        observer_close(observer);
        spec_errors_close(options->errors); /* the complaint only told where the plan ends */
        *options->errors = (struct spec_errors){ .path = options->errors->path };
    }
}

static void
note_learned(struct analysis *analysis, const struct observer *observer)
{
    for (uint32_t i = 0; i < observer->observed_count; i++) {
        uint32_t stage = observer_stage_of(observer, i);

        analysis->names =
            tnd_realloc(analysis->names, analysis->name_count + 1, sizeof *analysis->names);
        analysis->names[analysis->name_count++] = (struct provenance_name){
            .name = tnd_strdup(observer_name_of(observer, i)),
            .learner = learner_at(analysis, stage),
        };
    }
    for (uint32_t i = 0; i < observer->stage_count; i++)
        analysis->is_learned[i] |= observer->is_observed[i];
}

/* Two stages must not write the same artifact, not even in different passes. */
static tundish_status
check_names(const struct analysis *analysis, const struct observer *observer)
{
    for (uint32_t i = 0; i < observer->observed_count; i++)
        for (size_t k = 0; k < analysis->name_count; k++)
            if (strcmp(analysis->names[k].name, observer_name_of(observer, i)) == 0)
                return spec_complain(
                    analysis->options->errors,
                    analysis->view.dataset.stages[observer_stage_of(observer, i)].line, 0,
                    "other statistics are already learned under the name '%s'; statistics gives it "
                    "another name",
                    analysis->names[k].name);
    return TUNDISH_OK;
}

static tundish_status
read_all(struct analysis *analysis, struct observer *observer, const struct plan *plan)
{
    const struct analyze_options *options = analysis->options;
    struct source_files_options files_options = {
        .root = options->file->root,
        .cache_folder = options->cache_folder,
        .row_group_bytes = options->stream->deliver.memory_limit,
        .skip_damage = options->stream->deliver.skip_errors,
        .remote = &options->file->remote,
        /* With one thread the pass scans files itself. */
        .reader_count = options->thread_count > 1 ? 1 : 0,
    };
    struct pass_options pass = {
        .plan = plan,
        .observer = observer,
        .thread_count = options->thread_count,
        .skip_bad = options->stream->deliver.skip_errors,
        .progress = say_progress,
        .context = analysis,
    };
    tundish_status status = source_files_open(&files_options, &pass.files);

    if (status == TUNDISH_OK)
        status = pass_run(&pass);
    source_files_close(pass.files);
    if (!options->is_quiet && status == TUNDISH_OK)
        tnd_log_print("pass %u: %llu rows%s, learning from %u column%s\n", analysis->pass_count,
                      (unsigned long long)pass.rows, pass.skipped > 0 ? " (some were bad)" : "",
                      observer->observed_count, TND_PLURAL(observer->observed_count));
    return status;
}

struct ending {
    struct analysis *analysis;
    struct observer *observer;
};

/* The results of a pass first: their failure is the one to tell. */
static tundish_status
end_part(void *context, uint32_t number)
{
    const struct ending *ending = context;
    struct analysis *analysis = ending->analysis;
    const struct analyze_options *options = analysis->options;
    tundish_status status;

    if (number == 0)
        return observer_finish(ending->observer);
    status = input_files_find(options->file, &options->stream->dataset, &analysis->files);
    return status == TUNDISH_OK ? input_files_hash(&analysis->files) : status;
}

/* A file's hash is made by one thread, whose time the others use for the results. After the first
 * pass: should a file change while later ones read it, the next analysis sees that. */
static tundish_status
end_pass(struct analysis *analysis, struct observer *observer)
{
    struct ending ending = { analysis, observer };

    return tnd_parallel_for(analysis->pass_count == 1 ? 2 : 1, analysis->options->thread_count,
                            end_part, &ending);
}

static tundish_status
run_pass(struct analysis *analysis)
{
    struct terms_memory memory = { .limit_bytes = analysis->options->memory_bytes };
    struct observer observer = { 0 };
    struct plan *plan = NULL;
    tundish_status status = plan_pass(analysis, &observer, &memory, &plan);

    analysis->pass_count++;
    analysis->began_ns = analysis->said_ns = tnd_clock_ns();
    if (status == TUNDISH_OK)
        status = check_names(analysis, &observer);
    if (status == TUNDISH_OK)
        status = read_all(analysis, &observer, plan);
    if (status == TUNDISH_OK)
        status = end_pass(analysis, &observer);
    if (status == TUNDISH_OK)
        note_learned(analysis, &observer);
    plan_close(plan);
    observer_close(&observer);
    return status;
}

/* Remove the origin before the first artifact changes: until the new origin is written, the folder
 * holds a mixture and must not be used. */
static void
forget_origin(const struct artifact_folder *folder)
{
    char *path = tnd_sprintf("%s/origin", folder->path);

    unlink(path);
    free(path);
}

static void
close_analysis(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->name_count; i++)
        free((void *)(uintptr_t)analysis->names[i].name);
    free(analysis->names);
    provenance_close(&analysis->learned);
    input_files_close(&analysis->files);
    learners_close(&analysis->learners);
    artifact_folder_close(analysis->folder);
    if (analysis->cache_folder >= 0)
        close(analysis->cache_folder);
}

static tundish_status
learn_run(struct analysis *analysis)
{
    const struct learner_run *run = &analysis->learners.runs[analysis->run];
    uint32_t count;
    tundish_status status = TUNDISH_OK;

    learn_view_open(&analysis->view, &run->dataset);
    count = analysis->view.dataset.stage_count;
    analysis->stream.dataset = analysis->view.dataset;
    analysis->is_learned = tnd_zalloc((size_t)count + 1, sizeof *analysis->is_learned);
    for (uint32_t i = 0; i < count; i++)
        /* Earlier runs have learned the stages before this run's first. */
        analysis->is_learned[i] = analysis->view.written_at[i] < run->first;
    while (status == TUNDISH_OK && next_to_learn(analysis) > 0)
        status = run_pass(analysis);
    free(analysis->is_learned);
    learn_view_close(&analysis->view);
    return status;
}

static tundish_status
learn_all(struct analysis *analysis)
{
    const struct analyze_options *options = analysis->options;
    tundish_status status = artifact_folder_hold(analysis->folder);

    if (status == TUNDISH_OK)
        forget_origin(analysis->folder);
    for (; status == TUNDISH_OK && analysis->run < analysis->learners.run_count; analysis->run++)
        status = learn_run(analysis);
    if (status == TUNDISH_OK)
        status = provenance_write(analysis->files, options->stream, analysis->folder,
                                  analysis->names, analysis->name_count);
    return status;
}

tundish_status
analyze_run(const struct analyze_options *options)
{
    struct analysis analysis = { .options = options, .stream = *options->stream };
    tundish_status status = TUNDISH_OK;

    analysis.cache_folder = -1;
    analysis.is_terminal = isatty(STDERR_FILENO);
    learners_open(&options->stream->dataset, &analysis.learners);
    if (analysis.learners.count == 0)
        status =
            spec_complain(options->errors, options->stream->line, options->stream->column,
                          "stream %s has no stage that learns anything", options->stream->name);
    /* Statistics are those of all rows: one worker reads them, whatever the job's distribution. */
    analysis.stream.distribute = (struct spec_distribute){
        .replicas = 1,
        .from_function = options->stream->distribute.from_function,
        .groups = 1,
    };
    analysis.learned =
        (struct learned){ .folder = tnd_strdup(options->folder), .is_analyzing = true };
    if (status == TUNDISH_OK)
        status = tnd_cache_folder_open(options->cache_folder, &analysis.cache_folder);
    if (status == TUNDISH_OK)
        status = artifact_folder_open(options->folder, &analysis.folder);
    if (status == TUNDISH_OK) {
        status = interruption_begin(analysis.folder);
        if (status == TUNDISH_OK)
            status = learn_all(&analysis);
        interruption_end();
    }
    close_analysis(&analysis);
    return status;
}
