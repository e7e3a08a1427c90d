/* order_bucket_by_sequence_length.c - batches of elements of similar length. A full bucket becomes
 * a batch at once. At the end of the input the partial ones follow in the order of the buckets,
 * since tf.data builds this from group_by_window with the bucket as the key. */
#include "order/arguments.h"
#include "order/columns.h"
#include "order/held.h"
#include "order/noting.h"
#include "order/peek.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

struct bucket {
    struct order_held held;
    uint64_t size;
};

struct buckets {
    struct order_peek peek;
    int64_t *boundaries; /* one fewer than there are buckets */
    struct bucket *list;
    uint32_t count;
    bool drop_remainder, pad_to_boundary;
    bool input_ended;
    uint32_t flushed; /* buckets emptied after the end of the input */
    struct order_noting noting;
};

enum { ROOM_AT_FIRST = 16 };

static struct buckets *
state_of(struct order_iterator *iterator)
{
    return (struct buckets *)iterator->state;
}

static tundish_status
read_lists(struct order_iterator *iterator)
{
    struct buckets *buckets = state_of(iterator);
    const struct spec_value *boundaries = spec_get(iterator->node->stage, "bucket_boundaries");
    const struct spec_value *sizes = spec_get(iterator->node->stage, "bucket_batch_sizes");
    tundish_status status = TUNDISH_OK;

    if (sizes->count != boundaries->count + 1)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "bucket_batch_sizes must be one more than bucket_boundaries (%u), not %u",
                          boundaries->count, sizes->count);
    buckets->count = sizes->count;
    buckets->boundaries = tnd_zalloc(buckets->count, sizeof *buckets->boundaries);
    buckets->list = tnd_zalloc(buckets->count, sizeof *buckets->list);
    for (uint32_t i = 0; i < boundaries->count && status == TUNDISH_OK; i++) {
        status =
            order_value_int(iterator->instance, &boundaries->items[i], &buckets->boundaries[i]);
        if (status == TUNDISH_OK && i > 0 && buckets->boundaries[i] <= buckets->boundaries[i - 1])
            status = order_fail(iterator, TUNDISH_E_PIPELINE,
                                "bucket_boundaries must be in ascending order");
    }
    for (uint32_t i = 0; i < sizes->count && status == TUNDISH_OK; i++) {
        int64_t size;

        status = order_value_int(iterator->instance, &sizes->items[i], &size);
        if (status == TUNDISH_OK && size < 1)
            status = order_fail(iterator, TUNDISH_E_PIPELINE,
                                "bucket_batch_sizes must be at least 1, not %" PRId64, size);
        if (status == TUNDISH_OK)
            buckets->list[i].size = (uint64_t)size;
    }
    return status;
}

static tundish_status
buckets_open(struct order_iterator *iterator)
{
    struct buckets *buckets = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    const struct spec_stage *stage = iterator->node->stage;
    tundish_status status = read_lists(iterator);
    int32_t column;

    if (status != TUNDISH_OK)
        return status;
    column = schema_find(&input->schema, spec_text(stage, "column"));
    must(column >= 0);
    buckets->peek.node = input;
    buckets->peek.kind = PEEK_LENGTH;
    buckets->peek.column = (uint32_t)column;
    buckets->drop_remainder = spec_bool(stage, "drop_remainder");
    buckets->pad_to_boundary =
        spec_bool(stage, "pad_to_bucket_boundary") && !spec_bool(stage, "no_padding");
    order_noting_begin(&buckets->noting, iterator, false);
    return order_peek_open(&buckets->peek, input, iterator->instance);
}

static struct bucket *
bucket_of(struct buckets *buckets, int64_t length)
{
    uint32_t i = 0;

    while (i + 1 < buckets->count && length >= buckets->boundaries[i])
        i++;
    return &buckets->list[i];
}

