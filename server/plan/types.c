/* types.c - determines the columns after every stage before anything runs. */
#include "plan/build.h"

#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "content/expression/expression.h"
#include "core/memory.h"
#include "order/columns.h"
#include "order/numbers.h"
#include "source/rows/tensor_literal.h"
#include "source/source.h"

/* The input columns of a source. */
static const struct schema no_columns = { 0 };

/* Collect the columns visible in a body: those of its outer element, then those from further out
 * that it does not hide. */
static void
outer_columns(struct plan_graph *graph)
{
    schema_pass_all(&graph->outer_schema, &graph->outer->schema);
    for (uint32_t i = 0; i < graph->outside->outer_schema.count; i++)
        if (schema_find(&graph->outer_schema, graph->outside->outer_schema.columns[i].name) < 0)
            schema_pass(&graph->outer_schema, &graph->outside->outer_schema, i);
}

/* Bytes of a column in one row, as far as its dimensions are known. The dimensions of the batch do
 * not count, unless the stage itself added them. UINT64_MAX: overflow. */
static uint64_t
known_bytes(const struct plan_node *node, uint32_t index)
{
    const struct column_spec *column = &node->schema.columns[index];
    const struct schema *input = node->input_count > 0 ? &node->inputs[0]->schema : &no_columns;
    int32_t before = schema_find(input, column->name);
    uint64_t bytes = column->dtype == TUNDISH_STRING ? 1 : tnd_dtype_bytes(column->dtype);

    for (int k = 0; k < column->rank; k++) {
        bool is_rows =
            (uint32_t)k < node->depth &&
            (node->content == NULL || (before >= 0 && input->columns[before].rank > k &&
                                       input->columns[before].shape[k] == column->shape[k]));

        if (column->shape[k] > 0 && !is_rows &&
            __builtin_mul_overflow(bytes, (uint64_t)column->shape[k], &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

/* Complain of rows over 2 GiB: no row of a file may be longer either. */
static tundish_status
check_bytes(const struct plan_builder *builder, const struct plan_node *node)
{
    for (uint32_t i = 0; i < node->schema.count; i++)
        if (node->schema.columns[i].kind == TUNDISH_DENSE && known_bytes(node, i) > INT32_MAX)
            return order_complain(builder->errors, node,
                                  "%s: column '%s' would have more than 2 GiB in each row: check "
                                  "the sizes in the pipeline file",
                                  node->name, node->schema.columns[i].name);
    return TUNDISH_OK;
}

/* The lower of the two limits; 0: no limit. */
static uint64_t
deliver_bytes(const struct spec_deliver *deliver)
{
    if (deliver->max_batch_bytes == 0 ||
        (deliver->memory_limit != 0 && deliver->memory_limit < deliver->max_batch_bytes))
        return deliver->memory_limit;
    return deliver->max_batch_bytes;
}

/* Give an order stage the numbers of its file. */
static tundish_status
open_numbers(const struct order_planning *planning, const struct stage_config *config,
             struct plan_node *node)
{
    const struct spec_value *name = spec_get(config->stage, node->order->numbers);
    struct tensor tensor = { 0 };
    tundish_status status = tensor_open_npy(config, name, &tensor);
    const struct order_numbers numbers = {
        .values = tensor.values,
        .count = (uint64_t)tensor.value_count,
        .are_integers = tensor.dtype == TUNDISH_INT64 || tensor.dtype == TUNDISH_INT32,
        .are_wide = tensor.dtype == TUNDISH_INT64 || tensor.dtype == TUNDISH_FLOAT64,
    };

    if (status == TUNDISH_OK && (tensor.rank != 1 || !(numbers.are_integers || numbers.are_wide ||
                                                       tensor.dtype == TUNDISH_FLOAT32)))
        status = spec_complain(config->errors, name->line, name->column,
                               "%s: %s are one row of int64, int32, float64 or float32, and this "
                               "file has %s of %d dimensions",
                               name->text, node->order->numbers, tnd_dtype_name(tensor.dtype),
                               tensor.rank);
    if (status == TUNDISH_OK)
        status = node->order->take_numbers(planning, node, &numbers);
    tensor_close(&tensor);
    return status;
}

static tundish_status
order_types(const struct plan_builder *builder, const struct stage_config *config,
            struct plan_node *node)
{
    const struct order_planning planning = {
        .errors = builder->errors,
        .may_be_short =
            builder->plan->stream->deliver.skip_errors || builder->plan->options.batches_vary,
    };

    tundish_status status =
        node->order->numbers != NULL ? open_numbers(&planning, config, node) : TUNDISH_OK;

    if (status != TUNDISH_OK || node->order->columns != NULL)
        return status != TUNDISH_OK ? status : node->order->columns(&planning, node);
    order_pass_columns(node);
    return TUNDISH_OK;
}

static tundish_status
open_source(struct plan_node *node, const struct stage_config *config)
{
    node->state = tnd_zalloc(1, node->source->state_bytes);
    node->depth = config->depth; /* for a cache in a file, which keeps whole batches */
    node->batch_wide = config->depth > 0;
    return node->source->open(node->state, config, &node->schema);
}

static tundish_status
open_content(struct plan_node *node, const struct stage_config *config)
{
    tundish_status status;

    node->state = tnd_zalloc(1, node->content->state_bytes);
    node->depth = config->depth;
    status = node->content->open(node->state, config, &node->schema, &node->batch_wide);
    /* As after a map in tf.data: a function takes tensors and returns tensors, so rows of ragged
     * columns are dense now. */
    for (uint32_t i = 0; i < node->schema.count; i++)
        node->schema.columns[i].row_of_ragged = false;
    return status;
}

/* Open the questions that an order stage asks content about the elements of its input. */
static tundish_status
open_answers(struct plan_node *node, struct stage_config *config)
{
    bool batch_wide = false;

    config->questions = node->order->questions;
    node->state = tnd_zalloc(1, node->content->state_bytes);
    return node->content->open(node->state, config, &node->answers, &batch_wide);
}

static bool
has_seed(const struct spec_stage *stage)
{
    const struct spec_value *seed = spec_get(stage, "seed");

    return seed != NULL && seed->kind == SPEC_INTEGER;
}

/* A stage without a seed has that of the first one that it shares draws with. */
static tundish_status
share_seed(struct plan_builder *builder, const struct plan_node *node, struct stage_config *config)
{
    const struct spec_stage *stage = node->stage, *first = stage;
    const char *name = draws_name(stage);

    if (name != NULL)
        first = seed_shared_first(builder->plan->stream, name);
    else if (spec_get(stage, "redraw") != NULL)
        return stage_complain(config, "redraw needs draws: the name of the numbers to go on with");
    if (first->info != stage->info)
        return stage_complain(config,
                              "draws '%s': %s here, but %s in line %u; only stages of one kind can "
                              "share draws",
                              name, stage->info->name, first->info->name, first->line);
    if (has_seed(stage) && first != stage &&
        (!has_seed(first) || spec_get(first, "seed")->integer != spec_get(stage, "seed")->integer))
        return stage_complain(config,
                              "draws '%s': give the seed to the first stage that has them, in line "
                              "%u: all of them draw from one",
                              name, first->line);
    config->unseeded = has_seed(first) ? spec_get(first, "seed")->integer
                                       : seed_of_content(builder->plan->stream, first,
                                                         builder->plan->options.root_seed);
    builder->plan->draws_from_root |= content_draws(node->content, stage) && !has_seed(first);
    return TUNDISH_OK;
}

static tundish_status
node_types(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node)
{
    struct plan_learning *learning =
        graph->outside == NULL ? builder->plan->options.learning : NULL;
    const struct plan_options *options = &builder->plan->options;
    uint32_t replicas_in_sync = options->worker_count * builder->plan->replicas;
    const struct expression_literal context[] = {
        { "$num_input_pipelines", options->worker_count },
        { "$input_pipeline_id", options->worker },
        { EXPRESSION_REPLICAS_IN_SYNC, replicas_in_sync },
    };
    struct stage_config config = {
        .stage = node->stage,
        .input = node->input_count > 0 ? &node->inputs[0]->schema : &no_columns,
        .depth = node->input_count > 0 ? node->inputs[0]->depth : 0,
        .outer = graph->outside != NULL ? &graph->outer_schema : NULL,
        .graph = graph,
        .cache_folder = builder->plan->options.cache_folder,
        .learned = builder->plan->options.learned,
        .learned_hash = &node->learned_hash,
        .missing = learning != NULL ? learning->missing : NULL,
        .plan = builder->plan,
        .sample = options->sample,
        .memory_bytes = deliver_bytes(&builder->plan->stream->deliver),
        .literals = context,
        .literal_count =
            builder->plan->stream->distribute.from_function ? sizeof context / sizeof *context : 0,
        .errors = builder->errors,
    };
    tundish_status status;

    if (node->content != NULL && node->content->draws) {
        status = share_seed(builder, node, &config);
        if (status != TUNDISH_OK)
            return status;
    }
    if (learning != NULL) {
        status = learning->before(learning, node, &config, &node->content);
        if (status != TUNDISH_OK)
            return status;
    }
    if (node->body != NULL) {
        outer_columns(node->body);
        status = build_types(builder, node->body);
        if (status != TUNDISH_OK)
            return status;
    }
    if (node->source != NULL)
        return open_source(node, &config);
    if (node->order == NULL)
        return open_content(node, &config);
    status = node->order->questions != NULL ? open_answers(node, &config) : TUNDISH_OK;
    return status == TUNDISH_OK ? order_types(builder, &config, node) : status;
}

tundish_status
build_types(struct plan_builder *builder, struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];
        tundish_status status;

        for (uint32_t k = 0; k < node->input_count; k++)
            if (node->inputs[k] == NULL)
                return TUNDISH_E_PIPELINE; /* already reported */
        status = node_types(builder, graph, node);
        if (status == TUNDISH_OK)
            status = check_bytes(builder, node);
        if (status != TUNDISH_OK) {
            /* Stop here: the nodes that read this one would only report the same error. */
            if (builder->errors->count == 0)
                order_complain(builder->errors, node, "%s: %s", node->name, tnd_error_text());
            return TUNDISH_E_PIPELINE;
        }
    }
    return TUNDISH_OK;
}
