/* build.c - stages to nodes. */
#include "plan/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "order/planning.h"
#include "source/source.h"

enum { FUNCTION_DEPTH_MAX = 16 };

static struct plan_node *
add_node(struct plan_graph *graph, const struct spec_stage *stage, const char *name)
{
    struct plan_node *node = tnd_zalloc(1, sizeof *node);

    node->stage = stage;
    node->name = name;
    graph->nodes = tnd_realloc(graph->nodes, graph->node_count + 1, sizeof *graph->nodes);
    graph->nodes[graph->node_count++] = node;
    return node;
}

static void
set_order(struct plan_node *node, const struct order_ops *order)
{
    node->order = order;
    if (order->arguments_bytes > 0)
        node->arguments = tnd_zalloc(1, order->arguments_bytes);
}

struct plan_node *
build_order_node(struct plan_graph *graph, const struct spec_stage *stage,
                 const struct order_ops *order)
{
    struct plan_node *node = add_node(graph, stage, order->name);

    set_order(node, order);
    return node;
}

/* `name` is that of a stage, or of a source that the plan puts in its place. */
static struct plan_node *
build_node(struct plan_graph *graph, const struct spec_stage *stage, const char *name)
{
    struct plan_node *node = add_node(graph, stage, name);
    const struct order_ops *order = order_find(name);

    node->source = source_find(name);
    node->content = content_find(name);
    if (node->source != NULL)
        set_order(node, &node->source->order);
    else if (order != NULL)
        set_order(node, order);
    if (order != NULL && order->questions != NULL)
        node->content = &content_answers;
    return node;
}

static void
node_close(struct plan_node *node)
{
    if (node->source != NULL && node->state != NULL)
        node->source->close(node->state);
    else if (node->content != NULL && node->state != NULL)
        node->content->close(node->state);
    build_graph_close(node->body);
    if (node->fused != NULL)
        node->fused->close(node->fused_state);
    free(node->fused_state);
    schema_close(&node->schema);
    schema_close(&node->answers);
    free(node->state);
    free(node->inputs);
    free(node->arguments);
    free(node);
}

void
build_graph_close(struct plan_graph *graph)
{
    if (graph == NULL)
        return;
    /* What reads comes behind what it reads, so from the end. */
    for (uint32_t i = graph->node_count; i-- > 0;)
        node_close(graph->nodes[i]);
    schema_close(&graph->outer_schema);
    free(graph->nodes);
    free(graph);
}

static void
add_input(struct plan_node *node, struct plan_node *input)
{
    node->inputs = tnd_realloc(node->inputs, node->input_count + 1, sizeof(struct plan_node *));
    node->inputs[node->input_count++] = input;
}

static enum order_seeds
seeds_of(const struct order_ops *order, const struct spec_stage *stage)
{
    return order->seeds != NULL ? order->seeds(stage) : ORDER_SEEDS_NONE;
}

static void
draw_seeds(struct plan_builder *builder, struct plan_node *node, const char *parameter,
           uint32_t *function_index)
{
    struct seed_pair pair =
        seed_source_next(&builder->seeds, spec_get(node->stage, parameter), function_index);

    node->random = true;
    node->seed = pair.seed;
    node->seed2 = pair.seed2;
}

static tundish_status build_dataset(struct plan_builder *builder, struct plan_graph *graph,
                                    const struct spec_dataset *dataset, uint32_t *function_index,
                                    struct plan_node **ret_last);

/* A dataset that was built, for the seeds it draws, but that nobody reads. */
static void
give_back_nodes(struct plan_graph *graph, uint32_t node_count)
{
    while (graph->node_count > node_count)
        node_close(graph->nodes[--graph->node_count]);
}

/* What a stage unites; the dataset that decides which of them comes last. */
static tundish_status
build_inputs(struct plan_builder *builder, struct plan_graph *graph, const struct spec_stage *stage,
             uint32_t *function_index, struct plan_node ***ret_inputs, uint32_t *ret_count)
{
    const struct spec_value *datasets = spec_get(stage, "datasets");
    const struct order_ops *order = order_find(stage->info->name);
    const struct spec_value *choice =
        order->decides != NULL ? spec_get(stage, order->decides) : NULL;
    uint32_t count = datasets->count + (choice != NULL), kept = 0;
    struct plan_node **inputs = tnd_zalloc(count, sizeof(struct plan_node *));
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < count; i++) {
        const struct spec_value *value = i < datasets->count ? &datasets->items[i] : choice;
        uint32_t node_count = graph->node_count;
        tundish_status one =
            build_dataset(builder, graph, value->dataset, function_index, &inputs[kept]);

        if (one != TUNDISH_OK)
            status = one;
        if (status == TUNDISH_OK && order->takes != NULL && !order->takes(stage, i))
            give_back_nodes(graph, node_count);
        else
            kept++;
    }
    *ret_inputs = inputs;
    *ret_count = kept;
    return status;
}

