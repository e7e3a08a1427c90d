/* pass.c - all elements of a plan, once.
 *
 * A thread takes the next elements in order (a task), makes their content and counts what may be
 * counted in any order. It then waits for its turn to add up the rest. The limits of a task depend
 * only on the data, so floating-point sums are the same for any number of threads. A thread holds
 * one task, so memory does not grow with the data.
 *
 * Two locks, never held together: `source` for taking tasks, `turns` for adding up.
 */
#include "learn/pass.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/content_budget.h"
#include "batch/evaluate.h"
#include "core/memory.h"

enum { TASK_ROWS = 2048, TASK_ELEMENTS = 2048 };

struct pass {
    struct pass_options *options;
    struct evaluation order_evaluation; /* for stages whose order depends on content */
    struct budget_task order_memory;
    struct order_services services;
    struct order_instance *instance;
    struct order_iterator *iterator;

    pthread_mutex_t source;
    uint64_t next_task;
    bool ended;
    char source_text[1024];
    struct budget *budget; /* bounds the memory of all tasks' content */

    pthread_mutex_t turns;
    pthread_cond_t turned;
    uint64_t turn;
    tundish_status status; /* of the first task that failed */
    char text[1024];
};

struct task {
    uint64_t number;
    uint64_t *words;
    uint64_t element_count, row_count;
    tundish_status status; /* why the source ended early */
};

struct worker {
    struct pass *pass;
    uint32_t number;
    pthread_t thread;
};

/* Rows in an element: a batch of the root has many. */
static uint64_t
rows_of(const struct plan_node *root, const uint64_t *words)
{
    uint64_t rows = 1;

    if (root->run_words == 0 || !run_words_rows(words, root->width, root->run_words, &rows))
        return 1;
    return rows;
}

/* Fill a task up to its size. The caller holds `source`. */
static void
fill_task(struct pass *pass, struct task *task)
{
    const struct plan_node *root = pass->options->plan->graph->root;
    size_t width = root->width;

    while (task->element_count < TASK_ELEMENTS && task->row_count < TASK_ROWS) {
        /* Batches are taken one by one: only their rows tell when the task is full. */
        size_t most = root->run_words != 0 ? 1 : TASK_ELEMENTS - task->element_count, count;
        uint64_t *to = &task->words[task->element_count * width];
        enum order_result result = order_next(pass->iterator, to, most, &count);

        for (size_t i = 0; i < count; i++)
            task->row_count += rows_of(root, to + i * width);
        task->element_count += count;
        if (result == ORDER_OK)
            continue;
        pass->ended = true;
        if (result == ORDER_FAILED) {
            task->status = TUNDISH_E_DATA;
            snprintf(pass->source_text, sizeof pass->source_text, "%s", tnd_error_text());
        }
        return;
    }
}

static bool
take_task(struct pass *pass, struct task *task, struct budget_task *memory)
{
    bool taken = false;

    pthread_mutex_lock(&pass->source);
    task->element_count = task->row_count = 0;
    task->status = TUNDISH_OK;
    if (!pass->ended) {
        fill_task(pass, task);
        taken = task->element_count > 0 || task->status != TUNDISH_OK;
        if (taken) {
            task->number = pass->next_task++;
            /* Within the lock: the budget lets the oldest task have most memory, so tasks must
             * begin in their order. */
            budget_begin(memory);
        }
    }
    pthread_mutex_unlock(&pass->source);
    return taken;
}

static tundish_status
make_content(struct worker *worker, const struct task *task, struct evaluation *evaluation)
{
    const struct plan_node *root = worker->pass->options->plan->graph->root;
    struct evaluate_request request = { .words = task->words,
                                        .stride = root->width,
                                        .count = (int64_t)task->element_count };
    struct frame frame;

    if (task->element_count == 0)
        return TUNDISH_OK;
    return evaluate(evaluation, root, &request, &frame);
}

/* Add up a task's observations, in the order of tasks. Nothing is added after a failure, so the
 * error is that of the first bad row. */
