/* door.c - see door.h. */
#include "source/files/door.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"

#define ONE_READER (UINT64_C(1) << 32)
#define DESCRIPTOR UINT64_C(0xFFFFFFFF)

/* Half of the descriptors that the process may have, after the soft limit has been raised to the
 * hard one. The other half is for sockets, shared memory and the cache. */
static uint32_t
descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 256;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur / 2 > 1 << 20 ? 1 << 20 : (uint32_t)(limit.rlim_cur / 2);
}

void
doors_open(struct doors *doors)
{
    *doors = (struct doors){ .limit = descriptor_limit() };
    pthread_mutex_init(&doors->lock, NULL);
}

void
doors_close(struct doors *doors)
{
    must(doors->count == 0);
    free(doors->open);
    pthread_mutex_destroy(&doors->lock);
}

bool
door_enter(struct door *door, int *ret_descriptor)
{
    uint64_t word = atomic_load_explicit(&door->word, memory_order_relaxed);

    /* The count and the descriptor are in one word: a descriptor that is closed at the same time
     * makes the exchange fail, and a reader never enters with a number that has been reused. */
    while ((word & DESCRIPTOR) != 0)
        if (atomic_compare_exchange_weak_explicit(&door->word, &word, word + ONE_READER,
                                                  memory_order_acquire, memory_order_relaxed)) {
            *ret_descriptor = (int)(word & DESCRIPTOR) - 1;
            return true;
        }
    return false;
}

void
door_leave(struct door *door)
{
    /* Pairs with the exchange in try_close: the reads are done. */
    atomic_fetch_sub_explicit(&door->word, ONE_READER, memory_order_release);
}

/* With the lock held. False: a reader is inside. */
static bool
try_close(struct doors *doors, struct door *door)
{
    uint64_t word = atomic_load_explicit(&door->word, memory_order_relaxed);

    if (word > DESCRIPTOR || !atomic_compare_exchange_strong_explicit(
                                 &door->word, &word, 0, memory_order_acquire, memory_order_relaxed))
        return false;
    close((int)word - 1);
    /* The last door moves to the index of the one that is closed. */
    doors->open[door->index] = doors->open[--doors->count];
    doors->open[door->index]->index = door->index;
    return true;
}

/* With the lock held. Close doors without readers, round robin, until one more may be opened. If
 * all have readers the limit is exceeded, which is better than a failed read. */
static void
make_room(struct doors *doors)
{
    for (uint32_t left = doors->count; left > 0 && doors->count >= doors->limit; left--) {
        if (doors->hand >= doors->count)
            doors->hand = 0;
        if (!try_close(doors, doors->open[doors->hand]))
            doors->hand++;
    }
}

/* With the lock held. */
static void
note_open(struct doors *doors, struct door *door)
{
    doors->open = tnd_grow(doors->open, doors->count, sizeof *doors->open);
    door->index = doors->count;
    doors->open[doors->count++] = door;
}

void
door_open(struct doors *doors, struct door *door, int descriptor, int *ret_descriptor)
{
    pthread_mutex_lock(&doors->lock);
    /* Another reader was faster: its descriptor is used, and this one is not needed. */
    if (door_enter(door, ret_descriptor)) {
        close(descriptor);
    } else {
        make_room(doors);
        note_open(doors, door);
        *ret_descriptor = descriptor;
        atomic_store_explicit(&door->word, ((uint64_t)descriptor + 1) | ONE_READER,
                              memory_order_release);
    }
    pthread_mutex_unlock(&doors->lock);
}

void
door_close(struct doors *doors, struct door *door)
{
    pthread_mutex_lock(&doors->lock);
    if (atomic_load_explicit(&door->word, memory_order_relaxed) != 0)
        /* No reads are under way when a file is closed. */
        must(try_close(doors, door));
    pthread_mutex_unlock(&doors->lock);
}