/* list_files (and directory) with shuffle is the sorted list, then a shuffle of all of it. */
static struct plan_node *
shuffle_files(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *files,
              uint32_t *function_index)
{
    struct plan_node *shuffle = build_order_node(graph, NULL, &order_shuffle);

    shuffle->stage = files->stage;
    draw_seeds(builder, shuffle, "seed", function_index);
    shuffle->stage = NULL;
    add_input(shuffle, files);
    return shuffle;
}

/* Readers of several files are, in TensorFlow, a flat_map (or interleave) of the reader over the
 * names; built like that, FILE sharding finds the names to deal out. */
static struct plan_node *
reader_of_names(struct plan_graph *graph, const struct spec_stage *stage)
{
    const struct spec_value *parallel = stage_parameter(stage->info, "num_parallel_reads") < 0
                                            ? NULL
                                            : spec_get(stage, "num_parallel_reads");
    bool in_turn = parallel != NULL && parallel->kind == SPEC_INTEGER && parallel->integer > 1;
    struct plan_node *names = build_node(graph, stage, "filenames");
    struct plan_node *each =
        build_order_node(graph, NULL, in_turn ? &order_interleave : &order_flat_map);
    struct function_arguments *arguments = each->arguments;
    struct plan_graph *body = tnd_zalloc(1, sizeof *body);

    add_input(each, names);
    arguments->cycle_length = in_turn ? parallel->integer : 1;
    arguments->block_length = 1;
    each->body = body;
    body->outside = graph;
    body->outer = names;
    body->root = build_node(body, stage, stage->info->name);
    body->root->reads_outer_name = true; /* whatever the stage says */
    return each;
}

static bool
is_reader_of_names(const struct spec_stage *stage, const struct plan_node *node)
{
    return node->source != NULL && node->source->reads_files && spec_given(stage, "filenames");
}

static tundish_status
build_body(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node)
{
    uint32_t index = 0;
    tundish_status status;

    if (builder->depth >= FUNCTION_DEPTH_MAX)
        return order_complain(builder->errors, node, "%s inside %s more than %d deep", node->name,
                              node->name, FUNCTION_DEPTH_MAX);
    builder->depth++;
    status = build_graph(builder, spec_get(node->stage, "dataset")->dataset, graph, node->inputs[0],
                         &index, &node->body);
    builder->depth--;
    return status;
}

/* A pass without end is never whole, so no file comes of it. */
static bool
is_in_file(const struct spec_stage *stage, const struct order_ops *order,
           const struct plan_node *previous)
{
    return order != NULL && order->in_file != NULL && spec_text(stage, order->in_file)[0] != '\0' &&
           previous != NULL && !order_is_endless(previous);
}

/* A stage that draws random numbers draws them by where an element stands before it. */
static struct plan_node *
number_elements(struct plan_graph *graph, struct plan_node *previous)
{
    struct plan_node *ordinal = build_order_node(graph, NULL, &order_ordinal);

    add_input(ordinal, previous);
    return ordinal;
}

static bool value_draws(const struct spec_value *value);

/* Does any stage of the dataset, or of those inside, draw random numbers by ordinals? */
static bool
dataset_draws(const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        const struct content_ops *content = content_find(stage->info->name);

        if (content != NULL && content_draws(content, stage))
            return true;
        for (uint32_t k = 0; k < stage->info->parameter_count; k++)
            if (value_draws(stage->arguments[k]))
                return true;
    }
    return false;
}

static bool
value_draws(const struct spec_value *value)
{
    if (value == NULL)
        return false;
    if (value->dataset != NULL)
        return dataset_draws(value->dataset);
    for (uint32_t i = 0; value->kind == SPEC_LIST && i < value->count; i++)
        if (value_draws(&value->items[i]))
            return true;
    return false;
}

/* A source's files in random order: sorted, then shuffled by the plan. */
static bool
is_shuffled_list(const struct spec_stage *stage, const struct plan_node *node)
{
    return node->source != NULL && stage_parameter(stage->info, "shuffle") >= 0 &&
           spec_bool(stage, "shuffle");
}

