/* rebatch.c - the global batch size, the rule by which batches are cut for replicas, and the node
 * that cuts them. The rules are those of data/experimental/ops/distribute.py. */
#include "plan/rebatch.h"

#include "core/memory.h"
#include "order/arguments.h"
#include "order/planning.h"
#include "source/source.h"

/* Rule 1: the batch size is dimension 0 of every column, if all are static. Returns whether the
 * rule applies; *ret_batch is -1 if the columns differ. */
static bool
static_batch(const struct schema *schema, int64_t *ret_batch)
{
    int64_t batch = -1;

    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *column = &schema->columns[i];

        if (column->rank < 1 || column->shape[0] < 0)
            return false;
        if (i > 0 && column->shape[0] != batch) {
            *ret_batch = -1;
            return true;
        }
        batch = column->shape[0];
    }
    *ret_batch = batch;
    return true;
}

static bool
passes_batch_size(const struct plan_node *node)
{
    return node->order != NULL && node->order->batch_size == ORDER_SIZE_INPUT;
}

/* ParallelBatchDataset is another op, which TensorFlow does not look through. */
static bool
is_parallel(const struct spec_stage *stage)
{
    const struct spec_value *calls = stage_parameter(stage->info, "num_parallel_calls") < 0
                                         ? NULL
                                         : spec_get(stage, "num_parallel_calls");

    return calls != NULL && calls->kind != SPEC_NULL;
}

/* Rule 2 (the ComputeBatchSize op): walk back to the batch that made the elements. */
static int64_t
input_batch_size(const struct plan_node *node)
{
    enum order_batch_size told;
    int64_t batch;

    while (passes_batch_size(node))
        node = node->inputs[0];
    told = node->order != NULL ? node->order->batch_size : ORDER_SIZE_UNKNOWN;
    if (told == ORDER_SIZE_OWN && !is_parallel(node->stage))
        return order_literal(node, node->order->gathers, -1);
    if (told != ORDER_SIZE_INPUTS)
        return -1;
    batch = input_batch_size(node->inputs[0]);
    for (uint32_t i = 1; i < node->input_count; i++)
        if (input_batch_size(node->inputs[i]) != batch)
            return -1;
    return batch;
}

/* Rule 1 with skip_errors, which makes every length unknown. TensorFlow never omits rows, so there
 * drop_remainder alone would make the length static. */
static int64_t
whole_batch(const struct plan_node *node)
{
    while (node->order == NULL || passes_batch_size(node))
        node = node->inputs[0];
    if (node->order->batch_size != ORDER_SIZE_OWN && node->order->form != ORDER_REBATCHES)
        return -1;
    return order_is_true(node, "drop_remainder") ? order_literal(node, node->order->gathers, -1)
                                                 : -1;
}

static const char *
rule_reason(const struct plan *plan, enum spec_rebatch asked, bool by_default)
{
    if (asked == REBATCH_SPLIT)
        return "the rule of TensorFlow's guide: each batch is cut into one slice per replica";
    if (plan->global_batch < 0)
        return "the global batch size does not follow from the stages, so each batch is cut";
    if (asked == REBATCH_CARRY)
        return "configured (rows left over go to the next batch)";
    return by_default ? "as TensorFlow does under DATA sharding"
                      : "as TensorFlow does when the global batch size is known";
}

void
rebatch_resolve_rule(struct plan *plan)
{
    enum spec_rebatch asked = plan->stream->distribute.rebatch;
    bool data = plan->policy == SHARD_DATA;

    if (!static_batch(&plan->user_root->schema, &plan->global_batch)) {
        plan->global_batch = plan->stream->deliver.skip_errors ? whole_batch(plan->user_root) : -1;
        if (plan->global_batch < 0)
            plan->global_batch = input_batch_size(plan->user_root);
    }
    plan->rule = asked == REBATCH_CARRY || (asked == REBATCH_TENSORFLOW && !data) ? REBATCH_CARRY
                                                                                  : REBATCH_SPLIT;
    if (plan->global_batch < 0)
        plan->rule = REBATCH_SPLIT;
    plan->rule_reason = tnd_strdup(rule_reason(plan, asked, data));
}

/* Dimension 0 of a slice: known only if all slices have equally many rows. */
static int64_t
slice_rows(int64_t batch, int64_t slices)
{
    return batch < 0 || batch % slices != 0 ? -1 : batch / slices;
}

/* Elements that no stage has batched may still be batches: every column has rows. */
static bool
could_be_unbatched(const struct schema *schema)
{
    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->columns[i].rank < 1)
            return false;
    return true;
}

static tundish_status
complain_of_no_batch(const struct plan_builder *builder)
{
    const struct plan *plan = builder->plan;

    return spec_complain(
        builder->errors, plan->stream->line, plan->stream->column,
        "stream '%s' has %u replicas but no batch to deal between them: add "
        "`batch: G`, the global batch size, or set from_function: true%s",
        plan->stream->name, plan->options.worker_count * plan->replicas,
        could_be_unbatched(&plan->user_root->schema)
            ? "; if each element is a batch already, add `unbatch` before `batch: G`"
            : "");
}

/* Unbatched rows are refused, although TensorFlow would cut each of them: usually a batch was
 * forgotten. The output of a program or generator is accepted, since it may be batches. */
bool
rebatch_has_batches(const struct plan_node *node)
{
    if (node->depth > 0 || (node->source != NULL && node->source->may_yield_batches))
        return true;
    if (node->body != NULL && rebatch_has_batches(node->body->root))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (rebatch_has_batches(node->inputs[i]))
            return true;
    return false;
}

