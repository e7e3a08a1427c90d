/* serve_python.c - the figures of interpreters that run the user's own Python, among the metrics.
 */
#include "commands/serve.h"

#include <stdlib.h>

#include "content/content.h"
#include "core/memory.h"
#include "source/source.h"
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

static bool
runs_code(const struct spec_stage *stage)
{
    const struct content_ops *content = content_find(stage->info->name);
    const struct source_ops *source = source_find(stage->info->name);

    return (content != NULL && content->code_hash != NULL) ||
           (source != NULL && source->code_hash != NULL);
}

static void check_dataset(const struct spec_dataset *dataset, const char *group,
                          struct spec_errors *errors);

static void
check_value(const struct spec_value *value, const char *group, struct spec_errors *errors)
{
    if (value == NULL)
        return;
    if (value->dataset != NULL)
        check_dataset(value->dataset, group, errors);
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count;
         i++)
        check_value(&value->items[i], group, errors);
}

static void
check_dataset(const struct spec_dataset *dataset, const char *group, struct spec_errors *errors)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];

        if (runs_code(stage))
            spec_complain(errors, stage->line, stage->column,
                          "%s runs Python as the server's user, and the trainers of all users in "
                          "group %s get what it makes: give --allow-python if that is meant",
                          stage->info->name, group);
        for (uint32_t k = 0; k < stage->info->parameter_count; k++)
            check_value(stage->arguments[k], group, errors);
    }
}

tundish_status
serve_check_python(const struct spec_file *file, const char *group, struct spec_errors *errors)
{
    size_t before = errors->count;

    for (uint32_t i = 0; i < file->stream_count; i++)
        check_dataset(&file->streams[i].dataset, group, errors);
    return errors->count == before
               ? TUNDISH_OK
               : tnd_fail(TUNDISH_E_PIPELINE, "the pipeline file runs Python in a shared server");
}
