/* session_vocabularies.c - sets of metrics for vocabularies. */
#include "session/session_vocabularies.h"

#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "content/vocabulary/vocab.h"
#include "core/memory.h"
#include "core/must.h"
#include "session/session_private.h"

/* A walk over the stages of a plan. */
struct walk {
    const struct session *session;
    struct vocabulary_lines *lines;
    struct evaluation_stage *stage; /* the thread's, or NULL */
    uint32_t said;                  /* vocabularies of this stage so far */
};

static struct vocabulary_line *
find_line(const struct vocabulary_lines *lines, const char *name)
{
    for (uint32_t i = 0; i < lines->count; i++)
        if (strcmp(lines->list[i].name, name) == 0)
            return &lines->list[i];
    return NULL;
}

static struct vocabulary_line *
add_vocabulary(struct walk *walk, const char *name)
{
    struct vocabulary_lines *lines = walk->lines;
    struct vocabulary_line *line;
    char labels[TND_STATS_LABEL_BYTES];

    lines->list = tnd_realloc(lines->list, lines->count + 1, sizeof *lines->list);
    line = &lines->list[lines->count++];
    session_stats_label(labels, walk->session);
    stats_label(labels, "vocabulary", name);
    line->name = tnd_strdup(name);
    line->values = stats_add(walk->session->counters.stats, TND_STATS_KIND_vocabulary, labels);
    return line;
}

static void
describe(void *context, const char *name, const struct vocab *vocab)
{
    struct walk *walk = context;
    struct vocabulary_line *line;

    if (find_line(walk->lines, name) != NULL)
        return;
    line = add_vocabulary(walk, name);
    tnd_stats_set(&line->values->terms, vocab_count(vocab));
    tnd_stats_set(&line->values->table, vocab_bytes(vocab));
}

static void
count_one(void *context, const char *name, const struct vocab *vocab)
{
    struct walk *walk = context;
    struct evaluation_stage *stage = walk->stage;
    struct vocabulary_line *line = find_line(walk->lines, name);

    (void)vocab;
    must_in_debug(stage != NULL);
    if (line == NULL)
        line = add_vocabulary(walk, name);
    stage->vocabularies =
        tnd_realloc(stage->vocabularies, walk->said + 1, sizeof(struct tnd_stats_vocabulary *));
    stage->vocabularies[walk->said++] = line->values;
}

static void
walk_graph(struct walk *walk, const struct plan_graph *graph, struct evaluation_counters *counters)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            walk_graph(walk, node->body, counters);
        if (node->content == NULL || node->content->vocabularies == NULL)
            continue;
        walk->stage = counters != NULL ? &counters->stages[node->index] : NULL;
        walk->said = 0;
        node->content->vocabularies(node->state, counters != NULL ? count_one : describe, walk);
    }
}

void
session_vocabularies_describe(struct vocabulary_lines *lines, const struct session *session)
{
    struct walk walk = { .session = session, .lines = lines };

    walk_graph(&walk, session->plan->graph, NULL);
}

void
session_vocabularies_count(struct vocabulary_lines *lines, const struct session *session,
                           struct evaluation_counters *counters)
{
    struct walk walk = { .session = session, .lines = lines };

    walk_graph(&walk, session->plan->graph, counters);
}

void
session_vocabularies_close(struct vocabulary_lines *lines, struct stats *stats)
{
    for (uint32_t i = 0; i < lines->count; i++) {
        stats_drop(stats, lines->list[i].values);
        free(lines->list[i].name);
    }
    free(lines->list);
    *lines = (struct vocabulary_lines){ 0 };
}