static tundish_status
check_shared(const struct plan_builder *builder, const struct column_spec *column)
{
    const struct plan *plan = builder->plan;

    if (column->rank == 0 && plan->user_root->depth == 0)
        return complain_of_no_batch(builder);
    if (column->rank == 0)
        return spec_complain(builder->errors, plan->stream->line, plan->stream->column,
                             "column '%s' is a scalar in each batch, so it cannot be divided among "
                             "replicas; drop it or add it before batch",
                             column->name);
    if (plan->rule == REBATCH_CARRY && column->kind == TUNDISH_SPARSE && column->rank == 1)
        return spec_complain(builder->errors, plan->stream->line, plan->stream->column,
                             "column '%s' is sparse with one dimension, along which batches cannot "
                             "be joined: set rebatch: split, or use to_dense",
                             column->name);
    return TUNDISH_OK;
}

static struct plan_node *
insert_split(struct plan *plan, int64_t slices)
{
    struct plan_node *deal = build_inserted(plan->graph, plan->graph->root, &order_deal_split);
    struct slices_arguments *arguments = deal->arguments;

    arguments->slices = slices;
    arguments->even = plan->stream->distribute.even_repeat;
    /* Else the slices of a batch are of several steps. */
    arguments->whole_only = plan->stream->distribute.drop_remainder_step &&
                            (plan->options.worker_count == 1 || plan->policy == SHARD_DATA);
    return deal;
}

/* If a batch never has a row for each replica, every step would be left out. */
static tundish_status
check_whole(const struct plan_builder *builder, int64_t slices)
{
    const struct plan *plan = builder->plan;
    const struct spec_distribute *asked = &plan->stream->distribute;

    if (!asked->drop_remainder_step || plan->rule == REBATCH_CARRY || plan->global_batch < 0 ||
        slices_are_filled((uint64_t)plan->global_batch, (uint64_t)slices))
        return TUNDISH_OK;
    return spec_complain(builder->errors, asked->line, asked->column,
                         "drop_remainder_step: a batch of %lld rows leaves some of %lld replicas "
                         "without a row, so every step would be left out: make batches a multiple "
                         "of the replicas",
                         (long long)plan->global_batch, (long long)slices);
}

/* Check even: repeat against the stages and the policy. */
static tundish_status
check_even(const struct plan_builder *builder, int64_t slices)
{
    const struct plan *plan = builder->plan;
    const struct spec_distribute *asked = &plan->stream->distribute;
    const char *why = NULL;

    if (plan->rule == REBATCH_CARRY)
        why = "each batch is divided by itself: use rebatch: split";
    else if (plan->options.worker_count > 1 &&
             (plan->policy == SHARD_FILE || plan->policy == SHARD_HINT))
        why = "nodes that have files or shards of their own have unequal numbers of rows: use "
              "auto_shard: DATA";
    else if (schema_find(&plan->user_root->schema, asked->mask) >= 0)
        why = "there is a column of the mask's name already: give it another with mask: NAME";
    if (why != NULL)
        return spec_complain(builder->errors, asked->line, asked->column, "even: repeat: %s", why);
    if (plan->global_batch < 0 || plan->global_batch % slices == 0)
        return TUNDISH_OK;
    return spec_complain(builder->errors, asked->line, asked->column,
                         "even: repeat: a batch of %lld rows cannot be divided evenly among %lld "
                         "replicas, so rows would be repeated in every step: make batches a "
                         "multiple of the replicas",
                         (long long)plan->global_batch, (long long)slices);
}

/* The column that says which rows are the stream's, and not repeated. */
static void
add_mask(const struct plan *plan, struct schema *schema)
{
    int64_t rows = schema->columns[0].rank > 0 ? schema->columns[0].shape[0] : -1;
    struct column_spec *mask = schema_add(schema, plan->stream->distribute.mask, TUNDISH_BOOL);

    mask->rank = 1;
    mask->shape[0] = rows;
}

/* Rotate so that each worker begins with the sizes of its own replicas. Under DATA all workers see
 * the same rows, so the sizes must be the same. */
static struct plan_node *
insert_carry(struct plan *plan, int64_t slices)
{
    struct plan_node *deal = build_inserted(plan->graph, plan->graph->root, &order_deal_carry);
    struct rebatch_arguments *arguments = deal->arguments;

    arguments->batch = plan->global_batch;
    arguments->slices = slices;
    if (plan->policy != SHARD_DATA)
        arguments->rotation = (int64_t)plan->options.worker * plan->replicas;
    return deal;
}

tundish_status
rebatch_insert(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    const struct spec_distribute *asked = &plan->stream->distribute;
    int64_t slices = (int64_t)plan->options.worker_count * plan->replicas;
    struct plan_node *deal;

    if (!rebatch_has_batches(plan->user_root))
        return complain_of_no_batch(builder);
    if (check_whole(builder, slices) != TUNDISH_OK ||
        (asked->even_repeat && check_even(builder, slices) != TUNDISH_OK))
        return TUNDISH_E_PIPELINE;
    plan->rebatched = true;
    deal = plan->rule == REBATCH_CARRY ? insert_carry(plan, slices) : insert_split(plan, slices);
    for (uint32_t i = 0; i < deal->schema.count; i++) {
        struct column_spec *column = &deal->schema.columns[i];

        if (check_shared(builder, column) != TUNDISH_OK)
            return TUNDISH_E_PIPELINE;
        if (column->rank > 0)
            column->shape[0] = slice_rows(column->shape[0], slices);
    }
    if (asked->even_repeat)
        add_mask(plan, &deal->schema);
    plan->graph->root = deal;
    return TUNDISH_OK;
}
