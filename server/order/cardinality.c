/* cardinality.c - tf.data's Cardinality, stage by stage. What it does not tell, this does not
 * either: a filter's, files' lines and records, what a function's datasets add up to. */
#include "order/cardinality.h"

#include <string.h>

struct counting {
    struct order_instance *instance;
    bool at_most; /* a bound will do where the number is not known */
};

static int64_t count_of(const struct plan_node *node, const struct counting *counting);

static bool
is(const struct plan_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

static int64_t
of_source(const struct plan_node *node, struct order_instance *instance)
{
    struct order_iterator *iterator = NULL;
    uint64_t count;
    bool known = is(node, "range") || is(node, "from_tensors") || is(node, "from_tensor_slices") ||
                 (is(node, "list_files") && instance->services->files != NULL);

    if (!known || node->order->count == NULL)
        return CARDINALITY_UNKNOWN;
    known = order_open(node, instance, &iterator) == TUNDISH_OK &&
            iterator->ops->count(iterator, &count) == TUNDISH_OK && count <= INT64_MAX;
    order_close(iterator);
    instance->iterator_counts[node->number]--;
    return known ? (int64_t)count : CARDINALITY_UNKNOWN;
}

/* A parameter; unknown if it has no number here. */
static int64_t
parameter(const struct plan_node *node, struct order_instance *instance, const char *name)
{
    int64_t value;

    return order_value_int(instance, spec_get(node->stage, name), &value) == TUNDISH_OK
               ? value
               : CARDINALITY_UNKNOWN;
}

static int64_t
repeated(int64_t count, int64_t times)
{
    int64_t all;

    if (times == 0 || count == 0)
        return 0;
    if (times < 0)
        return CARDINALITY_INFINITE;
    if (count < 0)
        return count;
    return __builtin_mul_overflow(count, times, &all) ? CARDINALITY_UNKNOWN : all;
}

static int64_t
taken(int64_t count, int64_t limit, bool at_most)
{
    if (limit < 0 || (count == CARDINALITY_UNKNOWN && !at_most))
        return count;
    if (count == CARDINALITY_UNKNOWN)
        return limit;
    return count == CARDINALITY_INFINITE || limit < count ? limit : count;
}

static int64_t
skipped(int64_t count, int64_t skip)
{
    if (count == CARDINALITY_UNKNOWN)
        return count;
    if (count == CARDINALITY_INFINITE)
        return skip < 0 ? 0 : count;
    return skip < 0 || skip > count ? 0 : count - skip;
}

static int64_t
batched(const struct plan_node *node, struct order_instance *instance, int64_t count)
{
    int64_t size = parameter(node, instance, "batch_size");

    if (count < 0 || size < 1)
        return count < 0 ? count : CARDINALITY_UNKNOWN;
    return count / size + (count % size != 0 && !spec_bool(node->stage, "drop_remainder"));
}

static int64_t
sharded(const struct plan_node *node, const struct counting *counting, int64_t count)
{
    int64_t otherwise = counting->at_most ? count : CARDINALITY_UNKNOWN, shards, at;
    const struct spec_value *index;

    if (node->stage == NULL || node->numbers[0] != 0 || count < 0)
        return count < 0 ? count : otherwise;
    index = spec_get(node->stage, "index");
    if (index == NULL || spec_get(node->stage, "num_shards")->kind == SPEC_TEXT)
        return otherwise;
    shards = parameter(node, counting->instance, "num_shards");
    at = parameter(node, counting->instance, "index");
    return shards < 1 || at < 0 ? otherwise : count / shards + (at < count % shards);
}

/* Where a shape says how many rows each batch has. */
static int64_t
unbatched(const struct plan_node *node, int64_t count)
{
    const struct schema *batches = &node->inputs[0]->schema;

    for (uint32_t i = 0; count >= 0 && i < batches->count; i++)
        if (batches->columns[i].rank > 0 && batches->columns[i].shape[0] >= 0)
            return repeated(count, batches->columns[i].shape[0]);
    return count < 0 ? count : CARDINALITY_UNKNOWN;
}

static int64_t
zipped(const struct plan_node *node, const struct counting *counting)
{
    int64_t least = CARDINALITY_INFINITE;
    bool all_known = true;

    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t count = count_of(node->inputs[i], counting);

        all_known &= count != CARDINALITY_UNKNOWN;
        if (count >= 0 && (least < 0 || count < least))
            least = count;
    }
    return all_known || (counting->at_most && least >= 0) ? least : CARDINALITY_UNKNOWN;
}

static int64_t
concatenated(const struct plan_node *node, const struct counting *counting)
{
    int64_t all = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t count = count_of(node->inputs[i], counting);

        if (count == CARDINALITY_INFINITE)
            return count;
        if (count < 0 || all < 0 || __builtin_add_overflow(all, count, &all))
            all = CARDINALITY_UNKNOWN;
    }
    return all;
}

static bool
keeps_count(const struct plan_node *node)
{
    return node->order == NULL || is(node, "shuffle") || is(node, "permute") ||
           is(node, "enumerate") || is(node, "ordinal") || is(node, "prefetch") ||
           is(node, "cache");
}

static int64_t
count_of(const struct plan_node *node, const struct counting *counting)
{
    struct order_instance *instance = counting->instance;
    int64_t count;

    if (node->input_count == 0)
        return of_source(node, instance);
    if (is(node, "zip"))
        return zipped(node, counting);
    if (is(node, "concatenate"))
        return concatenated(node, counting);
    if (node->body != NULL || node->input_count > 1)
        return CARDINALITY_UNKNOWN;
    count = count_of(node->inputs[0], counting);
    if (keeps_count(node) || (counting->at_most && is(node, "filter")))
        return count;
    if (is(node, "repeat"))
        return repeated(count, parameter(node, instance, "count"));
    if (is(node, "take"))
        return taken(count, parameter(node, instance, "count"), counting->at_most);
    if (is(node, "skip"))
        return skipped(count, parameter(node, instance, "count"));
    if (is(node, "shard"))
        return sharded(node, counting, count);
    if (is(node, "unbatch"))
        return unbatched(node, count);
    if (is(node, "batch") || is(node, "padded_batch") || is(node, "ragged_batch"))
        return batched(node, instance, count);
    return CARDINALITY_UNKNOWN;
}

int64_t
order_cardinality(const struct plan_node *node, struct order_instance *instance)
{
    return count_of(node, &(struct counting){ .instance = instance });
}

int64_t
order_count_at_most(const struct plan_node *node, struct order_instance *instance)
{
    return count_of(node, &(struct counting){ .instance = instance, .at_most = true });
}
