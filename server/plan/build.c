/* build.c - makes the nodes of a graph from the stages of a pipeline file. */
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

/* A node of an order stage; `stage` NULL: the plan puts it in. */
static struct plan_node *
build_order_node(struct plan_graph *graph, const struct spec_stage *stage,
                 const struct order_ops *order)
{
    struct plan_node *node = add_node(graph, stage, order->name);

    set_order(node, order);
    return node;
}

void
build_stand_after(struct plan_node *node, struct plan_node *below)
{
    node->inputs[0] = below;
    node->depth = below->depth;
    schema_close(&node->schema);
    schema_pass_all(&node->schema, &below->schema);
}

struct plan_node *
build_inserted(struct plan_graph *graph, struct plan_node *below, const struct order_ops *order)
{
    struct plan_node *node = build_order_node(graph, NULL, order);

    node->inputs = tnd_zalloc(1, sizeof(struct plan_node *));
    node->input_count = 1;
    build_stand_after(node, below);
    return node;
}

/* Add a node for a stage. `name` is the stage's own, or that of a source that the plan uses
 * instead.
 */
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
    free(node->words);
    schema_close(&node->schema);
    schema_close(&node->answers);
    free(node->state);
    free(node->inputs);
    free(node->table);
    free(node->arguments);
    free(node);
}

