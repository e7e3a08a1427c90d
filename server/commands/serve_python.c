/* serve_python.c - see serve_python.h. */
#include "commands/serve_python.h"

#include <stdlib.h>

#include "core/memory.h"
#include "workers/python_pool.h"

struct shown_python {
    struct shown_python *next;
    uint64_t pool;
    struct tnd_stats_python *counters;
    bool is_there;
};

struct showing {
    struct stats *stats;
    struct shown_python **shown;
};

static struct shown_python *
find_shown(const struct showing *showing, uint64_t pool, const char *name)
{
    char labels[TND_STATS_LABEL_BYTES] = "";
    struct shown_python **link = showing->shown;

    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->pool == pool)
            return *link;
    stats_label(labels, "call", name);
    *link = tnd_zalloc(1, sizeof **link);
    (*link)->pool = pool;
    (*link)->counters = stats_add(showing->stats, TND_STATS_KIND_python, labels);
    return *link;
}

static void
show_pool(void *context, uint64_t pool, const struct python_figures *figures)
{
    struct showing *showing = context;
    struct shown_python *shown = find_shown(showing, pool, figures->name);
    struct tnd_stats_python *counters = shown->counters;

    shown->is_there = true;
    tnd_stats_set(&counters->workers, figures->workers);
    tnd_stats_set(&counters->limit, figures->limit);
    tnd_stats_set(&counters->rows, figures->rows);
    tnd_stats_set(&counters->restarts, figures->restarts);
    tnd_stats_set(&counters->busy, figures->busy_ns);
    tnd_stats_set(&counters->wait, figures->wait_ns);
    tnd_stats_set(&counters->cpu, figures->cpu_ns);
    tnd_stats_set(&counters->memory, figures->memory_bytes);
}

void
serve_show_python(struct stats *stats, struct shown_python **shown)
{
    struct showing showing = { .stats = stats, .shown = shown };

    for (struct shown_python *one = *shown; one != NULL; one = one->next)
        one->is_there = false;
    if (!python_pools_show(show_pool, &showing))
        return;
    for (struct shown_python **link = shown; *link != NULL;) {
        struct shown_python *one = *link;

        if (one->is_there) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        stats_drop(stats, one->counters);
        free(one);
    }
}

void
serve_forget_python(struct shown_python **shown)
{
    while (*shown != NULL) {
        struct shown_python *next = (*shown)->next;

        free(*shown);
        *shown = next;
    }
}
