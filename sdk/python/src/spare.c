/* spare.c - a short list of pieces that are not in use.
 *
 * Who finds the list busy does without it. So nobody waits, and a child that was forked while
 * another thread had the list, which stays busy there, is not stuck.
 */
#include "spare.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, KEPT_MAX = 64 };

/* Less than that malloc itself keeps. */
#define SMALL_BYTES ((size_t)1 << 16)

/* Before the memory of each piece, and as long as ALIGN: what follows is aligned, too. */
union head {
    size_t capacity;
    char pad[ALIGN];
};

static _Atomic size_t used_bytes; /* of pieces that are not small */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static union head *kept[KEPT_MAX]; /* in the order in which they came back */
static size_t kept_count, kept_bytes;

static union head *
take_out(size_t index)
{
    union head *head = kept[index];

    kept_count--;
    kept_bytes -= head->capacity;
    memmove(&kept[index], &kept[index + 1], (kept_count - index) * sizeof kept[0]);
    return head;
}

/* The smallest that will do. One of more than twice the size is left for a large column. */
static union head *
find_kept(size_t capacity)
{
    size_t best = kept_count;

    for (size_t i = 0; i < kept_count; i++)
        if (kept[i]->capacity >= capacity && kept[i]->capacity / 2 <= capacity &&
            (best == kept_count || kept[i]->capacity < kept[best]->capacity))
            best = i;
    return best == kept_count ? NULL : take_out(best);
}

void *
spare_take(size_t byte_count)
{
    size_t capacity = (byte_count / ALIGN + 1) * ALIGN;
    union head *head = NULL;

    if (byte_count > SIZE_MAX / 2)
        return NULL;
    if (capacity >= SMALL_BYTES && pthread_mutex_trylock(&lock) == 0) {
        head = find_kept(capacity);
        pthread_mutex_unlock(&lock);
    }
    if (head == NULL) {
        head = aligned_alloc(ALIGN, sizeof *head + capacity);
        if (head == NULL)
            return NULL;
        head->capacity = capacity;
    }
    if (capacity >= SMALL_BYTES)
        atomic_fetch_add(&used_bytes, head->capacity);
    return head + 1;
}

void
spare_give(void *memory)
{
    union head *head;

    if (memory == NULL)
        return;
    head = (union head *)memory - 1;
    if (head->capacity < SMALL_BYTES) {
        free(head);
        return;
    }
    atomic_fetch_sub(&used_bytes, head->capacity);
    if (pthread_mutex_trylock(&lock) != 0) {
        free(head);
        return;
    }
    if (kept_count == KEPT_MAX)
        free(take_out(0));
    kept[kept_count++] = head;
    kept_bytes += head->capacity;
    while (kept_bytes > atomic_load(&used_bytes))
        free(take_out(0));
    pthread_mutex_unlock(&lock);
}
