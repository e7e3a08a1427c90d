/* order_batch.c - several elements become one run. All kinds of batch are the same here; they
 * differ only in the content that is made of a run. */
#include "order/arguments.h"
#include "order/cardinality.h"
#include "order/columns.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/memory.h"

struct batch {
    struct order_iterator *input;
    uint64_t size;
    bool drop_remainder;
    struct run *run; /* the batch being filled, or NULL */
    size_t room;     /* elements that fit there, or did into the batch before */
};

/* The buffer grows as elements arrive: a hostile batch_size must not allocate anything. */
enum { ROOM_AT_FIRST = 1024 };

static struct batch *
state_of(struct order_iterator *iterator)
{
    return (struct batch *)iterator->state;
}

static tundish_status
batch_open(struct order_iterator *iterator)
{
    struct batch *batch = state_of(iterator);
    tundish_status status;
    int64_t size;

    status = order_int(iterator, "batch_size", &size);
    if (status != TUNDISH_OK)
        return status;
    if (size <= 0)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "batch_size must be greater than zero, not %" PRId64, size);
    batch->size = (uint64_t)size;
    batch->drop_remainder = spec_bool(iterator->node->stage, "drop_remainder");
    return order_open(iterator->node->inputs[0], iterator->instance, &batch->input);
}

static tundish_status
grow(struct order_iterator *iterator, uint64_t needed)
{
    struct batch *batch = state_of(iterator);
    const struct order_growth growth = {
        .room = batch->room,
        .first = ROOM_AT_FIRST,
        .needed = needed,
        .at_most = batch->size,
        .bytes_each = iterator->node->inputs[0]->width * sizeof *batch->run->storage,
    };

    return order_grow(iterator, "batch_size", &growth, &batch->room);
}

static tundish_status
make_room(struct order_iterator *iterator)
{
    struct batch *batch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    if (batch->room == 0 && grow(iterator, 1) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    if (batch->run == NULL)
        batch->run = run_begin(input->width, input->run_words, batch->room);
    if (batch->run->element_count < batch->room)
        return TUNDISH_OK;
    if (grow(iterator, batch->run->element_count + 1) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    batch->run = run_grow(batch->run, batch->room);
    return TUNDISH_OK;
}

static uint64_t
count_of(const struct batch *batch)
{
    return batch->run == NULL ? 0 : batch->run->element_count;
}

static void
discard(struct batch *batch)
{
    run_release(batch->run);
    batch->run = NULL;
}

/* Fill the batch. After a failure or an END the partial batch is still in batch->run. */
static enum order_result
fill_batch(struct order_iterator *iterator)
{
    struct batch *batch = state_of(iterator);
    uint32_t width = iterator->node->inputs[0]->width;
    enum order_result result = ORDER_OK;

    while (count_of(batch) < batch->size && result == ORDER_OK) {
        struct run *run;
        size_t count;

        if (make_room(iterator) != TUNDISH_OK)
            return ORDER_FAILED;
        run = batch->run;
        result = order_next(batch->input, run->storage + run->element_count * width,
                            batch->room - run->element_count, &count);
        run->element_count += count;
    }
    return result;
}

static enum order_result
batch_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct batch *batch = state_of(iterator);
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        result = fill_batch(iterator);
        /* As BatchDataset does: a failure discards the rows that were already in its batch. */
        if (result == ORDER_FAILED || (result == ORDER_END && batch->drop_remainder))
            discard(batch);
        if (count_of(batch) == 0)
            break;
        words[(*ret_count)++] = run_word(run_finish(batch->run, batch->room));
        batch->run = NULL;
    }
    return result;
}

static enum order_result
batch_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct batch *batch = state_of(iterator);
    uint64_t rows, passed;
    enum order_result result;

    if (__builtin_mul_overflow(count, batch->size, &rows))
        /* Pass over whole batches only, or the next call would start within one. */
        rows = UINT64_MAX / batch->size * batch->size;
    result = order_pass_over(batch->input, rows, &passed);
    *ret_passed = passed / batch->size;
    if (result == ORDER_END && passed % batch->size != 0 && !batch->drop_remainder)
        ++*ret_passed;
    /* The input may end exactly after the last batch wanted: the caller meets END on the next call.
     */
    return result == ORDER_END && *ret_passed == count ? ORDER_OK : result;
}

static void
batch_close(struct order_iterator *iterator)
{
    struct batch *batch = state_of(iterator);

    discard(batch);
    order_close(batch->input);
}

static int64_t
batch_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t count = order_count(node->inputs[0], counting);
    int64_t size = order_count_parameter(node, counting, "batch_size");

    if (count < 0 || size < 1)
        return count < 0 ? count : CARDINALITY_UNKNOWN;
    return count / size + (count % size != 0 && !spec_bool(node->stage, "drop_remainder"));
}

static tundish_status
batch_columns(const struct order_planning *planning, struct plan_node *node)
{
    return order_batch_columns(planning, node, node->order->rows,
                               order_batch_length(planning, node));
}

#define BATCH(stage, rows_)                                                                        \
    const struct order_ops order_##stage = {                                                       \
        .name = #stage,                                                                            \
        .form = ORDER_BATCHES,                                                                     \
        .selection = ORDER_KEEPS,                                                                  \
        .alike = ORDER_ALIKE_COUNT,                                                                \
        .search = ORDER_SEARCH_INPUT,                                                              \
        .batch_size = ORDER_SIZE_OWN,                                                              \
        .rows = rows_,                                                                             \
        .gathers = "batch_size",                                                                   \
        .arguments_bytes = sizeof(struct batch_arguments),                                         \
        .state_bytes = sizeof(struct batch),                                                       \
        .open = batch_open,                                                                        \
        .next = batch_next,                                                                        \
        .close = batch_close,                                                                      \
        .pass_over = batch_pass_over,                                                              \
        .gathered = order_gathered_input,                                                          \
        .columns = batch_columns,                                                                  \
        .cardinality = batch_cardinality,                                                          \
    }

BATCH(batch, ORDER_ROWS_STACKED);
BATCH(padded_batch, ORDER_ROWS_PADDED);
BATCH(ragged_batch, ORDER_ROWS_RAGGED);
