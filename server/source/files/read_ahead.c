/* read_ahead.c - see read_ahead.h. */
#include "source/files/read_ahead.h"

#include <signal.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/status.h"

/* With the lock held. */
static void
enqueue_job(struct read_ahead *ahead, struct read_ahead_job *job)
{
    job->next = NULL;
    if (ahead->first == NULL)
        ahead->first = job;
    else
        ahead->last->next = job;
    ahead->last = job;
    pthread_cond_signal(&ahead->filled);
}

static void *
run_thread(void *argument)
{
    struct read_ahead *ahead = argument;
    uint8_t *buffer = tnd_alloc(READ_AHEAD_BUFFER_BYTES);

    pthread_mutex_lock(&ahead->lock);
    while (!ahead->is_closing) {
        struct read_ahead_job *job = ahead->first;

        if (job == NULL) {
            pthread_cond_wait(&ahead->filled, &ahead->lock);
            continue;
        }
        ahead->first = job->next;
        pthread_mutex_unlock(&ahead->lock);
        bool more = job->step(job, buffer);

        pthread_mutex_lock(&ahead->lock);
        if (more)
            enqueue_job(ahead, job);
    }
    pthread_mutex_unlock(&ahead->lock);
    free(buffer);
    return NULL;
}

/* Signals are for other threads. With the lock held. */
static void
start_threads(struct read_ahead *ahead)
{
    uint32_t count = ahead->thread_count;
    sigset_t all, before;
    int error = 0;

    if (tnd_memory_for_threads(count) == TUNDISH_OK) {
        ahead->threads = tnd_zalloc(count, sizeof *ahead->threads);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (; ahead->started_count < count && error == 0; ahead->started_count += error == 0)
            error = pthread_create(&ahead->threads[ahead->started_count], NULL, run_thread, ahead);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (error != 0)
            (void)tnd_fail_errno(error, "cannot start a thread");
    }
    if (ahead->started_count < count)
        tnd_log(TND_LOG_WARNING, "files", "files are read ahead by %u threads, not %u: %s",
                ahead->started_count, count, tnd_error_text());
    ahead->thread_count = ahead->started_count;
}

bool
read_ahead_add(struct read_ahead *ahead, struct read_ahead_job *job)
{
    bool is_added;

    pthread_mutex_lock(&ahead->lock);
    if (ahead->started_count == 0 && ahead->thread_count > 0)
        start_threads(ahead);
    is_added = ahead->started_count > 0;
    if (is_added)
        enqueue_job(ahead, job);
    pthread_mutex_unlock(&ahead->lock);
    return is_added;
}

void
read_ahead_open(struct read_ahead *ahead, uint32_t thread_count)
{
    *ahead = (struct read_ahead){ .thread_count = thread_count };
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->filled, NULL);
}

void
read_ahead_close(struct read_ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->is_closing = true;
    pthread_cond_broadcast(&ahead->filled);
    pthread_mutex_unlock(&ahead->lock);
    for (uint32_t i = 0; i < ahead->started_count; i++)
        pthread_join(ahead->threads[i], NULL);
    free(ahead->threads);
    pthread_cond_destroy(&ahead->filled);
    pthread_mutex_destroy(&ahead->lock);
}
