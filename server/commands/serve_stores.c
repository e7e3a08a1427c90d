/* serve_stores.c - the counts of stores that files at URLs are read from, among the metrics. */
#include "commands/serve.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "remote/stores.h"

/* A shorter wait for an object is as usual. */
#define DELAY_NS INT64_C(1000000000)

enum { OBJECT_BYTES = 1024 };

struct shown_store {
    struct shown_store *next;
    struct store *store;
    struct tnd_stats_store *counters;
    struct tnd_stats_delay *delay; /* NULL: nobody waits for long */
    char object[OBJECT_BYTES];     /* ... for this */
};

static void
show_counts(const struct store *store, struct tnd_stats_store *counters)
{
    const _Atomic uint64_t *retries = store->retries;

    tnd_stats_set(&counters->requests, tnd_stats_get(&store->requests));
    tnd_stats_set(&counters->active, tnd_stats_get(&store->active));
    tnd_stats_set(&counters->received, tnd_stats_get(&store->received_bytes));
    tnd_stats_set(&counters->failures, tnd_stats_get(&store->failures));
    tnd_stats_set(&counters->connection_retries, tnd_stats_get(&retries[RETRY_CONNECTION]));
    tnd_stats_set(&counters->stalled_retries, tnd_stats_get(&retries[RETRY_STALLED]));
    tnd_stats_set(&counters->server_retries, tnd_stats_get(&retries[RETRY_SERVER]));
    tnd_stats_set(&counters->short_retries, tnd_stats_get(&retries[RETRY_SHORT]));
    tnd_stats_set(&counters->range_retries, tnd_stats_get(&retries[RETRY_RANGE]));
    tnd_stats_set(&counters->slow_retries, tnd_stats_get(&retries[RETRY_SLOW]));
    tnd_stats_set(&counters->cached, tnd_stats_get(&store->cached_bytes));
    tnd_stats_set(&counters->reads, tnd_stats_get(&store->reads));
    tnd_stats_set(&counters->hits, tnd_stats_get(&store->hits));
    tnd_stats_copy(&counters->request, &store->times);
}

/* The object is a label, so another object is another set. */
static void
show_delay(struct stats *stats, struct shown_store *shown)
{
    char object[OBJECT_BYTES] = "", labels[TND_STATS_LABEL_BYTES] = "";
    int64_t waited_ns = store_longest_wait_ns(shown->store, object, sizeof object);

    if (shown->delay != NULL && (waited_ns < DELAY_NS || strcmp(object, shown->object) != 0)) {
        stats_drop(stats, shown->delay);
        shown->delay = NULL;
    }
    if (waited_ns < DELAY_NS)
        return;
    if (shown->delay == NULL) {
        stats_label(labels, "store", shown->store->name);
        stats_label(labels, "object", object);
        shown->delay = stats_add(stats, TND_STATS_KIND_delay, labels);
        memcpy(shown->object, object, sizeof object);
    }
    tnd_stats_set(&shown->delay->wait, (uint64_t)waited_ns);
}

static struct shown_store *
find_shown(struct stats *stats, struct shown_store **link, struct store *store)
{
    char labels[TND_STATS_LABEL_BYTES] = "";

    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->store == store)
            return *link;
    stats_label(labels, "store", store->name);
    *link = tnd_zalloc(1, sizeof **link);
    (*link)->store = store;
    (*link)->counters = stats_add(stats, TND_STATS_KIND_store, labels);
    return *link;
}

void
serve_show_stores(struct stats *stats, struct shown_store **shown)
{
    for (struct store *store = stores_next(NULL); store != NULL; store = stores_next(store)) {
        struct shown_store *one = find_shown(stats, shown, store);

        show_counts(store, one->counters);
        tnd_stats_set(&one->counters->wait, store_waited_ns(store));
        show_delay(stats, one);
    }
}

void
serve_forget_stores(struct shown_store **shown)
{
    while (*shown != NULL) {
        struct shown_store *next = (*shown)->next;

        free(*shown);
        *shown = next;
    }
}