static void
give_seeds(struct plan_builder *builder, struct plan_node *node, uint32_t *function_index)
{
    const struct spec_stage *stage = node->stage;
    const struct spec_value *seed;

    switch (seeds_of(node->order, stage)) {
    case ORDER_SEEDS_NONE:
        break;
    case ORDER_SEEDS_TENSORFLOW:
        draw_seeds(builder, node, "seed", function_index);
        node->seeds_fixed = stage_parameter(stage->info, "reshuffle_each_iteration") >= 0 &&
                            !spec_bool(stage, "reshuffle_each_iteration");
        break;
    case ORDER_SEEDS_OWN:
        seed = spec_get(stage, "seed");
        node->random = true;
        node->seed = seed != NULL && seed->kind == SPEC_INTEGER ? (uint64_t)seed->integer
                                                                : builder->plan->options.root_seed;
        break;
    }
}

/* Where the stage, or its function's body, draws by ordinals. */
static bool
needs_ordinals(const struct spec_stage *stage, const struct order_ops *order)
{
    const struct content_ops *content = content_find(stage->info->name);

    if (order != NULL && order->form == ORDER_FUNCTION)
        return value_draws(spec_get(stage, "dataset"));
    return content != NULL && content_draws(content, stage);
}

/* The node of a stage after `previous` (NULL: it stands first), or the nodes in its place. */
static tundish_status
build_after(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node,
            uint32_t *function_index, struct plan_node **ret_node)
{
    const struct spec_stage *stage = node->stage;

    *ret_node = node;
    if (is_reader_of_names(stage, node)) {
        graph->node_count--; /* taken back: it stands in the body */
        node_close(node);
        *ret_node = reader_of_names(graph, stage);
        return TUNDISH_OK;
    }
    if (node->order != NULL && node->order->form == ORDER_FUNCTION)
        return build_body(builder, graph, node);
    if (node->order != NULL)
        give_seeds(builder, node, function_index);
    if (is_shuffled_list(stage, node))
        *ret_node = shuffle_files(builder, graph, node, function_index);
    return TUNDISH_OK;
}

static tundish_status
build_stage(struct plan_builder *builder, struct plan_graph *graph, const struct spec_stage *stage,
            struct plan_node *previous, uint32_t *function_index, struct plan_node **ret_node)
{
    const char *name = stage->info->name;
    const struct order_ops *order = order_find(name);
    struct plan_node **inputs = NULL;
    uint32_t input_count = 0;
    struct plan_node *node;
    bool draws;
    tundish_status status = TUNDISH_OK;

    if (stage->info->absent != NULL)
        return spec_complain(builder->errors, stage->line, stage->column,
                             "stage %s is not in this build: %s", name, stage->info->absent);
    if (order != NULL && order->check_stage != NULL)
        status = order->check_stage(stage, builder->errors);
    if (status == TUNDISH_OK && stage->info->stands_first && order != NULL)
        status = build_inputs(builder, graph, stage, function_index, &inputs, &input_count);
    if (status != TUNDISH_OK) {
        free(inputs);
        return status;
    }
    if (input_count == 1 && order->takes != NULL && seeds_of(order, stage) != ORDER_SEEDS_NONE) {
        *ret_node = inputs[0]; /* as it is: nothing is drawn, no seed either */
        free(inputs);
        return TUNDISH_OK;
    }
    draws = previous != NULL && needs_ordinals(stage, order);
    if (draws)
        previous = number_elements(graph, previous);
    node = build_node(graph, stage, is_in_file(stage, order, previous) ? order->file_source : name);
    node->name = name;
    node->inputs = inputs;
    node->input_count = input_count;
    if (previous != NULL)
        add_input(node, previous);
    if (draws && order != NULL && order->form == ORDER_FUNCTION)
        ((struct function_arguments *)node->arguments)->numbers_bodies = true;
    return build_after(builder, graph, node, function_index, ret_node);
}

static tundish_status
build_dataset(struct plan_builder *builder, struct plan_graph *graph,
              const struct spec_dataset *dataset, uint32_t *function_index,
              struct plan_node **ret_last)
{
    struct plan_node *last = NULL;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        tundish_status one =
            build_stage(builder, graph, &dataset->stages[i], last, function_index, &last);

        if (one != TUNDISH_OK)
            status = one;
        if (last == NULL)
            break; /* what follows has nothing to stand on */
    }
    *ret_last = last;
    return status;
}

tundish_status
build_graph(struct plan_builder *builder, const struct spec_dataset *dataset,
            struct plan_graph *outside, struct plan_node *outer, uint32_t *function_index,
            struct plan_graph **ret_graph)
{
    struct plan_graph *graph = tnd_zalloc(1, sizeof *graph);

    graph->outside = outside;
    graph->outer = outer;
    *ret_graph = graph;
    return build_dataset(builder, graph, dataset, function_index, &graph->root);
}
