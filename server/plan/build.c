/* build.c - stages to nodes. */
#include "plan/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "core/memory.h"
#include "order/order.h"
#include "source/source.h"

enum { FUNCTION_DEPTH_MAX = 16 };

bool
node_is(const struct plan_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

tundish_status
build_complain(const struct plan_builder *builder, const struct plan_node *node, const char *format,
               ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return spec_complain(builder->errors, node->stage != NULL ? node->stage->line : 0,
                         node->stage != NULL ? node->stage->column : 0, "%s", text);
}

int64_t
build_literal(const struct plan_node *node, const char *parameter, int64_t otherwise)
{
    const struct spec_value *value = node->stage != NULL ? spec_get(node->stage, parameter) : NULL;

    return value != NULL && value->kind == SPEC_INTEGER ? value->integer : otherwise;
}

struct plan_node *
build_node(struct plan_graph *graph, const struct spec_stage *stage, const char *name)
{
    struct plan_node *node = tnd_zalloc(1, sizeof *node);

    node->stage = stage;
    node->name = name;
    node->order = order_find(name);
    node->source = source_find(name);
    node->content = content_find(name);
    if (node->source != NULL)
        node->order = &node->source->order;
    graph->nodes = tnd_realloc(graph->nodes, graph->node_count + 1, sizeof *graph->nodes);
    graph->nodes[graph->node_count++] = node;
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
    free(node->decoded_resized);
    schema_close(&node->schema);
    free(node->state);
    free(node->inputs);
    free(node->sizes);
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

static void
draw_seeds(struct plan_builder *builder, struct plan_node *node, const char *parameter,
           uint32_t *function_place)
{
    struct seed_pair pair =
        seed_source_next(&builder->seeds, spec_get(node->stage, parameter), function_place);

    node->random = true;
    node->seed = pair.seed;
    node->seed2 = pair.seed2;
}

static tundish_status build_dataset(struct plan_builder *builder, struct plan_graph *graph,
                                    const struct spec_dataset *dataset, uint32_t *function_place,
                                    struct plan_node **ret_last);

/* A dataset that was built, for the seeds it draws, but that nobody reads. */
static void
give_back_nodes(struct plan_graph *graph, uint32_t node_count)
{
    while (graph->node_count > node_count)
        node_close(graph->nodes[--graph->node_count]);
}

/* zip, concatenate, sample_from_datasets, choose_from_datasets: what they unite, choices last. */
static tundish_status
build_inputs(struct plan_builder *builder, struct plan_graph *graph, const struct spec_stage *stage,
             uint32_t *function_place, struct plan_node ***ret_inputs, uint32_t *ret_count)
{
    const struct spec_value *datasets = spec_get(stage, "datasets");
    const struct spec_value *choice = strcmp(stage->info->name, "choose_from_datasets") == 0
                                          ? spec_get(stage, "choice_dataset")
                                          : NULL;
    bool samples = strcmp(stage->info->name, "sample_from_datasets") == 0;
    uint32_t count = datasets->count + (choice != NULL), kept = 0;
    struct plan_node **inputs = tnd_zalloc(count, sizeof(struct plan_node *));
    tundish_status status = samples ? build_check_weights(builder, stage) : TUNDISH_OK;

    for (uint32_t i = 0; i < count; i++) {
        const struct spec_value *value = i < datasets->count ? &datasets->items[i] : choice;
        uint32_t node_count = graph->node_count;
        tundish_status one =
            build_dataset(builder, graph, value->dataset, function_place, &inputs[kept]);

        if (one != TUNDISH_OK)
            status = one;
        if (status == TUNDISH_OK && samples && !build_is_drawn(stage, i))
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
              uint32_t *function_place)
{
    struct plan_node *shuffle = build_node(graph, NULL, "shuffle");

    shuffle->numbers[0] = INT64_MAX;
    shuffle->stage = files->stage;
    draw_seeds(builder, shuffle, "seed", function_place);
    shuffle->stage = NULL;
    add_input(shuffle, files);
    return shuffle;
}

/* Readers of several files are, in TensorFlow, a flat_map (or interleave) of the reader over the
 * names; built like that, FILE sharding finds the names to deal out. */
static tundish_status
reader_of_names(struct plan_builder *builder, struct plan_graph *graph,
                const struct spec_stage *stage, struct plan_node **ret_node)
{
    const struct spec_value *parallel = stage_parameter(stage->info, "num_parallel_reads") < 0
                                            ? NULL
                                            : spec_get(stage, "num_parallel_reads");
    bool in_turn = parallel != NULL && parallel->kind == SPEC_INTEGER && parallel->integer > 1;
    struct plan_node *names = build_node(graph, stage, "filenames");
    struct plan_node *each = build_node(graph, NULL, in_turn ? "interleave" : "flat_map");
    struct plan_graph *body = tnd_zalloc(1, sizeof *body);

    (void)builder;
    add_input(each, names);
    each->numbers[0] = in_turn ? parallel->integer : 1;
    each->numbers[1] = 1;
    each->body = body;
    body->outside = graph;
    body->outer = names;
    body->root = build_node(body, stage, stage->info->name);
    body->root->numbers[3] = 1; /* the name is $value, whatever the stage says */
    *ret_node = each;
    return TUNDISH_OK;
}

static bool
is_reader_of_names(const struct spec_stage *stage, const struct plan_node *node)
{
    return node->source != NULL && node->source->reads_files && spec_given(stage, "filenames");
}

static tundish_status
build_body(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node)
{
    uint32_t place = 0;
    tundish_status status;

    if (builder->depth >= FUNCTION_DEPTH_MAX)
        return build_complain(builder, node, "%s inside %s more than %d deep", node->name,
                              node->name, FUNCTION_DEPTH_MAX);
    builder->depth++;
    status = build_graph(builder, spec_get(node->stage, "dataset")->dataset, graph, node->inputs[0],
                         &place, &node->body);
    builder->depth--;
    return status;
}

/* A pass without end is never whole, so no file comes of it. */
static bool
is_cache_in_file(const struct spec_stage *stage, const struct plan_node *previous)
{
    return strcmp(stage->info->name, "cache") == 0 && spec_text(stage, "filename")[0] != '\0' &&
           previous != NULL && !build_is_endless(previous);
}

/* A stage that draws random numbers draws them by where an element stands before it. */
static struct plan_node *
number_elements(struct plan_graph *graph, struct plan_node *previous)
{
    struct plan_node *ordinal = build_node(graph, NULL, "ordinal");

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

static bool
is_function(const struct spec_stage *stage)
{
    return strcmp(stage->info->name, "interleave") == 0 ||
           strcmp(stage->info->name, "flat_map") == 0;
}

static tundish_status
build_stage(struct plan_builder *builder, struct plan_graph *graph, const struct spec_stage *stage,
            struct plan_node *previous, uint32_t *function_place, struct plan_node **ret_node)
{
    const char *name = stage->info->name;
    struct plan_node **inputs = NULL;
    uint32_t input_count = 0;
    struct plan_node *node;
    bool numbers_bodies;
    tundish_status status = TUNDISH_OK;

    if (stage->info->absent != NULL)
        return spec_complain(builder->errors, stage->line, stage->column,
                             "stage %s is not in this build: %s", name, stage->info->absent);
    if (stage->info->stands_first && stage->info->kind == STAGE_ORDER) {
        status = build_inputs(builder, graph, stage, function_place, &inputs, &input_count);
        if (status != TUNDISH_OK) {
            free(inputs);
            return status;
        }
    }
    if (strcmp(name, "sample_from_datasets") == 0 && input_count == 1 && build_is_draw(stage)) {
        *ret_node = inputs[0]; /* as it is: nothing is drawn, no seed either */
        free(inputs);
        return TUNDISH_OK;
    }
    numbers_bodies = is_function(stage) && value_draws(spec_get(stage, "dataset"));
    if (previous != NULL && (numbers_bodies || (content_find(name) != NULL &&
                                                content_draws(content_find(name), stage))))
        previous = number_elements(graph, previous);
    node = build_node(graph, stage, is_cache_in_file(stage, previous) ? "cache_file" : name);
    node->name = name;
    node->inputs = inputs;
    node->input_count = input_count;
    *ret_node = node;
    if (previous != NULL)
        add_input(node, previous);
    if (is_reader_of_names(stage, node)) {
        graph->node_count--; /* taken back: it stands in the body */
        node_close(node);
        return reader_of_names(builder, graph, stage, ret_node);
    }
    node->numbers_bodies = numbers_bodies;
    if (is_function(stage))
        return build_body(builder, graph, node);
    if (strcmp(name, "shuffle") == 0) {
        draw_seeds(builder, node, "seed", function_place);
        node->seeds_fixed = !spec_bool(stage, "reshuffle_each_iteration");
    } else if (strcmp(name, "sample_from_datasets") == 0 && build_is_draw(stage)) {
        draw_seeds(builder, node, "seed", function_place);
    } else if (strcmp(name, "permute") == 0) {
        const struct spec_value *seed = spec_get(stage, "seed");

        node->random = true;
        node->seed = seed != NULL && seed->kind == SPEC_INTEGER ? (uint64_t)seed->integer
                                                                : builder->plan->options.root_seed;
    } else if ((strcmp(name, "list_files") == 0 || strcmp(name, "directory") == 0) &&
               spec_bool(stage, "shuffle")) {
        *ret_node = shuffle_files(builder, graph, node, function_place);
    }
    return status;
}

static tundish_status
build_dataset(struct plan_builder *builder, struct plan_graph *graph,
              const struct spec_dataset *dataset, uint32_t *function_place,
              struct plan_node **ret_last)
{
    struct plan_node *last = NULL;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        tundish_status one =
            build_stage(builder, graph, &dataset->stages[i], last, function_place, &last);

        if (one != TUNDISH_OK)
            status = one;
        if (last != NULL && last->stage == &dataset->stages[i])
            last->following_count = dataset->stage_count - i - 1;
        if (last == NULL)
            break; /* what follows has nothing to stand on */
    }
    *ret_last = last;
    return status;
}

tundish_status
build_graph(struct plan_builder *builder, const struct spec_dataset *dataset,
            struct plan_graph *outside, struct plan_node *outer, uint32_t *function_place,
            struct plan_graph **ret_graph)
{
    struct plan_graph *graph = tnd_zalloc(1, sizeof *graph);

    graph->outside = outside;
    graph->outer = outer;
    *ret_graph = graph;
    return build_dataset(builder, graph, dataset, function_place, &graph->root);
}
