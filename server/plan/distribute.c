/* distribute.c - inserts rebatching and sharding where TensorFlow inserts them.
 *
 * For each worker TensorFlow builds dataset -> rebatch -> autoshard; this adds nodes to the same
 * effect. The rules are those of distribute/input_ops.py and
 * core/grappler/optimizers/data/auto_shard.cc; those of rebatching stand in rebatch.c.
 */
#include "plan/build.h"

#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "order/planning.h"
#include "plan/rebatch.h"
#include "plan/shard_edges.h"
#include "source/source.h"

static void
set_shard(struct plan_node *node, const struct plan_options *options, bool whole_round)
{
    struct shard_arguments *arguments = node->arguments;

    arguments->shards = options->worker_count;
    arguments->index = options->worker;
    arguments->whole_round = whole_round;
}

static struct plan_node *
insert_shard(struct plan_graph *graph, struct plan_node *below, const struct plan_options *options,
             bool whole_round)
{
    struct plan_node *shard = build_inserted(graph, below, &order_shard);

    set_shard(shard, options, whole_round);
    return shard;
}

/* Note the role of a shard that the plan has inserted or numbered. */
static void
mark_shard(struct plan_node *node, enum shard_role role)
{
    struct shard_arguments *arguments = node->arguments;

    arguments->role = role;
}

/* Unlink all shuffles at and before `link`. Returns the one nearest to a source, or `found` if
 * there is none. */
static struct plan_node *
take_out_shuffles(struct plan_node **link, struct plan_node *found)
{
    while ((*link)->order != NULL && (*link)->order->shuffles_in != NULL) {
        found = *link;
        *link = found->inputs[0];
    }
    for (uint32_t i = 0; i < (*link)->input_count; i++)
        found = take_out_shuffles(&(*link)->inputs[i], found);
    return found;
}

/* As auto_shard.cc does: remove all shuffles before the shard and put the one nearest to the source
 * right after it. Otherwise two workers with different orders could deal the same file twice. */
static void
shard_files(struct plan_graph *graph, struct edge edge, const struct plan_options *options)
{
    struct plan_node **link = &edge.reader->inputs[0];
    struct plan_node *shuffle = take_out_shuffles(link, NULL);

    *link = insert_shard(graph, *link, options, true);
    if (shuffle != NULL) {
        build_stand_after(shuffle, *link);
        *link = shuffle;
    }
}

static void
set_policy(struct plan *plan, enum spec_auto_shard policy, const char *reason)
{
    plan->policy = policy;
    plan->policy_reason = tnd_strdup(reason);
}

static bool
is_hint(const struct plan_node *node)
{
    const struct spec_value *shards = node->order == &order_shard && node->stage != NULL
                                          ? spec_get(node->stage, "num_shards")
                                          : NULL;

    return shards != NULL && shards->kind == SPEC_TEXT;
}

/* Give every shard(SHARD_HINT) this worker's numbers. */
static uint32_t
shard_hints(struct plan_graph *graph, const struct plan_options *options)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            found += shard_hints(node->body, options);
        if (!is_hint(node))
            continue;
        node->stage = NULL;
        set_shard(node, options, true);
        found++;
    }
    return found;
}

static const char *
file_reason(const struct spec_distribute *asked, const struct edges *edges)
{
    if (asked->auto_shard == SHARD_FILE)
        return "asked for";
    for (uint32_t i = 0; i < edges->count; i++)
        if (edges->list[i].deals_elements)
            return "AUTO found a list whose elements a function maps, followed by another "
                   "function: as in TensorFlow, the output of the first function is sharded";
    return "AUTO found a list of files";
}

static bool
is_of_replicas(const struct plan_node *node)
{
    return node->source != NULL && node->source->of_replicas;
}

static tundish_status
resolve_policy(struct plan_builder *builder, struct edges *files)
{
    struct plan *plan = builder->plan;
    const struct spec_distribute *asked = &plan->stream->distribute;

    if (asked->from_function) {
        set_policy(plan, SHARD_OFF, "from_function: the pipeline shards its own rows");
        return TUNDISH_OK;
    }
    for (uint32_t i = 0; plan->graph->node_count > 1 && i < plan->graph->node_count; i++)
        if (is_of_replicas(plan->graph->nodes[i]))
            return order_complain(builder->errors, plan->graph->nodes[i],
                                  "values is the only stage: replicas get its values unchanged");
    if (is_of_replicas(plan->user_root) && asked->even_repeat)
        return order_complain(builder->errors, plan->user_root,
                              "values gives each replica one value, so there are no rows to make "
                              "even: remove even: repeat");
    if (is_of_replicas(plan->user_root)) {
        set_policy(plan, SHARD_OFF, "values: one for each replica, by its number");
        return TUNDISH_OK;
    }
    if (asked->auto_shard != SHARD_AUTO && asked->auto_shard != SHARD_FILE) {
        set_policy(plan, asked->auto_shard, "asked for");
        return TUNDISH_OK;
    }
    if (shard_edges_find(plan->graph->root, files)) {
        set_policy(plan, SHARD_FILE, file_reason(asked, files));
        return TUNDISH_OK;
    }
    if (asked->auto_shard == SHARD_AUTO) {
        set_policy(plan, SHARD_DATA, "AUTO found data that is not in a list of files");
        return TUNDISH_OK;
    }
    set_policy(plan, SHARD_FILE, "asked for");
    if (plan->options.worker_count > 1)
        return spec_complain(builder->errors, asked->line, asked->column,
                             "auto_shard: FILE needs a stream that reads a list of files, and this "
                             "stream does not; use DATA or AUTO");
    return TUNDISH_OK;
}

