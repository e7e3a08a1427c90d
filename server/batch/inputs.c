/* inputs.c - checks at the start that all files of a stream exist, stage by stage,
 * and that there is a cache folder if something must be kept in it.
 *
 * No rows are read. Names come from the list that a function runs on, and the readers of its body
 * are asked to check each. A list that depends on the content of rows is not checked, since only
 * reading could tell.
 */
#include "batch/inputs.h"

#include <stdatomic.h>
#include <unistd.h>

#include "batch/evaluate.h"
#include "core/cache_folder.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/arguments.h"
#include "order/failure.h"
#include "order/planning.h"
#include "plan/plan.h"
#include "source/source.h"

/* Further names are checked when they are read: a start must not take minutes. */
enum { NAMES_MAX = 100000 };

/* evaluation_shards: auto is five per reader, and there is at least one reader. */
enum { AUTO_SHARDS_LEAST = 5 };

static tundish_status check_graph(struct order_instance *instance);

/* True if elements are held in memory or listed, and only pass stages that make no datasets. */
static bool
is_list(const struct plan_node *node)
{
    if (node->source != NULL)
        return node->source->order.is_list || node->source->words_are_values;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_list(node->inputs[i]))
            return false;
    return node->body == NULL;
}

/* True for names that list_files found: these files exist. */
static bool
is_found(const struct plan_node *node)
{
    for (; node->source == NULL; node = node->inputs[0])
        if (node->content != NULL || node->input_count != 1)
            return false;
    return node->source->lists_files;
}

/* True for a shard that the plan inserted or numbered. */
static bool
is_planned_shard(const struct plan_node *node)
{
    const struct shard_arguments *arguments = node->arguments;

    return node->order == &order_shard && arguments->whole_round;
}

/* The node of all names, including those that other workers read: every node must report the same
 * missing file. Later stages only choose among them or repeat them endlessly. */
static const struct plan_node *
all_names(const struct plan_node *node)
{
    while (node->content == NULL && node->input_count == 1 &&
           (node->order->shuffles_in != NULL || is_planned_shard(node) ||
            (node->order != &order_shard && order_is_endless(node))))
        node = node->inputs[0];
    return node;
}

/* Check that each shard has an element: the first pull of a shard fails otherwise. */
static tundish_status
check_shard(const struct plan_node *shard, struct order_instance *instance)
{
    uint64_t words[PLAN_WIDTH_MAX];
    struct order_iterator *iterator = NULL;
    tundish_status status = order_open(shard, instance, &iterator);
    size_t count = 0;

    if (status == TUNDISH_OK)
        status = order_status(order_next(iterator, words, 1, &count));
    run_words_release(words, count, shard->width, shard->run_words);
    order_close(iterator);
    return status;
}

static tundish_status
check_source(const struct plan_node *source, struct order_instance *instance)
{
    struct order_iterator *iterator = NULL;
    tundish_status status = order_open(source, instance, &iterator);

    must_in_debug(source->source->order.check != NULL);
    if (status == TUNDISH_OK)
        status = iterator->ops->check(iterator);
    order_close(iterator);
    return status;
}

/* Check the body of a function for one name. Takes over the words. */
static tundish_status
check_name(const struct order_iterator *function, const struct plan_node *names,
           const uint64_t *words)
{
    struct order_scope *scope = NULL;
    tundish_status status = order_scope_open(function->instance, names, words, &scope);
    struct order_instance *body;

    if (status != TUNDISH_OK)
        return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
    body = order_instance_open_body(function, scope);
    status = check_graph(body);
    order_instance_close(body);
    order_scope_close(scope, names);
    return status;
}

static bool
is_stopped(const struct order_instance *instance)
{
    const _Atomic int *stop = instance->services->stop;

    return stop != NULL && atomic_load(stop) != 0;
}

static tundish_status
check_names(const struct order_iterator *function, const struct plan_node *names)
{
    uint64_t words[PLAN_WIDTH_MAX];
    struct order_iterator *iterator = NULL;
    tundish_status status = order_open(names, function->instance, &iterator);
    enum order_result result = ORDER_OK;
    size_t count;

    for (uint32_t i = 0; i < NAMES_MAX && status == TUNDISH_OK && result == ORDER_OK &&
                         !is_stopped(function->instance);
         i++) {
        result = order_next(iterator, words, 1, &count);
        status = order_status(result);
        if (result == ORDER_OK)
            status = check_name(function, names, words);
    }
    order_close(iterator);
    return status;
}

