/* budget.c - memory that tasks share.
 *
 * Tasks end in the order in which they began, and one that waits for memory must not block an
 * earlier one. The first task therefore has a part of its own and never waits; later tasks share a
 * smaller part, and each wakes up as the first in its turn at the latest. */
#include "column/budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"

struct budget {
    pthread_mutex_t lock;
    pthread_cond_t
        given; /* signalled when memory is given back or another task becomes the first */
    struct budget_task *first;
    struct budget_task **end;
    char *limit;
    uint64_t bytes, of_task, of_later, kept;
    uint64_t held, peak;
    uint64_t held_later; /* by all tasks but the first */
    uint32_t thread_count;
};

struct budget *
budget_open(uint64_t bytes, uint32_t thread_count, const char *limit)
{
    struct budget *budget = tnd_zalloc(1, sizeof *budget);
    bool is_shared = thread_count > 1;

    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->given, NULL);
    budget->end = &budget->first;
    budget->limit = tnd_strdup(limit);
    budget->bytes = bytes;
    budget->thread_count = thread_count;
    budget->of_later = is_shared ? bytes / 4 : 0;
    budget->kept = bytes / 8 / thread_count;
    budget->of_task = is_shared ? bytes - bytes / 4 - bytes / 8 : bytes;
    return budget;
}

void
budget_close(struct budget *budget)
{
    if (budget == NULL)
        return;
    must(budget->held == 0);
    pthread_cond_destroy(&budget->given);
    pthread_mutex_destroy(&budget->lock);
    free(budget->limit);
    free(budget);
}

uint64_t
budget_of_task(const struct budget_task *task)
{
    return task->budget != NULL ? task->budget->of_task : UINT64_MAX;
}

uint64_t
budget_kept(const struct budget_task *task)
{
    return task->budget != NULL ? task->budget->kept : UINT64_MAX;
}

void
budget_begin(struct budget_task *task)
{
    struct budget *budget = task->budget;

    if (budget == NULL)
        return;
    pthread_mutex_lock(&budget->lock);
    must(!task->is_begun && task->held == 0);
    task->is_begun = true;
    task->next = NULL;
    *budget->end = task;
    budget->end = &task->next;
    pthread_mutex_unlock(&budget->lock);
}

void
budget_end(struct budget_task *task)
{
    struct budget *budget = task->budget;
    struct budget_task **link;

    if (budget == NULL)
        return;
    pthread_mutex_lock(&budget->lock);
    must(task->is_begun && task->held == 0);
    for (link = &budget->first; *link != task; link = &(*link)->next)
        ;
    *link = task->next;
    if (*link == NULL)
        budget->end = link;
    /* The next task is the first now: its memory no longer counts against the later tasks. */
    if (link == &budget->first && budget->first != NULL) {
        budget->held_later -= budget->first->held;
        pthread_cond_broadcast(&budget->given);
    }
    task->is_begun = false;
    pthread_mutex_unlock(&budget->lock);
}

static tundish_status
too_much(const struct budget *budget, const struct budget_task *task, uint64_t bytes)
{
    if (budget->thread_count <= 1)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "%llu more bytes, besides the %llu in use, exceed %llu (%s): use a smaller "
                        "batch_size, or allow more memory",
                        (unsigned long long)bytes, (unsigned long long)task->held,
                        (unsigned long long)budget->bytes, budget->limit);
    return tnd_fail(
        TUNDISH_E_MEMORY,
        "%llu more bytes, besides the %llu of this batch, exceed the %llu that one batch may use "
        "of the %llu (%s) that %u threads share: use a smaller batch_size, or allow more memory",
        (unsigned long long)bytes, (unsigned long long)task->held,
        (unsigned long long)budget->of_task, (unsigned long long)budget->bytes, budget->limit,
        budget->thread_count);
}

tundish_status
budget_take(struct budget_task *task, uint64_t bytes)
{
    struct budget *budget = task->budget;

    if (budget == NULL || bytes == 0)
        return TUNDISH_OK;
    /* Subtract rather than add: `bytes` comes from a file and may be any number. */
    if (task->held > budget->of_task || bytes > budget->of_task - task->held)
        return too_much(budget, task, bytes);
    pthread_mutex_lock(&budget->lock);
    while (task->is_begun && task != budget->first && bytes > budget->of_later - budget->held_later)
        pthread_cond_wait(&budget->given, &budget->lock);
    if (task->is_begun && task != budget->first)
        budget->held_later += bytes;
    task->held += bytes;
    budget->held += bytes;
    if (budget->held > budget->peak)
        budget->peak = budget->held;
    pthread_mutex_unlock(&budget->lock);
    return TUNDISH_OK;
}

void
budget_give(struct budget_task *task)
{
    struct budget *budget = task->budget;

    if (budget == NULL || task->held == 0)
        return;
    pthread_mutex_lock(&budget->lock);
    budget->held -= task->held;
    if (task->is_begun && task != budget->first)
        budget->held_later -= task->held;
    task->held = 0;
    /* Waiting tasks want different amounts: one that is woken alone might not fit. */
    pthread_cond_broadcast(&budget->given);
    pthread_mutex_unlock(&budget->lock);
}

uint64_t
budget_peak(struct budget *budget)
{
    uint64_t peak;

    pthread_mutex_lock(&budget->lock);
    peak = budget->peak;
    pthread_mutex_unlock(&budget->lock);
    return peak;
}