/* Mark the shards of an evaluation: their numbers are known only when an iterator is made. */
static void
mark_shards(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            mark_shards(node->body);
        if (node->order == &order_shard && node->stage == NULL)
            mark_shard(node, SHARD_OF_EVALUATION);
    }
}

/* The link below the last batch, where elements are single rows: DATA shards of an evaluation cut
 * rows, not batches. */
static struct plan_node **
link_below_batch(struct plan_graph *graph)
{
    struct plan_node **link = &graph->root, **found = link;

    for (; (*link)->input_count == 1; link = &(*link)->inputs[0])
        if ((*link)->depth > (*link)->inputs[0]->depth)
            found = &(*link)->inputs[0];
    return found;
}

static tundish_status
cut_into_shards(struct plan_builder *builder, const struct edges *files)
{
    struct plan *plan = builder->plan;
    const struct spec_distribute *asked = &plan->stream->distribute;
    uint32_t hints = 0;

    if (order_is_endless(plan->user_root))
        return spec_complain(builder->errors, asked->line, asked->column,
                             "evaluation_shards: a shard must end, but this stream repeats without "
                             "end: remove repeat, or give it a count");
    if (plan->policy == SHARD_HINT)
        hints = shard_hints(plan->graph, &plan->options);
    for (uint32_t i = 0; plan->policy == SHARD_FILE && i < files->count; i++)
        shard_files(plan->graph, files->list[i], &plan->options);
    if (plan->policy == SHARD_DATA) {
        struct plan_node **link = link_below_batch(plan->graph);

        *link = insert_shard(plan->graph, *link, &plan->options, false);
    } else if (plan->policy == SHARD_OFF || files->count + hints == 0) {
        return spec_complain(
            builder->errors, asked->line, asked->column,
            "evaluation_shards needs a way to divide the stream: auto_shard: DATA works for any "
            "stream, FILE for a list of files, HINT with shard: SHARD_HINT");
    }
    mark_shards(plan->graph);
    return TUNDISH_OK;
}

static void
visit(struct plan_node *node, struct plan_node **sorted, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        if (sorted[i] == node)
            return;
    for (uint32_t i = 0; i < node->input_count; i++)
        visit(node->inputs[i], sorted, count);
    sorted[(*count)++] = node;
}

/* Restore the invariant that a node stands after its inputs. */
static void
sort_nodes(struct plan_graph *graph)
{
    struct plan_node **sorted = tnd_zalloc(graph->node_count, sizeof(struct plan_node *));
    uint32_t count = 0;

    visit(graph->root, sorted, &count);
    for (uint32_t i = 0; i < graph->node_count; i++)
        visit(graph->nodes[i], sorted, &count); /* unlinked shuffles, which still must be freed */
    free(graph->nodes);
    graph->nodes = sorted;
    graph->node_count = count;
}

static bool
is_url_list(const struct spec_value *value)
{
    if (value != NULL && value->kind == SPEC_TEXT)
        return spec_is_url(value->text);
    for (uint32_t i = 0; value != NULL && value->kind == SPEC_LIST && i < value->count; i++)
        if (is_url_list(&value->items[i]))
            return true;
    return false;
}

static bool
names_urls(const struct plan_node *node)
{
    for (uint32_t i = 0; node->stage != NULL && i < node->stage->info->parameter_count; i++)
        if (node->source != NULL && (node->stage->info->parameters[i].types & TYPE_PATHS) != 0 &&
            is_url_list(node->stage->arguments[i]))
            return true;
    return false;
}

/* Is there a list of files, which all nodes know? */
static bool
lists_files(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if ((node->source != NULL && (node->source->lists_files || node->source->own_files)) ||
            (node->body != NULL && lists_files(node->body)))
            return true;
    }
    return false;
}