static tundish_status
put_element(const struct order_iterator *iterator, struct bucket *bucket, const uint64_t *element)
{
    const struct buckets *buckets = (const struct buckets *)(const void *)iterator->state;
    struct order_held *held = &bucket->held;
    uint32_t width = iterator->node->inputs[0]->width;

    if (held->count == held->room) {
        const struct order_growth growth = {
            .room = held->room,
            .first = ROOM_AT_FIRST,
            .needed = held->count + 1,
            .at_most = UINT64_MAX,
            .bytes_each = width * sizeof *element,
        };
        size_t room;

        if (order_grow(iterator, "bucket_batch_sizes", &growth, &room) != TUNDISH_OK)
            return TUNDISH_E_MEMORY;
        order_held_grow(held, room, width, buckets->noting.list != NULL);
    }
    memcpy(held->words + held->count * width, element, width * sizeof *element);
    if (buckets->noting.list != NULL)
        held->numbers[held->count] = buckets->peek.taken - 1;
    held->count++;
    return TUNDISH_OK;
}

/* Make a batch of a bucket. tf.data fails for the last bucket with pad_to_bucket_boundary: it has
 * no upper boundary to pad to. */
static enum order_result
flush(struct order_iterator *iterator, struct bucket *bucket, uint64_t *word)
{
    struct buckets *buckets = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    size_t count = bucket->held.count;

    bucket->held.count = 0;
    buckets->noting.passed++;
    tnd_stats_add(&iterator->counters->queued, -(uint64_t)count);
    if (buckets->pad_to_boundary && bucket == &buckets->list[buckets->count - 1]) {
        run_words_release(bucket->held.words, count, input->width, input->run_words);
        order_fail(iterator, TUNDISH_E_DATA,
                   "pad_to_bucket_boundary needs every length to be below the last of "
                   "bucket_boundaries, which this element's is not");
        return ORDER_FAILED;
    }
    *word = run_word(run_new(bucket->held.words, count, input->width, input->run_words));
    return ORDER_OK;
}

/* After the end of the input: make a batch of the next bucket that is not empty. */
static enum order_result
next_left(struct order_iterator *iterator, uint64_t *word)
{
    struct buckets *buckets = state_of(iterator);

    while (buckets->flushed < buckets->count) {
        struct bucket *bucket = &buckets->list[buckets->flushed++];
        enum order_result result;

        if (bucket->held.count == 0)
            continue;
        result = flush(iterator, bucket, word);
        if (result == ORDER_OK && buckets->drop_remainder)
            /* Flush first: a missing boundary is an error even for a batch that is then dropped. */
            run_words_release(word, 1, 1, 1);
        else
            return result;
    }
    return ORDER_END;
}

static void
note(struct order_iterator *iterator)
{
    struct buckets *buckets = state_of(iterator);
    struct order_state_writer *state;

    if (buckets->peek.has_bad)
        order_noting_end(&buckets->noting);
    if (buckets->noting.list == NULL ||
        !order_noting_wants(&buckets->noting, iterator, buckets->peek.taken))
        return;
    state = order_noting_state(iterator);
    for (uint32_t i = 0; i < buckets->count; i++)
        order_held_write(&buckets->list[i].held, state);
    order_noting_note(&buckets->noting, iterator, buckets->peek.taken, state);
}

static enum order_result
next_batch(struct order_iterator *iterator, size_t max, uint64_t *word)
{
    struct buckets *buckets = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    while (!buckets->input_ended) {
        const uint64_t *element;
        int64_t length;
        struct bucket *bucket;
        enum order_result result = order_peek_next(&buckets->peek, max, &element, &length);

        if (result == ORDER_FAILED)
            return result;
        if (result == ORDER_END) {
            buckets->input_ended = true;
            break;
        }
        bucket = bucket_of(buckets, length);
        if (put_element(iterator, bucket, element) != TUNDISH_OK) {
            order_noting_end(&buckets->noting);
            run_words_release(element, 1, input->width, input->run_words);
            return ORDER_FAILED;
        }
        tnd_stats_add(&iterator->counters->queued, 1);
        if (bucket->held.count == bucket->size)
            result = flush(iterator, bucket, word);
        if (result == ORDER_FAILED)
            order_noting_end(&buckets->noting);
        if (buckets->peek.taken == buckets->noting.next)
            note(iterator);
        if (bucket->held.count == 0)
            return result;
    }
    return next_left(iterator, word);
}

static enum order_result
buckets_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        result = next_batch(iterator, max - *ret_count, &words[*ret_count]);
        *ret_count += result == ORDER_OK;
    }
    return result;
}

