/* deal_probe.c - what a pipeline deals, said to the program that asks: one line in, some out.
 *
 *     WORKERS REPLICAS EPOCHS STEPS FROM_WORKERS FROM_REPLICAS THREADS PIPELINE_FILE
 *
 * PIPELINE_FILE is the text, on the same line. The first EPOCHS epochs of a job of that many
 * workers and replicas, its slices made by THREADS threads, are printed, STEPS of each at most, as
 * JSON lines:
 *
 *     ["refused", TEXT]
 *     ["slice", EPOCH, STEP, WORKER, REPLICA, {COLUMN: {...}} or null]
 *     ["end", EPOCH]
 *     ["error", TEXT]     the step that the others end before
 *     ["resume", TEXT]    a job that resumed there went another way
 *     ["done"]
 *
 * FROM_WORKERS is not 0: places are taken at every step of a job of FROM_WORKERS and FROM_REPLICAS,
 * and a job of WORKERS and REPLICAS, with one thread, that resumes there must go on as if
 * undisturbed. FROM_WORKERS is 0: nothing is resumed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/dealer.h"
#include "batch/output.h"
#include "commands/print_batch.h"
#include "core/memory.h"
#include "core/must.h"

enum { WORKERS_MAX = 4096, EPOCHS_MAX = 4, STEPS_MAX = 512, STATE_MAX = 256, THREADS_MAX = 8 };

/* What stages note in jobs of the size that is resumed, so that it leaps. At each other element.
 */
static struct {
    uint32_t worker_count, replicas;
    struct order_landmarks of_workers[WORKERS_MAX];
} noted;

static struct order_landmarks *
landmarks_of(uint32_t worker, uint32_t worker_count, uint32_t replicas)
{
    return worker_count == noted.worker_count && replicas == noted.replicas
               ? &noted.of_workers[worker]
               : NULL;
}

static void
begin_notes(uint32_t worker_count, uint32_t replicas)
{
    for (uint32_t w = 0; w < noted.worker_count; w++)
        order_landmarks_close(&noted.of_workers[w]);
    noted.worker_count = worker_count;
    noted.replicas = replicas;
    for (uint32_t w = 0; w < worker_count; w++)
        noted.of_workers[w].step = 2;
}

struct job {
    const struct spec_file *file;
    struct source_files *files;
    uint32_t worker_count, replicas;
    struct plan *plans[WORKERS_MAX];
    struct dealer *dealers[WORKERS_MAX];
    uint32_t thread_count;
    struct evaluation evaluations[THREADS_MAX];
};

struct state {
    uint64_t words[STATE_MAX];
    size_t count;
};

/* What a job dealt: for each epoch the text of each step; the last may be an error's. */
struct dealt {
    uint64_t epochs, steps; /* bounds */
    uint32_t worker_count;
    struct state *states[EPOCHS_MAX]; /* of each worker */
    char *texts[EPOCHS_MAX][STEPS_MAX + 1];
    uint64_t counts[EPOCHS_MAX];
    bool failed;
};

static tundish_status
job_open(struct job *job, const struct spec_file *file, struct source_files *files,
         uint32_t worker_count, uint32_t replicas, uint32_t thread_count,
         struct spec_errors *errors)
{
    tundish_status status = TUNDISH_OK;

    must(thread_count >= 1 && thread_count <= THREADS_MAX);
    *job = (struct job){
        .file = file,
        .files = files,
        .worker_count = worker_count,
        .replicas = replicas,
        .thread_count = thread_count,
    };
    for (uint32_t t = 0; t < thread_count; t++)
        job->evaluations[t] = (struct evaluation){ .files = files, .scratch = scratch_open() };
    for (uint32_t w = 0; w < worker_count && status == TUNDISH_OK; w++) {
        struct plan_options options = {
            .worker = w,
            .worker_count = worker_count,
            .replicas = replicas,
            .root_seed = 1,
        };
        struct dealer_options dealer_options = {
            .files = files,
            .landmarks = landmarks_of(w, worker_count, replicas),
        };

        status = plan_open(file, &file->streams[0], &options, errors, &job->plans[w]);
        if (status == TUNDISH_OK)
            status = dealer_open(job->plans[w], &dealer_options, &job->dealers[w]);
    }
    return status;
}

static void
job_close(struct job *job)
{
    for (uint32_t w = 0; w < WORKERS_MAX; w++) {
        dealer_close(job->dealers[w]);
        plan_close(job->plans[w]);
    }
    for (uint32_t t = 0; t < job->thread_count; t++)
        scratch_close(job->evaluations[t].scratch);
}