void
build_graph_close(struct plan_graph *graph)
{
    if (graph == NULL)
        return;
    /* Nodes stand after their inputs, so close them from the end. */
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

/* The seeds of a stage. A dataset that is mentioned again was constructed before. */
static struct seed_pair
seeds_in(struct plan_builder *builder, const struct plan_graph *graph,
         const struct spec_stage *stage, uint32_t *function_index)
{
    struct drawn_seeds one = { .graph = graph, .stage = stage };

    for (uint32_t i = 0; i < builder->drawn_count; i++)
        if (builder->drawn[i].graph == graph && builder->drawn[i].stage == stage)
            return builder->drawn[i].pair;
    one.pair = seed_source_next(&builder->seeds, spec_get(stage, "seed"), function_index);
    builder->drawn = tnd_realloc(builder->drawn, builder->drawn_count + 1, sizeof *builder->drawn);
    builder->drawn[builder->drawn_count++] = one;
    return one.pair;
}

/* Draw a pair of seeds. TensorFlow draws when a dataset is constructed, so this must be called in
 * the order in which the stages are written. */
static void
draw_seeds(struct plan_builder *builder, const struct plan_graph *graph, struct plan_node *node,
           uint32_t *function_index)
{
    struct seed_pair pair = seeds_in(builder, graph, node->stage, function_index);

    node->random = true;
    node->seeds_for = node->stage;
    node->seed = pair.seed;
    node->seed2 = pair.seed2;
}

static tundish_status build_dataset(struct plan_builder *builder, struct plan_graph *graph,
                                    const struct spec_dataset *dataset, uint32_t *function_index,
                                    struct plan_node **ret_last);

/* Remove a dataset that nobody reads. It had to be built, since the seeds it draws shift those of
 * later stages. */
static void
give_back_nodes(struct plan_graph *graph, uint32_t node_count)
{
    while (graph->node_count > node_count)
        node_close(graph->nodes[--graph->node_count]);
}

/* Build the datasets that a stage unites. The one that decides which of them comes next is last. */
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

/* True if every epoch has one order. */
static bool
keeps_order(const struct spec_stage *stage)
{
    const struct spec_value *reshuffles =
        stage_parameter(stage->info, "reshuffle_each_iteration") < 0
            ? NULL
            : spec_get(stage, "reshuffle_each_iteration");

    return reshuffles != NULL && reshuffles->kind == SPEC_BOOL && !reshuffles->boolean;
}

/* As in TensorFlow, list_files (and directory) with shuffle is the sorted list followed by a
 * shuffle of all of it. The stage is set only while the seeds are drawn: nodes that the plan
 * inserts have none. */
static struct plan_node *
shuffle_files(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *files,
              uint32_t *function_index)
{
    struct plan_node *shuffle = build_order_node(graph, NULL, &order_shuffle);

    shuffle->stage = files->stage;
    draw_seeds(builder, graph, shuffle, function_index);
    shuffle->seeds_fixed = keeps_order(files->stage);
    shuffle->stage = NULL;
    add_input(shuffle, files);
    return shuffle;
}

/* TensorFlow implements readers of several files as a flat_map (or interleave) of the reader over
 * the names. The plan does the same, so that FILE sharding finds the list of names to deal. */
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
    body->root->reads_outer_name = true; /* the file name is the outer element, not the parameter */
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

/* True if a cache keeps its elements in a file. An endless pass is never complete and makes no
 * file. */
static bool
is_in_file(const struct spec_stage *stage, const struct order_ops *order,
           const struct plan_node *previous)
{
    return order != NULL && order->in_file != NULL && spec_text(stage, order->in_file)[0] != '\0' &&
           previous != NULL && !order_is_endless(previous);
}

/* Number the elements for a stage that draws: its draws depend on the number of an element, not on
 * the thread that makes it. */
static struct plan_node *
number_elements(struct plan_graph *graph, struct plan_node *previous,
                const struct spec_stage *stage)
{
    struct plan_node *ordinal = build_order_node(graph, NULL, &order_ordinal);

    ((struct ordinal_arguments *)ordinal->arguments)->stage = stage;
    add_input(ordinal, previous);
    return ordinal;
}

/* True for a source with shuffle: its list is sorted, then shuffled by the plan. */
static bool
is_shuffled_list(const struct spec_stage *stage, const struct plan_node *node)
{
    return node->source != NULL && stage_parameter(stage->info, "shuffle") >= 0 &&
           spec_bool(stage, "shuffle");
}

static void
give_seeds(struct plan_builder *builder, const struct plan_graph *graph, struct plan_node *node,
           uint32_t *function_index)
{
    const struct spec_stage *stage = node->stage;
    const struct spec_value *seed;

    builder->plan->tells_root_seed |= node->source != NULL && node->source->tells_content;
    switch (seeds_of(node->order, stage)) {
    case ORDER_SEEDS_NONE:
        break;
    case ORDER_SEEDS_TENSORFLOW:
        draw_seeds(builder, graph, node, function_index);
        node->seeds_fixed = keeps_order(stage);
        break;
    case ORDER_SEEDS_OWN:
        seed = spec_get(stage, "seed");
        node->random = true;
        node->seeds_for = stage;
        if (seed == NULL || seed->kind != SPEC_INTEGER)
            builder->plan->draws_from_root = true;
        node->seed = seed != NULL && seed->kind == SPEC_INTEGER ? (uint64_t)seed->integer
                                                                : builder->plan->options.root_seed;
        break;
    }
}

static bool
needs_ordinals(const struct spec_stage *stage)
{
    const struct content_ops *content = content_find(stage->info->name);

    return content != NULL && content_draws(content, stage);
}

/* Finish a stage whose node is built and connected: build its body, draw its seeds, or replace it
 * by several nodes. */
static tundish_status
build_after(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node,
            uint32_t *function_index, struct plan_node **ret_node)
{
    const struct spec_stage *stage = node->stage;

    *ret_node = node;
    if (is_reader_of_names(stage, node)) {
        graph->node_count--; /* the reader goes into the body instead */
        node_close(node);
        *ret_node = reader_of_names(graph, stage);
        return TUNDISH_OK;
    }
    if (node->order != NULL && node->order->form == ORDER_FUNCTION)
        return build_body(builder, graph, node);
    if (node->order != NULL)
        give_seeds(builder, graph, node, function_index);
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
    tundish_status status = TUNDISH_OK;

    if (order != NULL && order->check_stage != NULL)
        status = order->check_stage(stage, builder->errors);
    if (status == TUNDISH_OK && stage->info->stands_first && order != NULL)
        status = build_inputs(builder, graph, stage, function_index, &inputs, &input_count);
    if (status != TUNDISH_OK) {
        free(inputs);
        return status;
    }
    if (input_count == 1 && order->takes != NULL && seeds_of(order, stage) != ORDER_SEEDS_NONE) {
        *ret_node = inputs[0]; /* only one dataset has weight: as in TensorFlow nothing is drawn,
                                  not even a seed */
        free(inputs);
        return TUNDISH_OK;
    }
    if (previous != NULL && needs_ordinals(stage) && draws_ordinal(stage, previous) == NULL)
        previous = number_elements(graph, previous, stage);
    node = build_node(graph, stage, is_in_file(stage, order, previous) ? order->file_source : name);
    node->name = name;
    node->inputs = inputs;
    node->input_count = input_count;
    if (previous != NULL)
        add_input(node, previous);
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
            break; /* the next stage would have no input */
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