static tundish_status
check_local_node(struct plan_builder *builder, const struct plan_node *node)
{
    if (names_urls(node))
        return order_complain(builder->errors, node,
                              "distribute.files: local is for files that lie on the nodes; URLs "
                              "are read by every node with files: shared");
    /* A name that only a row holds may be another file on each node, or none. */
    if (node->content != NULL && node->content->paths_of != NULL &&
        !lists_files(builder->plan->graph))
        return order_complain(builder->errors, node,
                              "%s with distribute.files: local reads files that list_files or "
                              "directory names, so that all nodes know where they are; this stream "
                              "has no such stage",
                              node->name);
    return TUNDISH_OK;
}

static tundish_status
check_local(struct plan_builder *builder, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        tundish_status status = check_local_node(builder, node);

        if (status == TUNDISH_OK && node->body != NULL)
            status = check_local(builder, node->body);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

/* True if each worker has its own elements here. */
static bool
is_dealt(const struct plan_node *node, const struct edges *files)
{
    if (is_hint(node) || (node->body != NULL && is_dealt(node->body->root, files)))
        return true;
    for (uint32_t i = 0; i < files->count; i++)
        if (files->list[i].reader == node)
            return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_dealt(node->inputs[i], files))
            return true;
    return false;
}

/* Find a stage whose draws depend on the number of workers. Draws depend on how many elements came
 * before; if each worker has its own elements, it counts only those, as in TensorFlow. */
static const struct plan_node *
find_own_draws(const struct plan_graph *graph, const struct edges *files, bool in_dealt)
{
    const struct plan_node *found = NULL;

    for (uint32_t i = 0; i < graph->node_count && found == NULL; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            found = find_own_draws(node->body, files, in_dealt || is_dealt(node, files));
        else if (node->stage != NULL && node->input_count > 0 &&
                 node->inputs[0]->order == &order_ordinal && (in_dealt || is_dealt(node, files)))
            found = node;
    }
    return found;
}

/* With AUTO, TensorFlow rewrites the stream even of a single worker: the shard passes everything,
 * but shuffles before it move. A stream without a distribute section is a plain tf.data program and
 * is not rewritten. */
static bool
deals_files(const struct plan *plan, uint32_t worker_count)
{
    const struct spec_distribute *asked = &plan->stream->distribute;

    return worker_count > 1 ||
           (asked->line != 0 && asked->auto_shard == SHARD_AUTO && asked->evaluation_shards == 0);
}

/* Whole batches go to a single replica, unless they get a mask. */
static bool
is_rebatched(const struct plan *plan)
{
    const struct spec_distribute *asked = &plan->stream->distribute;

    return !asked->from_function && !is_of_replicas(plan->user_root) &&
           asked->delivery == DELIVER_LANES && asked->evaluation_shards == 0 &&
           (plan->options.worker_count > 1 || plan->replicas > 1 || asked->even_repeat);
}

tundish_status
build_distribution(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    uint32_t worker_count = plan->options.worker_count;
    struct edges files = { 0 };
    tundish_status status =
        plan->stream->distribute.files_local ? check_local(builder, plan->graph) : TUNDISH_OK;

    if (status == TUNDISH_OK)
        status = resolve_policy(builder, &files);
    if (status != TUNDISH_OK)
        goto done;
    if (plan->policy == SHARD_FILE || plan->policy == SHARD_HINT)
        plan->own_draws = find_own_draws(plan->graph, &files, false);
    rebatch_resolve_rule(plan);
    if (is_rebatched(plan))
        status = rebatch_insert(builder);
    if (status != TUNDISH_OK)
        goto done;
    if (plan->stream->distribute.evaluation_shards != 0)
        status = cut_into_shards(builder, &files);
    if (plan->stream->distribute.evaluation_shards != 0)
        worker_count = 1; /* shards are dealt at run time, to any node */
    if (plan->policy == SHARD_FILE && deals_files(plan, worker_count))
        for (uint32_t i = 0; i < files.count; i++)
            shard_files(plan->graph, files.list[i], &plan->options);
    if (plan->policy == SHARD_DATA && worker_count > 1)
        plan->graph->root = insert_shard(plan->graph, plan->graph->root, &plan->options, false);
    if (plan->policy == SHARD_DATA && worker_count > 1)
        mark_shard(plan->graph->root, SHARD_LAST);
    if (plan->policy == SHARD_HINT && plan->stream->distribute.evaluation_shards == 0 &&
        shard_hints(plan->graph, &plan->options) == 0) {
        free(plan->policy_reason);
        plan->policy_reason = tnd_strdup("configured, but there is no stage shard: SHARD_HINT, so "
                                         "every worker reads everything");
    }
    sort_nodes(plan->graph);
done:
    free(files.list);
    return status;
}
