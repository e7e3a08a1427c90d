/* batch_rows.c - compares batch sizes with the number of rows that can arrive. */
#include "plan/batch_rows.h"

#include "order/cardinality.h"
#include "order/planning.h"
#include "plan/build.h"

/* The stage that makes the batches, and their size. */
struct batching {
    const struct plan_node *node; /* NULL: no stage with a single size */
    int64_t size;                 /* as written; -1: a variable */
    int64_t come;                 /* upper bound of all rows it receives, or a CARDINALITY_ */
};

/* The largest of the sizes that are literals; -1 if there is none. */
static int64_t
rebatch_size(const struct plan_node *node)
{
    const struct spec_value *sizes = spec_get(node->stage, node->order->gathers);
    int64_t largest = order_literal(node, node->order->gathers, -1);

    for (uint32_t i = 0; sizes->kind == SPEC_LIST && i < sizes->count; i++)
        if (sizes->items[i].kind == SPEC_INTEGER && sizes->items[i].integer > largest)
            largest = sizes->items[i].integer;
    return largest;
}

static int64_t rows_of_batch(const struct plan_node *node, struct order_instance *instance);

/* Upper bound of the rows that `rebatch` receives in all batches. */
static int64_t
rows_in_all(const struct plan_node *batches, struct order_instance *instance)
{
    int64_t count = order_count_at_most(batches, instance);
    int64_t rows = rows_of_batch(batches, instance);

    return count < 0 ? count : rows < 0 ? CARDINALITY_UNKNOWN : plan_product(count, rows);
}

static struct batching
find_batching(const struct plan_node *node, struct order_instance *instance)
{
    uint32_t depth = node->depth;

    while (node->input_count == 1 && node->depth == depth) {
        const struct plan_node *input = node->inputs[0];

        if (node->order != NULL && node->order->batch_size == ORDER_SIZE_OWN)
            return (struct batching){ node, order_literal(node, node->order->gathers, -1),
                                      order_count_at_most(input, instance) };
        if (node->order != NULL && node->order->form == ORDER_REBATCHES)
            return (struct batching){ node, rebatch_size(node),
                                      input->depth == 1 ? rows_in_all(input, instance)
                                                        : CARDINALITY_UNKNOWN };
        node = input;
    }
    return (struct batching){ .size = -1, .come = CARDINALITY_UNKNOWN };
}

/* Rows of the largest batch. If fewer rows arrive than a batch needs, it is partial, or dropped. */
static int64_t
rows_that_come(const struct batching *batching)
{
    if (batching->come < 0 || batching->come >= batching->size)
        return batching->size;
    return spec_bool(batching->node->stage, "drop_remainder") ? 0 : batching->come;
}

static int64_t
rows_of_batch(const struct plan_node *node, struct order_instance *instance)
{
    struct batching batching = find_batching(node, instance);

    return batching.size < 0 ? -1 : rows_that_come(&batching);
}

/* Rows of the largest slice of a batch of `rows` rows. If rows carry over, a slice takes its rows
 * from as many batches as it needs. */
static int64_t
rows_of_slice(const struct plan *plan, int64_t rows, struct order_instance *instance)
{
    int64_t slices = (int64_t)plan->options.worker_count * plan->replicas, batches, whole;

    if (!plan->rebatched || rows < 0)
        return rows;
    if (plan->rule != REBATCH_CARRY)
        return rows / slices + (rows % slices != 0);
    whole = plan->global_batch / slices + (plan->global_batch % slices != 0);
    batches = order_count_at_most(plan->user_root, instance);
    return batches >= 0 && plan_product(batches, rows) < whole ? plan_product(batches, rows)
                                                               : whole;
}

/* The services that the order needs while it only counts. */
static struct order_services
services_of(const struct plan *plan)
{
    return (struct order_services){
        .worker = plan->options.worker,
        .worker_count = plan->options.worker_count,
        .replicas_in_sync = plan->options.worker_count * plan->replicas,
        .root_seed = plan->options.root_seed,
    };
}

void
plan_rows(const struct plan *plan, struct plan_rows *ret_rows)
{
    struct order_services services = services_of(plan);
    struct order_instance *instance = order_instance_open(plan->graph, NULL, &services);
    struct batching batching = find_batching(plan->user_root, instance);
    int64_t rows = plan->global_batch >= 0       ? plan->global_batch
                   : plan->user_root->depth <= 1 ? batching.size
                                                 : -1;

    if (rows >= 0 && rows == batching.size)
        rows = rows_that_come(&batching);
    if (rows < 0 && plan->user_root->depth == 0)
        rows = 1;
    *ret_rows = (struct plan_rows){
        .slice = rows_of_slice(plan, rows, instance),
        .may_be_fewer = batching.node != NULL && batching.come == CARDINALITY_UNKNOWN,
    };
    order_instance_close(instance);
}

/* Where the elements are cut, all replicas have a part of each. Where they are not, each replica
 * has every n-th. If rows carry over from batch to batch, the rows of each decide. */
static int64_t
steps_of(const struct plan *plan, int64_t elements)
{
    if (plan->rebatched)
        return plan->rule == REBATCH_CARRY ? -1 : elements;
    return elements / plan->replicas + (elements % plan->replicas != 0);
}

int64_t
plan_epoch_steps(const struct plan *plan)
{
    const struct spec_stream *stream = plan->stream;
    struct order_services services = services_of(plan);
    struct order_instance *instance;
    int64_t elements;

    if (plan->options.worker_count > 1 || stream->distribute.evaluation_shards != 0 ||
        stream->distribute.delivery == DELIVER_QUEUE || stream->deliver.skip_errors)
        return -1;
    instance = order_instance_open(plan->graph, NULL, &services);
    elements = order_cardinality(plan->user_root, instance);
    order_instance_close(instance);
    return elements < 0 ? -1 : steps_of(plan, elements);
}
