/* parallel_for.c - run a function over 0..count-1 on several threads. */
#include "core/parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"

struct loop {
    tundish_status (*run)(void *context, uint32_t number);
    void *context;
    uint32_t count;
    _Atomic uint32_t next;
    _Atomic bool has_failed;
    pthread_mutex_t lock;
    uint32_t first; /* number that failed, and why */
    tundish_status status;
    char text[1024];
};

/* Keep the failure with the lowest number, so that the error does not depend on the threads'
 * timing. */
static void
note_failure(struct loop *loop, uint32_t number, tundish_status status)
{
    pthread_mutex_lock(&loop->lock);
    if (loop->status == TUNDISH_OK || number < loop->first) {
        loop->first = number;
        loop->status = status;
        snprintf(loop->text, sizeof loop->text, "%s", tnd_error_text());
    }
    pthread_mutex_unlock(&loop->lock);
    loop->has_failed = true;
}

/* Numbers are taken in order. When one fails, all lower numbers have been taken and are run to
 * their end, so the lowest failure is always found. */
static void *
work(void *context)
{
    struct loop *loop = context;

    while (!loop->has_failed) {
        uint32_t number = atomic_fetch_add(&loop->next, 1);
        tundish_status status;

        if (number >= loop->count)
            break;
        status = loop->run(loop->context, number);
        if (status != TUNDISH_OK)
            note_failure(loop, number, status);
    }
    return NULL;
}

tundish_status
tnd_parallel_for(uint32_t count, uint32_t thread_count,
                 tundish_status (*run)(void *context, uint32_t number), void *context)
{
    struct loop loop = { .run = run, .context = context, .count = count };
    pthread_t *threads = tnd_zalloc((size_t)thread_count + 1, sizeof *threads);
    uint32_t started = 0;

    pthread_mutex_init(&loop.lock, NULL);
    /* The caller's thread works too, so that fewer threads than asked for, or none, only make it
     * slower. */
    while (started + 1 < thread_count && started + 1 < count &&
           tnd_memory_for_threads(1) == TUNDISH_OK &&
           pthread_create(&threads[started], NULL, work, &loop) == 0)
        started++;
    work(&loop);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&loop.lock);
    free(threads);
    return loop.status == TUNDISH_OK ? TUNDISH_OK : tnd_fail(loop.status, "%s", loop.text);
}