static tundish_status
check_function(const struct plan_node *node, struct order_instance *instance)
{
    const struct plan_node *names = all_names(node->inputs[0]);
    struct order_iterator *function = NULL;
    tundish_status status;

    if (!is_list(names) || is_found(names) || order_is_endless(names))
        return TUNDISH_OK;
    status = order_open(node, instance, &function);
    if (status == TUNDISH_OK)
        status = check_names(function, names);
    order_close(function);
    return status;
}

static tundish_status
check_graph(struct order_instance *instance)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < instance->graph->node_count && status == TUNDISH_OK; i++) {
        const struct plan_node *node = instance->graph->nodes[i];

        if (node->source != NULL && node->source->order.check != NULL)
            status = check_source(node, instance);
        else if (is_planned_shard(node) && is_list(node->inputs[0]))
            status = check_shard(node, instance);
        else if (node->body != NULL)
            status = check_function(node, instance);
    }
    return status;
}

/* Check the sources that need no iterator, also those in functions. */
static tundish_status
check_sources(const struct plan_graph *graph, const char *root)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < graph->node_count && status == TUNDISH_OK; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->source != NULL && node->source->can_begin != NULL)
            status = node->source->can_begin(node->state, root);
        if (status == TUNDISH_OK && node->body != NULL)
            status = check_sources(node->body, root);
    }
    return status;
}

static bool
has_url(const struct spec_value *value)
{
    if (value == NULL)
        return false;
    for (uint32_t i = 0; value->kind == SPEC_LIST && i < value->count; i++)
        if (has_url(&value->items[i]))
            return true;
    return value->kind == SPEC_TEXT && spec_is_url(value->text);
}

bool
inputs_name_urls(const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        bool is_source = node->source != NULL && node->stage != NULL;

        for (uint32_t k = 0; is_source && k < node->stage->info->parameter_count; k++)
            if ((node->stage->info->parameters[k].types & TYPE_PATHS) != 0 &&
                has_url(node->stage->arguments[k]))
                return true;
        if (node->body != NULL && inputs_name_urls(node->body))
            return true;
    }
    return false;
}

static bool
needs_cache(const struct plan_graph *graph, bool has_urls)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        const struct source_ops *source = node->source;

        if (source != NULL && source->needs_cache != NULL &&
            source->needs_cache(node->state, has_urls))
            return true;
        if (node->body != NULL && needs_cache(node->body, has_urls))
            return true;
    }
    return false;
}

/* Now, and not at the first step. Where nothing must be kept, an unfit cache folder only costs the
 * time that an index would save. */
static tundish_status
check_cache(const struct plan *plan, const char *path)
{
    tundish_status status = TUNDISH_OK;
    int folder = -1;

    if (needs_cache(plan->graph, inputs_name_urls(plan->graph)))
        status = tnd_cache_folder_open(path, &folder);
    if (folder >= 0)
        close(folder);
    return status;
}

static tundish_status
check_plan(const struct plan *plan, struct source_files *files, const _Atomic int *stop)
{
    int32_t shards = plan->stream->distribute.evaluation_shards;
    struct evaluation evaluation = { .files = files, .scratch = scratch_open() };
    struct order_services services = {
        .files = files,
        .stop = stop,
        .worker = plan->options.worker,
        .worker_count = plan->options.worker_count,
        .replicas_in_sync = plan->options.worker_count * plan->replicas,
        .shard_count = shards < 0 ? AUTO_SHARDS_LEAST : (uint32_t)shards,
        .root_seed = plan->options.root_seed,
        .memory_limit = plan->stream->deliver.memory_limit,
    };
    struct order_instance *instance;
    tundish_status status;

    evaluate_serve_order(&evaluation, &services);
    instance = order_instance_open(plan->graph, NULL, &services);
    status = check_graph(instance);
    order_instance_close(instance);
    scratch_close(evaluation.scratch);
    return status;
}

tundish_status
inputs_check(const struct plan *plan, const struct source_files_options *options,
             const _Atomic int *stop)
{
    /* A separate table of files: by the time the stream reads them, the files may have changed. */
    struct source_files_options own = *options;
    struct source_files *files = NULL;
    tundish_status status;

    own.reader_count = 0;
    status = check_cache(plan, own.cache_folder);
    if (status == TUNDISH_OK)
        status = check_sources(plan->graph, plan->file->root);
    if (status == TUNDISH_OK)
        status = source_files_open(&own, &files);
    if (status == TUNDISH_OK)
        status = check_plan(plan, files, stop);
    source_files_close(files);
    return status;
}