static tundish_status
print_slice(const struct plan *plan, struct evaluation *evaluation, uint32_t worker,
            uint32_t replica, const struct deal_round *round, FILE *out)
{
    const struct schema *schema = &plan->element_spec;
    const struct deal_slice *slice = &round->slices[replica];
    struct evaluate_request request = {
        .words = slice->words,
        .stride = plan->graph->root->width,
        .count = 1,
    };
    struct frame frame;
    struct json json;
    tundish_status status;

    json_start(&json, out);
    json_array(&json);
    json_text(&json, "slice");
    json_uint(&json, round->epoch);
    json_uint(&json, round->step);
    json_uint(&json, worker);
    json_uint(&json, replica);
    if (slice->present) {
        status = evaluate(evaluation, plan->graph->root, &request, &frame);
        if (status != TUNDISH_OK)
            return status;
        json_object(&json);
        for (uint32_t i = 0; i < schema->count; i++) {
            struct output_column column;

            if (frame.count == 0) /* no rows at all */
                output_empty(&schema->columns[i], &column);
            else
                output_column(&frame, schema, i, evaluation->scratch, &column);
            json_key(&json, schema->columns[i].name);
            print_column(&json, &column);
        }
        json_object_end(&json);
    } else {
        json_null(&json);
    }
    json_array_end(&json);
    fputc('\n', out);
    return TUNDISH_OK;
}

/* One slice's line, or why there is none. */
struct printed {
    char *text;
    size_t bytes;
    tundish_status status;
    char *error;
};

struct printing {
    struct job *job;
    const struct deal_round *rounds;
    struct printed *printed;
    uint32_t thread;
};

/* Every so many slices, from this thread's number on. */
static void *
print_some(void *argument)
{
    const struct printing *printing = argument;
    struct job *job = printing->job;
    struct evaluation *evaluation = &job->evaluations[printing->thread];
    uint32_t slice_count = job->worker_count * job->replicas;

    scratch_reset(evaluation->scratch);
    for (uint32_t i = printing->thread; i < slice_count; i += job->thread_count) {
        struct printed *printed = &printing->printed[i];
        uint32_t worker = i / job->replicas;
        FILE *out = open_memstream(&printed->text, &printed->bytes);

        printed->status = print_slice(job->plans[worker], evaluation, worker, i % job->replicas,
                                      &printing->rounds[worker], out);
        must(fclose(out) == 0);
        if (printed->status != TUNDISH_OK)
            printed->error = tnd_strdup(tnd_error_text());
    }
    return NULL;
}

static void
print_all(struct job *job, const struct deal_round *rounds, struct printed *printed)
{
    struct printing printings[THREADS_MAX];
    pthread_t threads[THREADS_MAX];

    for (uint32_t t = 0; t < job->thread_count; t++) {
        printings[t] = (struct printing){ job, rounds, printed, t };
        if (t > 0)
            must(pthread_create(&threads[t], NULL, print_some, &printings[t]) == 0);
    }
    print_some(&printings[0]);
    for (uint32_t t = 1; t < job->thread_count; t++)
        pthread_join(threads[t], NULL);
}

/* The slices up to the first that cannot be made. */
static tundish_status
print_slices(struct job *job, const struct deal_round *rounds, FILE *out)
{
    uint32_t slice_count = job->worker_count * job->replicas;
    struct printed *printed = tnd_zalloc(slice_count, sizeof *printed);
    tundish_status status = TUNDISH_OK;

    print_all(job, rounds, printed);
    for (uint32_t i = 0; i < slice_count; i++) {
        if (status == TUNDISH_OK && printed[i].status != TUNDISH_OK)
            status = tnd_fail(printed[i].status, "%s", printed[i].error);
        if (status == TUNDISH_OK)
            fwrite(printed[i].text, 1, printed[i].bytes, out);
        free(printed[i].text);
        free(printed[i].error);
    }
    free(printed);
    return status;
}

static tundish_status
print_step(struct job *job, struct deal_round *rounds, uint32_t *ret_present, FILE *out)
{
    tundish_status status = TUNDISH_OK;
    uint32_t present = 0;

    for (uint32_t w = 0; w < job->worker_count && status == TUNDISH_OK; w++) {
        status = dealer_next(job->dealers[w], &rounds[w]);
        present += rounds[w].present_count;
    }
    if (status == TUNDISH_OK && present > 0)
        status = print_slices(job, rounds, out);
    *ret_present = present;
    return status;
}

