/* stores.c - see stores.h. */
#include "remote/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

/* Names may come from records: a list of them must not grow with the data. */
enum { STORES_MAX = 16 };

/* Stores are added, with the lock, and stay: they are found without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct store *_Atomic first;

/* Without what may be secret in an address: user and password. */
void
store_name(const struct remote_url *url, char name[STORE_NAME_BYTES])
{
    const char *host = strstr(url->name, "://") + 3;
    size_t bytes = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', bytes);
    const char *begin = at != NULL ? at + 1 : host;
    size_t scheme_bytes = (size_t)(host - url->name), room = STORE_NAME_BYTES - 1 - scheme_bytes;

    bytes -= (size_t)(begin - host);
    bytes = bytes < room ? bytes : room;
    memcpy(name, url->name, scheme_bytes);
    memcpy(name + scheme_bytes, begin, bytes);
    name[scheme_bytes + bytes] = '\0';
}

static struct store *
open_store(const char *name)
{
    struct store *store = tnd_zalloc(1, sizeof *store);

    snprintf(store->name, sizeof store->name, "%s", name);
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* The link to the store of that name; NULL in it: there is none. */
static struct store *_Atomic *
find_link(char name[STORE_NAME_BYTES])
{
    struct store *_Atomic *link = &first;
    struct store *store;
    unsigned count = 0;

    /* Pairs with the store of add_store. */
    while ((store = atomic_load_explicit(link, memory_order_acquire)) != NULL &&
           strcmp(store->name, name) != 0) {
        if (++count == STORES_MAX - 1)
            strcpy(name, "others");
        link = &store->next;
    }
    return link;
}

/* Another thread may have added it meanwhile. */
static struct store *
add_store(char name[STORE_NAME_BYTES])
{
    struct store *_Atomic *link;
    struct store *store;

    pthread_mutex_lock(&lock);
    link = find_link(name);
    store = atomic_load_explicit(link, memory_order_relaxed);
    if (store == NULL) {
        store = open_store(name);
        /* Pairs with the loads of find_link and stores_next. */
        atomic_store_explicit(link, store, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return store;
}

struct store *
stores_find(const struct remote_url *url)
{
    char name[STORE_NAME_BYTES];
    struct store *store;

    store_name(url, name);
    store = atomic_load_explicit(find_link(name), memory_order_acquire);
    return store != NULL ? store : add_store(name);
}

struct store *
stores_next(const struct store *previous)
{
    return atomic_load_explicit(previous != NULL ? &previous->next : &first, memory_order_acquire);
}

void
store_note(struct store *store, int64_t took_ns)
{
    store->recent_ns[store->recent_count++ % STORE_RECENT] = took_ns;
}

static int
by_time(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return (one > other) - (one < other);
}

int64_t
store_median_ns(const struct store *store)
{
    int64_t sorted[STORE_RECENT];

    if (store->recent_count < STORE_RECENT)
        return 0;
    memcpy(sorted, store->recent_ns, sizeof sorted);
    qsort(sorted, STORE_RECENT, sizeof *sorted, by_time);
    return sorted[STORE_RECENT / 2];
}

void
store_wait_begin(struct store *store, struct store_wait *wait, const char *name)
{
    wait->name = name;
    wait->since_ns = tnd_clock_ns();
    pthread_mutex_lock(&store->lock);
    wait->next = store->waits;
    store->waits = wait;
    pthread_mutex_unlock(&store->lock);
}

void
store_wait_end(struct store *store, struct store_wait *wait)
{
    struct store_wait **link;

    pthread_mutex_lock(&store->lock);
    for (link = &store->waits; *link != wait; link = &(*link)->next)
        continue;
    *link = wait->next;
    store->waited_ns += (uint64_t)(tnd_clock_ns() - wait->since_ns);
    pthread_mutex_unlock(&store->lock);
}

uint64_t
store_waited_ns(struct store *store)
{
    uint64_t waited_ns;
    int64_t now_ns = tnd_clock_ns();

    pthread_mutex_lock(&store->lock);
    waited_ns = store->waited_ns;
    for (const struct store_wait *wait = store->waits; wait != NULL; wait = wait->next)
        waited_ns += (uint64_t)(now_ns - wait->since_ns);
    pthread_mutex_unlock(&store->lock);
    return waited_ns;
}

int64_t
store_longest_wait_ns(struct store *store, char *name, size_t name_bytes)
{
    const struct store_wait *longest = NULL;
    int64_t ns = 0;

    pthread_mutex_lock(&store->lock);
    for (const struct store_wait *wait = store->waits; wait != NULL; wait = wait->next)
        if (longest == NULL || wait->since_ns < longest->since_ns)
            longest = wait;
    if (longest != NULL) {
        ns = tnd_clock_ns() - longest->since_ns;
        snprintf(name, name_bytes, "%s", longest->name);
    }
    pthread_mutex_unlock(&store->lock);
    return ns;
}