static void
take_turn(struct pass *pass, const struct task *task, const struct observations *observations,
          tundish_status status, uint64_t skipped)
{
    pthread_mutex_lock(&pass->turns);
    while (pass->turn != task->number)
        pthread_cond_wait(&pass->turned, &pass->turns);
    if (pass->status == TUNDISH_OK) {
        if (status == TUNDISH_OK)
            status = observer_feed(observations);
        if (status != TUNDISH_OK)
            snprintf(pass->text, sizeof pass->text, "%s", tnd_error_text());
        else if (task->status != TUNDISH_OK)
            snprintf(pass->text, sizeof pass->text, "%s", pass->source_text);
        pass->status = status != TUNDISH_OK ? status : task->status;
        pass->options->rows += task->row_count;
        pass->options->skipped += skipped;
        if (pass->options->progress != NULL)
            pass->options->progress(pass->options->context, pass->options->rows);
    }
    pass->turn++;
    /* All wake, as only one of them has the next number; signal could wake another. */
    pthread_cond_broadcast(&pass->turned);
    pthread_mutex_unlock(&pass->turns);
}

static bool
has_failed(struct pass *pass)
{
    bool failed;

    pthread_mutex_lock(&pass->turns);
    failed = pass->status != TUNDISH_OK;
    pthread_mutex_unlock(&pass->turns);
    return failed;
}

static void *
work(void *context)
{
    struct worker *worker = context;
    struct pass *pass = worker->pass;
    const struct plan_node *root = pass->options->plan->graph->root;
    struct evaluation evaluation = {
        .files = pass->options->files,
        .scratch = scratch_open(),
        .skip_bad = pass->options->skip_bad,
    };
    struct budget_task memory = { .budget = pass->budget };
    struct task task = { .words =
                             tnd_zalloc((size_t)TASK_ELEMENTS * root->width, sizeof *task.words) };

    scratch_share(evaluation.scratch, &memory);
    while (!has_failed(pass) && take_task(pass, &task, &memory)) {
        struct observations observations = { .thread = worker->number };
        uint64_t skipped = evaluation.skipped;
        tundish_status status;

        evaluation.observations = &observations;
        status = make_content(worker, &task, &evaluation);
        take_turn(pass, &task, &observations, status, evaluation.skipped - skipped);
        /* Memory goes back only after the turn: observations refer to it. */
        run_words_release(task.words, task.element_count, root->width, root->run_words);
        scratch_reset(evaluation.scratch);
        budget_end(&memory);
    }
    scratch_close(evaluation.scratch);
    free(task.words);
    return NULL;
}

static tundish_status
open_order(struct pass *pass)
{
    const struct plan *plan = pass->options->plan;

    pass->order_evaluation = (struct evaluation){
        .files = pass->options->files,
        .scratch = scratch_open(),
        .skip_bad = pass->options->skip_bad,
    };
    pass->order_memory.budget = content_budget_open_for_order(plan);
    scratch_share(pass->order_evaluation.scratch, &pass->order_memory);
    pass->services = (struct order_services){
        .files = pass->options->files,
        .worker_count = 1,
        .replicas_in_sync = 1,
        .root_seed = plan->options.root_seed,
    };
    evaluate_serve_order(&pass->order_evaluation, &pass->services);
    pass->instance = order_instance_open(plan->graph, NULL, &pass->services);
    return order_open(plan->graph->root, pass->instance, &pass->iterator);
}

static void
run_threads(struct pass *pass)
{
    uint32_t count = pass->options->thread_count, started = 0;
    struct worker *workers = tnd_zalloc(count, sizeof *workers);

    for (uint32_t i = 0; i < count; i++)
        workers[i] = (struct worker){ .pass = pass, .number = i };
    /* Worker 0 is the caller's thread. If a thread cannot start, the others do its work. */
    for (uint32_t i = 1; i < count; i++, started++)
        if (tnd_memory_for_threads(1) != TUNDISH_OK ||
            pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            break;
    work(&workers[0]);
    for (uint32_t i = 1; i <= started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
}

tundish_status
pass_run(struct pass_options *options)
{
    struct pass pass = { .options = options };
    tundish_status status = open_order(&pass);
    const char *damage;

    options->rows = options->skipped = 0;
    if (status == TUNDISH_OK) {
        pass.budget = content_budget_open(options->plan, options->thread_count);
        pthread_mutex_init(&pass.source, NULL);
        pthread_mutex_init(&pass.turns, NULL);
        pthread_cond_init(&pass.turned, NULL);
        run_threads(&pass);
        pthread_cond_destroy(&pass.turned);
        pthread_mutex_destroy(&pass.turns);
        pthread_mutex_destroy(&pass.source);
        budget_close(pass.budget);
        if (pass.status != TUNDISH_OK)
            status = tnd_fail(pass.status, "%s", pass.text);
        options->skipped += source_files_damaged(options->files, &damage);
    }
    order_close(pass.iterator);
    order_instance_close(pass.instance);
    scratch_close(pass.order_evaluation.scratch);
    budget_close(pass.order_memory.budget);
    return status;
}