/* The text of the next step of all workers, or NULL at the epoch's end. */
static char *
step_text(struct job *job, bool *ret_failed)
{
    struct deal_round *rounds = tnd_zalloc(job->worker_count, sizeof *rounds);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    uint32_t present = 0;
    tundish_status status = print_step(job, rounds, &present, out);

    must(fclose(out) == 0);
    for (uint32_t w = 0; w < job->worker_count; w++)
        dealer_release_round(&rounds[w]);
    free(rounds);
    *ret_failed = status != TUNDISH_OK;
    if (status == TUNDISH_OK && present > 0)
        return text;
    free(text);
    return status == TUNDISH_OK ? NULL : tnd_sprintf("error: %s", tnd_error_text());
}

static tundish_status
start_epoch(struct job *job, struct state *ret_states)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t w = 0; w < job->worker_count && status == TUNDISH_OK; w++) {
        const uint64_t *words;

        status = dealer_start_epoch(job->dealers[w]);
        ret_states[w].count = dealer_epoch_state(job->dealers[w], &words);
        must(ret_states[w].count <= STATE_MAX);
        memcpy(ret_states[w].words, words, ret_states[w].count * sizeof *words);
    }
    return status;
}

static void
deal(struct job *job, struct dealt *dealt)
{
    for (uint64_t epoch = 0; epoch < dealt->epochs && !dealt->failed; epoch++) {
        bool opened = start_epoch(job, dealt->states[epoch]) == TUNDISH_OK;
        uint64_t *count = &dealt->counts[epoch];

        if (!opened) {
            dealt->texts[epoch][(*count)++] = tnd_sprintf("error: %s", tnd_error_text());
            dealt->failed = true;
        }
        while (*count < dealt->steps && !dealt->failed) {
            char *text = step_text(job, &dealt->failed);

            if (text == NULL)
                break;
            dealt->texts[epoch][(*count)++] = text;
        }
        /* Cut off: what this epoch would leave to the next is not known. */
        if (*count == dealt->steps || dealt->failed)
            dealt->epochs = epoch + 1;
    }
}

static void
dealt_close(struct dealt *dealt)
{
    for (uint64_t epoch = 0; epoch < EPOCHS_MAX; epoch++) {
        for (uint64_t step = 0; step < dealt->counts[epoch]; step++)
            free(dealt->texts[epoch][step]);
        free(dealt->states[epoch]);
    }
    free(dealt);
}

static void
print_text(const char *what, const char *text)
{
    struct json json;

    json_start(&json, stdout);
    json_array(&json);
    json_text(&json, what);
    json_text(&json, text);
    json_array_end(&json);
    putchar('\n');
}

static void
print_dealt(const struct dealt *dealt)
{
    for (uint64_t epoch = 0; epoch < dealt->epochs; epoch++) {
        for (uint64_t step = 0; step < dealt->counts[epoch]; step++)
            if (strncmp(dealt->texts[epoch][step], "error: ", 7) == 0)
                print_text("error", dealt->texts[epoch][step] + 7);
            else
                fputs(dealt->texts[epoch][step], stdout);
        if (dealt->failed && dealt->counts[epoch] > 0 &&
            strncmp(dealt->texts[epoch][dealt->counts[epoch] - 1], "error: ", 7) == 0)
            return;
        if (dealt->counts[epoch] < dealt->steps)
            printf("[\"end\", %" PRIu64 "]\n", epoch);
    }
}

/* Go on at a step, and compare with what the undisturbed job dealt, to the end of its last epoch.
 */
static bool
compare_from(struct job *job, const struct dealt *dealt, uint64_t epoch, uint64_t step)
{
    struct state *states = tnd_alloc(job->worker_count * sizeof *states);
    bool failed = false, same = true;

    for (; epoch < dealt->epochs && same && !failed; epoch++, step = 0) {
        for (; step < dealt->counts[epoch] && same && !failed; step++) {
            char *text = step_text(job, &failed);

            same = text != NULL && strcmp(text, dealt->texts[epoch][step]) == 0;
            if (!same) {
                char *longer = tnd_sprintf("step %" PRIu64 " of epoch %" PRIu64 ": %s after a "
                                           "resume, but %s undisturbed",
                                           step, epoch, text != NULL ? text : "the end",
                                           dealt->texts[epoch][step]);

                print_text("resume", longer);
                free(longer);
            }
            free(text);
        }
        if (same && !failed && step < dealt->steps) {
            char *text = step_text(job, &failed);

            same = text == NULL;
            if (!same)
                print_text("resume", text);
            free(text);
        }
        if (same && !failed && epoch + 1 < dealt->epochs)
            failed = start_epoch(job, states) != TUNDISH_OK;
    }
    free(states);
    return same;
}

