/* peer_ahead.c - see peer_ahead.h. */
#include "source/peer/peer_ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"

/* The rows of a step. */
struct peer_asked {
    struct peer_asked *next; /* asked for after this one */
    uint64_t epoch, step;
    struct peer_rows *rows;
    uint32_t holders;
    bool is_forgotten; /* not in the list any more: the last holder closes it */
};

struct peer_ahead {
    pthread_mutex_t lock;
    struct peer_asked *first, **end;
    size_t count;
};

struct peer_ahead *
peer_ahead_open(void)
{
    struct peer_ahead *ahead = tnd_zalloc(1, sizeof *ahead);

    pthread_mutex_init(&ahead->lock, NULL);
    ahead->end = &ahead->first;
    return ahead;
}

static void
asked_close(struct peer_asked *asked)
{
    peer_rows_close(asked->rows);
    free(asked);
}

void
peer_ahead_close(struct peer_ahead *ahead)
{
    if (ahead == NULL)
        return;
    for (struct peer_asked *asked = ahead->first, *next; asked != NULL; asked = next) {
        next = asked->next;
        must(asked->holders == 0);
        asked_close(asked);
    }
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

void
peer_ahead_add(struct peer_ahead *ahead, uint64_t epoch, uint64_t step, struct peer_rows *rows)
{
    struct peer_asked *asked = tnd_zalloc(1, sizeof *asked);

    asked->epoch = epoch;
    asked->step = step;
    asked->rows = rows;
    pthread_mutex_lock(&ahead->lock);
    *ahead->end = asked;
    ahead->end = &asked->next;
    ahead->count++;
    pthread_mutex_unlock(&ahead->lock);
}

/* Take the first of that step out of the list. With the lock held. */
static struct peer_asked *
take_out(struct peer_ahead *ahead, uint64_t epoch, uint64_t step)
{
    for (struct peer_asked **at = &ahead->first; *at != NULL; at = &(*at)->next) {
        struct peer_asked *asked = *at;

        if (asked->epoch != epoch || asked->step != step)
            continue;
        *at = asked->next;
        if (*at == NULL)
            ahead->end = at;
        ahead->count--;
        return asked;
    }
    return NULL;
}

void
peer_ahead_forget(struct peer_ahead *ahead, uint64_t epoch, uint64_t step)
{
    struct peer_asked *asked;
    bool is_held = false;

    pthread_mutex_lock(&ahead->lock);
    asked = take_out(ahead, epoch, step);
    if (asked != NULL) {
        asked->is_forgotten = true;
        is_held = asked->holders > 0;
    }
    pthread_mutex_unlock(&ahead->lock);
    if (asked != NULL && !is_held)
        asked_close(asked);
}

uint64_t
peer_ahead_bytes(struct peer_ahead *ahead)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&ahead->lock);
    for (const struct peer_asked *asked = ahead->first; asked != NULL; asked = asked->next)
        bytes += peer_rows_bytes(asked->rows);
    pthread_mutex_unlock(&ahead->lock);
    return bytes;
}

/* Holders are counted because a step may be forgotten while a reader copies its rows. The wait for
 * an answer must not happen under this lock. */
void
peer_ahead_hold(struct peer_ahead *ahead, struct scratch *scratch, struct peer_held *ret_held)
{
    struct peer_held held = { 0 };

    pthread_mutex_lock(&ahead->lock);
    held.asked = scratch_array(scratch, ahead->count + 1, sizeof(struct peer_asked *));
    for (struct peer_asked *asked = ahead->first; asked != NULL; asked = asked->next) {
        asked->holders++;
        held.asked[held.count++] = asked;
    }
    pthread_mutex_unlock(&ahead->lock);
    *ret_held = held;
}

void
peer_ahead_release(struct peer_ahead *ahead, const struct peer_held *held)
{
    for (size_t i = 0; i < held->count; i++) {
        struct peer_asked *asked = held->asked[i];
        bool is_last;

        pthread_mutex_lock(&ahead->lock);
        is_last = --asked->holders == 0 && asked->is_forgotten;
        pthread_mutex_unlock(&ahead->lock);
        /* Closing takes the lock of the peers, so it is done without this one. */
        if (is_last)
            asked_close(asked);
    }
}

struct peer_rows *
peer_held_find(const struct peer_held *held, const struct peer_row *row)
{
    for (size_t i = 0; i < held->count; i++)
        if (peer_rows_has(held->asked[i]->rows, row))
            return held->asked[i]->rows;
    return NULL;
}
