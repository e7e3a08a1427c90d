/* stores.c - see stores.h. */
#include "remote/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

/* Names may come from records: a list of them must not grow with the data. */
enum { STORES_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct store *first;

/* Without what may be secret in an address: user and password. */
void
store_name(const struct remote_url *url, char name[STORE_NAME_BYTES])
{
    const char *host = strstr(url->name, "://") + 3;
    size_t bytes = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', bytes);
    const char *begin = at != NULL ? at + 1 : host;

    snprintf(name, STORE_NAME_BYTES, "%.*s%.*s", (int)(host - url->name), url->name,
             (int)(host + bytes - begin), begin);
}

static struct store *
open_store(const char *name)
{
    struct store *store = tnd_zalloc(1, sizeof *store);

    snprintf(store->name, sizeof store->name, "%s", name);
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

struct store *
stores_find(const struct remote_url *url)
{
    struct store **link = &first, *found;
    char name[STORE_NAME_BYTES];
    unsigned count = 0;

    store_name(url, name);
    pthread_mutex_lock(&lock);
    for (; *link != NULL && strcmp((*link)->name, name) != 0; link = &(*link)->next)
        if (++count == STORES_MAX - 1)
            strcpy(name, "others");
    if (*link == NULL)
        *link = open_store(name);
    found = *link;
    pthread_mutex_unlock(&lock);
    return found;
}

struct store *
stores_next(const struct store *previous)
{
    struct store *next;

    pthread_mutex_lock(&lock);
    next = previous != NULL ? previous->next : first;
    pthread_mutex_unlock(&lock);
    return next;
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