/* Where all workers deal one order, any of them has the state of all. */
static bool
resume_at(struct job *job, const struct dealt *dealt, const struct dealt *from, uint64_t epoch,
          uint64_t step)
{
    for (uint32_t w = 0; w < job->worker_count; w++) {
        const struct state *state = &from->states[epoch][w % from->worker_count];

        if (dealer_resume(job->dealers[w], epoch, step, state->words, state->count) != TUNDISH_OK) {
            print_text("resume", tnd_error_text());
            return false;
        }
    }
    return compare_from(job, dealt, epoch, step);
}

/* At every step up to the first that failed: what lies behind an error has no place. */
static void
resume_everywhere(struct job *job, const struct dealt *dealt, const struct dealt *from)
{
    for (uint64_t epoch = 0; epoch < dealt->epochs && epoch < from->epochs; epoch++)
        for (uint64_t step = 0; step <= dealt->counts[epoch]; step++) {
            bool behind_error =
                step > 0 && strncmp(dealt->texts[epoch][step - 1], "error: ", 7) == 0;

            if (behind_error || (step == dealt->counts[epoch] && step == dealt->steps))
                continue;
            if (!resume_at(job, dealt, from, epoch, step)) {
                char *text =
                    tnd_sprintf("resumed at step %" PRIu64 " of epoch %" PRIu64, step, epoch);

                print_text("resume", text);
                free(text);
                return;
            }
        }
}

struct request {
    uint32_t workers, replicas, from_workers, from_replicas, threads;
    uint64_t epochs, steps;
};

static struct dealt *
deal_job(const struct request *request, const struct spec_file *file, struct source_files *files,
         uint32_t workers, uint32_t replicas, uint32_t threads, struct spec_errors *errors)
{
    struct dealt *dealt = tnd_zalloc(1, sizeof *dealt);
    struct job job;

    dealt->worker_count = workers;
    for (uint64_t epoch = 0; epoch < EPOCHS_MAX; epoch++)
        dealt->states[epoch] = tnd_zalloc(workers, sizeof *dealt->states[epoch]);
    dealt->epochs = request->epochs;
    dealt->steps = request->steps;
    if (job_open(&job, file, files, workers, replicas, threads, errors) == TUNDISH_OK) {
        deal(&job, dealt);
    } else {
        dealt_close(dealt);
        dealt = NULL;
    }
    job_close(&job);
    return dealt;
}

static void
answer(const struct request *request, const struct spec_file *file, struct source_files *files,
       struct spec_errors *errors)
{
    struct dealt *dealt = deal_job(request, file, files, request->workers, request->replicas,
                                   request->threads, errors);
    struct dealt *from = NULL;
    struct job job;

    if (dealt == NULL)
        return;
    print_dealt(dealt);
    if (request->from_workers > 0)
        from = deal_job(request, file, files, request->from_workers, request->from_replicas, 1,
                        errors);
    if (from != NULL) {
        must(job_open(&job, file, files, request->workers, request->replicas, 1, errors) ==
             TUNDISH_OK);
        resume_everywhere(&job, dealt, from);
        job_close(&job);
        dealt_close(from);
    }
    dealt_close(dealt);
}

static void
take_request(const struct request *request, const char *text)
{
    struct source_files_options options = { .root = "/" };
    struct spec_errors errors = { 0 };
    struct source_files *files = NULL;
    struct spec_file *file = NULL;

    begin_notes(request->workers, request->replicas);
    must(source_files_open(&options, &files) == TUNDISH_OK);
    if (spec_open_text(text, strlen(text), "pipeline.yaml", "/", &errors, &file) == TUNDISH_OK)
        answer(request, file, files, &errors);
    if (errors.count > 0) {
        char *sentences = spec_errors_text(&errors);

        print_text("refused", sentences);
        free(sentences);
    }
    spec_close(file);
    spec_errors_close(&errors);
    source_files_close(files);
    printf("[\"done\"]\n");
    fflush(stdout);
}

int
main(void)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        struct request request;
        int at = 0;

        must(sscanf(line,
                    "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32
                    " %" SCNu32 " %n",
                    &request.workers, &request.replicas, &request.epochs, &request.steps,
                    &request.from_workers, &request.from_replicas, &request.threads, &at) == 7 &&
             at > 0);
        must(request.workers <= WORKERS_MAX && request.from_workers <= WORKERS_MAX);
        must(request.epochs <= EPOCHS_MAX && request.steps <= STEPS_MAX);
        take_request(&request, line + at);
    }
    begin_notes(0, 0);
    free(line);
    return 0;
}