static void
release_held(struct buckets *buckets, const struct plan_node *input)
{
    for (uint32_t i = 0; buckets->list != NULL && i < buckets->count; i++) {
        struct order_held *held = &buckets->list[i].held;

        run_words_release(held->words, held->count, input->width, input->run_words);
        order_held_close(held);
    }
}

static bool
read_held(struct buckets *buckets, const struct order_landmark *landmark, uint32_t width)
{
    struct order_state_reader reader = order_landmark_read(landmark);

    for (uint32_t i = 0; i < buckets->count; i++)
        if (!order_held_read(&buckets->list[i].held, &reader, buckets->list[i].size, width))
            return false;
    return order_state_is_whole(&reader);
}

static tundish_status
pull_held(struct order_iterator *iterator, uint64_t taken)
{
    struct buckets *buckets = state_of(iterator);
    struct order_held **list = tnd_alloc(buckets->count * sizeof(struct order_held *));
    tundish_status status;

    for (uint32_t i = 0; i < buckets->count; i++)
        list[i] = &buckets->list[i].held;
    status = order_held_pull(iterator, buckets->peek.input, list, buckets->count, taken);
    free(list);
    return status;
}

static enum order_result
buckets_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct buckets *buckets = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    struct order_landmark landmark;
    tundish_status status = TUNDISH_NO_VALUE;

    if (buckets->peek.taken > 0 || !order_noting_before(&buckets->noting, count, &landmark))
        return ORDER_OK;
    if (read_held(buckets, &landmark, input->width))
        status = pull_held(iterator, landmark.taken);
    if (status != TUNDISH_OK) {
        release_held(buckets, input);
        return status == TUNDISH_NO_VALUE ? ORDER_OK : ORDER_FAILED;
    }
    for (uint32_t i = 0; i < buckets->count; i++)
        tnd_stats_add(&iterator->counters->queued, buckets->list[i].held.count);
    buckets->peek.taken = landmark.taken;
    order_noting_stand_at(&buckets->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}

static uint64_t
buckets_surely(struct order_iterator *iterator)
{
    const struct buckets *buckets = state_of(iterator);

    return buckets->peek.taken == 0 ? order_noting_reach(&buckets->noting) : 0;
}

static void
buckets_close(struct order_iterator *iterator)
{
    struct buckets *buckets = state_of(iterator);

    release_held(buckets, iterator->node->inputs[0]);
    free(buckets->list);
    free(buckets->boundaries);
    order_noting_end(&buckets->noting);
    order_peek_close(&buckets->peek);
}

static tundish_status
buckets_columns(const struct order_planning *planning, struct plan_node *node)
{
    const struct schema *input = &node->inputs[0]->schema;
    struct batch_arguments *arguments = node->arguments;
    const char *name = spec_text(node->stage, "column");
    int32_t index = schema_find(input, name);

    if (index < 0)
        return order_complain(planning->errors, node,
                              "%s: there is no column '%s' to take the length of", node->name,
                              name);
    if (input->columns[index].rank == 0 && input->columns[index].dtype != TUNDISH_INT64)
        return order_complain(
            planning->errors, node,
            "%s: column '%s' is a scalar of %s, which has no length: name a column with a "
            "dimension, or an int64 scalar, which is the length",
            node->name, name, tnd_dtype_name(input->columns[index].dtype));
    arguments->to_boundary = spec_bool(node->stage, "pad_to_bucket_boundary");
    return order_batch_columns(
        planning, node, order_is_true(node, "no_padding") ? ORDER_ROWS_STACKED : ORDER_ROWS_PADDED,
        -1);
}

const struct order_ops order_bucket_by_sequence_length = {
    .name = "bucket_by_sequence_length",
    .is_noted = true,
    .form = ORDER_BATCHES,
    .content_use = ORDER_READS_CONTENT_ALWAYS,
    .gathers = "bucket_batch_sizes",
    .arguments_bytes = sizeof(struct batch_arguments),
    .state_bytes = sizeof(struct buckets),
    .open = buckets_open,
    .next = buckets_next,
    .close = buckets_close,
    .pass_over = buckets_pass_over,
    .surely = buckets_surely,
    .gathered = order_gathered_input,
    .columns = buckets_columns,
};
