/* each.c - some things, each by the next free thread. */
#include "learn/each.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"

struct each {
    tundish_status (*run)(void *context, uint32_t number);
    void *context;
    uint32_t count;
    _Atomic uint32_t next;
    _Atomic bool has_failed;
    pthread_mutex_t lock;
    uint32_t first; /* that failed, and why */
    tundish_status status;
    char text[1024];
};

static void
note_failure(struct each *each, uint32_t number, tundish_status status)
{
    pthread_mutex_lock(&each->lock);
    if (each->status == TUNDISH_OK || number < each->first) {
        each->first = number;
        each->status = status;
        snprintf(each->text, sizeof each->text, "%s", tnd_error_text());
    }
    pthread_mutex_unlock(&each->lock);
    each->has_failed = true;
}

/* Numbers are taken in order: the first that fails is run whatever fails behind it. */
static void *
work(void *context)
{
    struct each *each = context;

    while (!each->has_failed) {
        uint32_t number = atomic_fetch_add(&each->next, 1);
        tundish_status status;

        if (number >= each->count)
            break;
        status = each->run(each->context, number);
        if (status != TUNDISH_OK)
            note_failure(each, number, status);
    }
    return NULL;
}

tundish_status
each_run(uint32_t count, uint32_t thread_count,
         tundish_status (*run)(void *context, uint32_t number), void *context)
{
    struct each each = { .run = run, .context = context, .count = count };
    pthread_t *threads = tnd_zalloc((size_t)thread_count + 1, sizeof *threads);
    uint32_t started = 0;

    pthread_mutex_init(&each.lock, NULL);
    while (started + 1 < thread_count && started + 1 < count &&
           tnd_memory_for_threads(1) == TUNDISH_OK &&
           pthread_create(&threads[started], NULL, work, &each) == 0)
        started++;
    work(&each);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&each.lock);
    free(threads);
    return each.status == TUNDISH_OK ? TUNDISH_OK : tnd_fail(each.status, "%s", each.text);
}
