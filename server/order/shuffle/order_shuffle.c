/* order_shuffle.c - TensorFlow's shuffle (ShuffleDatasetOpBase), bit for bit.
 *
 * The window holds references in a ring. Each draw takes a random element, moves the oldest into
 * its place, and the next element of the input refills the window. If `repeat` is fused into it,
 * the window may hold several epochs, oldest first. Only the oldest is drawn from, so epochs never
 * mix, while the next ones already fill the window.
 *
 * Seeds come from the generator of the dataset object: two words for each iterator (or epoch, if
 * fused), in the order in which they begin.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "order/cardinality.h"
#include "order/shuffle/shuffle_private.h"

enum {
    WHOLE_EPOCH = -2,   /* tf.data.UNKNOWN_CARDINALITY as a buffer_size */
    EPOCHS_AT_MOST = 3, /* tf.data does not refill a window that holds more */
    ROOM_AT_FIRST = 1024,
    SAMPLE_LIMIT = 1 << 14, /* of the window, if services.samples */
    SHOWN_MAX = 1 << 30,    /* a larger buffer_size means "everything" */
    AHEAD = 32              /* draws made and prefetched before they are used */
};

void
shuffle_seed(struct shuffle *shuffle, const struct plan_node *node, uint64_t iterator_number)
{
    struct tnd_philox parent = tnd_philox_of_seeds(node->seed, node->seed2);
    uint32_t words[2];

    shuffle->seeds[0] = node->seed;
    shuffle->seeds[1] = node->seed2;
    if (!node->seeds_fixed) {
        tnd_philox_words(&parent, 2 * iterator_number, 2, words);
        shuffle->seeds[0] = words[0];
        shuffle->seeds[1] = words[1];
    }
    shuffle->draws = shuffle_draws_of(shuffle->seeds[0], shuffle->seeds[1], 0);
}

static inline uint64_t
wrap(const struct shuffle *shuffle, uint64_t at)
{
    return at >= shuffle->room ? at - shuffle->room : at;
}

/* Each draw touches a random address: huge pages make draws several times as fast. */
uint64_t *
shuffle_window_alloc(uint64_t room, uint32_t width)
{
    size_t bytes;

    must(!__builtin_mul_overflow(room, width * sizeof(uint64_t), &bytes));
    return tnd_alloc_scattered(bytes);
}

/* Replace the ring by a larger one, with the held elements at its beginning. */
static tundish_status
grow(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint32_t width = iterator->node->width;
    uint64_t to_end = shuffle->room - shuffle->head;
    uint64_t *window;
    size_t room;
    const struct order_growth growth = {
        .room = shuffle->room,
        .first = ROOM_AT_FIRST,
        .needed = shuffle->held + 1,
        .at_most = shuffle->limit,
        .bytes_each = width * sizeof *window,
    };

    must(shuffle->held == shuffle->room);
    if (order_grow(iterator, "buffer_size", &growth, &room) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    window = shuffle_window_alloc(room, width);
    if (shuffle->held > 0) {
        memcpy(window, shuffle->window + shuffle->head * width, to_end * width * sizeof *window);
        memcpy(window + to_end * width, shuffle->window, shuffle->head * width * sizeof *window);
    }
    free(shuffle->window);
    shuffle->window = window;
    shuffle->room = room;
    shuffle->head = 0;
    return TUNDISH_OK;
}

/* Add an epoch to the queue of lengths. The queue slides forward in its array, and is moved back
 * before it would grow. */
void
shuffle_append_length(struct shuffle *shuffle)
{
    if (shuffle->first_length > 0 &&
        shuffle->first_length + shuffle->length_count == shuffle->length_room) {
        memmove(shuffle->lengths, shuffle->lengths + shuffle->first_length,
                shuffle->length_count * sizeof *shuffle->lengths);
        shuffle->first_length = 0;
    }
    if (shuffle->length_count == shuffle->length_room) {
        shuffle->length_room = shuffle->length_room == 0 ? 8 : 2 * shuffle->length_room;
        shuffle->lengths =
            tnd_realloc(shuffle->lengths, shuffle->length_room, sizeof *shuffle->lengths);
    }
    shuffle->lengths[shuffle->first_length + shuffle->length_count++] = 0;
}

static inline uint64_t *
front_length(struct shuffle *shuffle)
{
    return &shuffle->lengths[shuffle->first_length];
}

static inline uint64_t *
back_length(struct shuffle *shuffle)
{
    return &shuffle->lengths[shuffle->first_length + shuffle->length_count - 1];
}

/* True if tf.data would refill the window before the next draw. */
static bool
wants_more(const struct shuffle *shuffle)
{
    if (shuffle->input == NULL && shuffle->epochs >= 0 && shuffle->epochs_begun >= shuffle->epochs)
        return false;
    if (shuffle->length_count > EPOCHS_AT_MOST && shuffle->held > 0)
        return false;
    if (shuffle->limit == UINT64_MAX && !shuffle->back_is_whole)
        return true;
    if (shuffle->limit == UINT64_MAX)
        /* UNKNOWN_CARDINALITY: the first epoch decides how large the window is. */
        return shuffle->held < shuffle->most_held;
    return shuffle->held < shuffle->limit;
}

/* Pull elements directly into the ring, as many as fit without wrapping. */
static enum order_result
pull(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint32_t width = iterator->node->width;
    uint64_t tail, room;
    size_t count;
    enum order_result result;

    if (shuffle->held == shuffle->room && grow(iterator) != TUNDISH_OK)
        return ORDER_FAILED;
    tail = wrap(shuffle, shuffle->head + shuffle->held);
    room = tail >= shuffle->head ? shuffle->room - tail : shuffle->head - tail;
    if (shuffle->length_count > EPOCHS_AT_MOST)
        /* Beyond EPOCHS_AT_MOST tf.data refills an empty window with a single element. */
        room = 1;
    result = order_next(shuffle->input, shuffle->window + tail * width, (size_t)room, &count);
    shuffle->held += count;
    if (shuffle->held > shuffle->most_held)
        shuffle->most_held = shuffle->held;
    *back_length(shuffle) += count;
    shuffle->any_element |= count > 0;
    return result;
}

/* Begin an epoch of the input. A failure ends the input; the held elements are still drawn. */
static tundish_status
begin_epoch(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    tundish_status status;

    status = order_open(iterator->node->inputs[0], iterator->instance, &shuffle->input);
    if (status != TUNDISH_OK) {
        shuffle->epochs = 0;
        return status;
    }
    shuffle_append_length(shuffle);
    shuffle->back_is_whole = false;
    shuffle->epochs_begun++;
    return TUNDISH_OK;
}

/* Fill the window as tf.data does before each draw. */
static enum order_result
fill_buffer(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);

    while (wants_more(shuffle)) {
        enum order_result result;

        if (shuffle->input == NULL && begin_epoch(iterator) != TUNDISH_OK)
            return ORDER_FAILED;
        result = pull(iterator);
        tnd_stats_set(&iterator->counters->queued, shuffle->held);
        if (result == ORDER_FAILED)
            return result;
        if (result == ORDER_END) {
            order_drop(&shuffle->input);
            shuffle->back_is_whole = true;
            if (!shuffle->any_element && shuffle->epochs < 0)
                return ORDER_OK; /* an empty input ends even if it repeats endlessly */
        }
    }
    return ORDER_OK;
}

/* Drop exhausted epochs from the front. Each epoch that begins draws its own seeds, even an empty
 * one, as in tf.data. */
static void
forget_empty_epochs(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    uint64_t *iterators = &iterator->instance->iterator_counts[iterator->node->number];

    while (*front_length(shuffle) == 0) {
        shuffle->first_length++;
        shuffle->length_count--;
        shuffle_seed(shuffle, iterator->node, (*iterators)++);
    }
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void
copy_element(uint64_t *to, const uint64_t *from, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        to[i] = from[i];
}

/* Draw `count` elements of the oldest epoch without refilling. Draws are made AHEAD at a time and
 * prefetched: the drawn addresses do not depend on the elements. */
ALWAYS_INLINE void
drain(struct shuffle *shuffle, uint64_t *words, size_t count, uint32_t width)
{
    uint64_t *front = front_length(shuffle);
    uint64_t drawn[AHEAD];

    for (size_t done = 0; done < count;) {
        size_t some = count - done < AHEAD ? count - done : AHEAD;
        uint64_t head = shuffle->head;

        for (size_t i = 0; i < some; i++) {
            drawn[i] = wrap(shuffle, head + shuffle_draw(&shuffle->draws) % (*front - i));
            __builtin_prefetch(shuffle->window + drawn[i] * width, 1);
            head = wrap(shuffle, head + 1);
        }
        for (size_t i = 0; i < some; i++) {
            uint64_t *chosen = shuffle->window + drawn[i] * width;

            copy_element(words + (done + i) * width, chosen, width);
            copy_element(chosen, shuffle->window + shuffle->head * width, width);
            shuffle->head = wrap(shuffle, shuffle->head + 1);
        }
        *front -= some;
        done += some;
    }
    shuffle->held -= count;
}

/* The steady state, in place: each of the `count` new elements at `words` enters the window at its
 * tail, and a drawn element takes its place. Draws are made ahead, as for `drain`. */
ALWAYS_INLINE void
exchange(struct shuffle *shuffle, uint64_t *words, size_t count, uint32_t width)
{
    uint64_t *front = front_length(shuffle);
    bool one_epoch = shuffle->length_count == 1;
    struct modulo by_limit = modulo_of(shuffle->limit);
    uint64_t drawn[AHEAD];

    for (size_t done = 0; done < count;) {
        size_t some = count - done < AHEAD ? count - done : AHEAD;
        uint64_t head = shuffle->head;

        for (size_t i = 0; i < some; i++) {
            uint64_t offset = one_epoch ? modulo(by_limit, shuffle_draw(&shuffle->draws))
                                        : shuffle_draw(&shuffle->draws) % (*front - i);

            drawn[i] = wrap(shuffle, head + offset);
            __builtin_prefetch(shuffle->window + drawn[i] * width, 1);
            head = wrap(shuffle, head + 1);
        }
        head = shuffle->head;
        for (size_t i = 0; i < some; i++) {
            uint64_t *new = words + (done + i) * width;
            uint64_t *tail = shuffle->window + (head == 0 ? shuffle->room - 1 : head - 1) * width;
            uint64_t *chosen = shuffle->window + drawn[i] * width;

            copy_element(tail, new, width);
            copy_element(new, chosen, width);
            copy_element(chosen, shuffle->window + head * width, width);
            head = wrap(shuffle, head + 1);
        }
        shuffle->head = head;
        if (!one_epoch) {
            *front -= some;
            *back_length(shuffle) += some;
        }
        done += some;
    }
}

/* Constant widths let the compiler copy elements in registers. */
static void
drain_any(struct shuffle *shuffle, uint64_t *words, size_t count, uint32_t width)
{
    if (width == 1)
        drain(shuffle, words, count, 1);
    else if (width == 2)
        drain(shuffle, words, count, 2);
    else
        drain(shuffle, words, count, width);
}

static void
exchange_any(struct shuffle *shuffle, uint64_t *words, size_t count, uint32_t width)
{
    if (width == 1)
        exchange(shuffle, words, count, 1);
    else if (width == 2)
        exchange(shuffle, words, count, 2);
    else
        exchange(shuffle, words, count, width);
}

/* The window lacks one element. Pull new elements into `words` and exchange them there. If there
 * are several epochs, exchange at most as many as the oldest has: only those can be drawn. (A
 * single epoch gains an element for each one drawn.) */
static enum order_result
next_steady(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    enum order_result result;

    if (shuffle->length_count > 1 && max > *front_length(shuffle))
        max = (size_t)*front_length(shuffle);
    result = order_next(shuffle->input, words, max, ret_count);
    if (result == ORDER_OK)
        exchange_any(shuffle, words, *ret_count, iterator->node->width);
    return result;
}

static bool
is_steady(struct shuffle *shuffle)
{
    return shuffle->input != NULL && shuffle->held + 1 == shuffle->limit &&
           shuffle->room == shuffle->limit && shuffle->length_count <= EPOCHS_AT_MOST &&
           (shuffle->length_count == 1 || *front_length(shuffle) > 0);
}

static enum order_result
shuffle_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    enum order_result result;

    if (is_steady(shuffle)) {
        result = next_steady(iterator, words, max, ret_count);
        if (result == ORDER_OK || result == ORDER_FAILED)
            return result;
        order_drop(&shuffle->input);
        shuffle->back_is_whole = true;
    }
    result = fill_buffer(iterator);
    if (result != ORDER_OK)
        return result;
    tnd_stats_set(&iterator->counters->queued, shuffle->held);
    if (shuffle->held == 0)
        return ORDER_END;
    forget_empty_epochs(iterator);
    /* If the window must be refilled after one draw, make only that one. */
    shuffle->held--;
    if (wants_more(shuffle))
        max = 1;
    shuffle->held++;
    if (max > *front_length(shuffle))
        max = (size_t)*front_length(shuffle);
    drain_any(shuffle, words, max, iterator->node->width);
    *ret_count = max;
    return ORDER_OK;
}

static bool
is_shuffled_list(const struct plan_node *node)
{
    return node->stage != NULL && stage_parameter(node->stage->info, "shuffle") >= 0 &&
           spec_bool(node->stage, "shuffle");
}

/* The file list that a shuffle of the plan belongs to: the last one before it, as distribution
 * finds it. */
static const struct plan_node *
shuffled_list(const struct plan_node *node)
{
    for (uint32_t i = node->input_count; i-- > 0;) {
        const struct plan_node *list = shuffled_list(node->inputs[i]);

        if (list != NULL)
            return list;
    }
    return is_shuffled_list(node) ? node : NULL;
}

/* list_files shuffles with a buffer as large as its list. Distribution may move that shuffle after
 * stages that repeat the list, where the size is observable. */
static int64_t
list_length(const struct order_iterator *iterator)
{
    const struct plan_node *list = shuffled_list(iterator->node);
    int64_t count = list != NULL ? order_cardinality(list, iterator->instance) : 0;

    return count > 0 ? count : INT64_MAX;
}

static tundish_status
read_buffer_size(const struct order_iterator *iterator, int64_t *ret_size)
{
    const struct plan_node *node = iterator->node;

    if (node->stage != NULL)
        return order_int(iterator, "buffer_size", ret_size);
    *ret_size = node->inputs[0]->input_count > 0 ? list_length(iterator) : INT64_MAX;
    return TUNDISH_OK;
}

/* As in tf.data, the iterator of the input is made on the first pull. */
static tundish_status
shuffle_open(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    int64_t buffer_size;
    tundish_status status = read_buffer_size(iterator, &buffer_size);

    if (status != TUNDISH_OK)
        return status;
    if (buffer_size < 1 && buffer_size != WHOLE_EPOCH)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "buffer_size must be greater than zero, not %" PRId64, buffer_size);
    shuffle->limit = buffer_size == WHOLE_EPOCH ? UINT64_MAX : (uint64_t)buffer_size;
    if (iterator->instance->services->samples && shuffle->limit > SAMPLE_LIMIT)
        shuffle->limit = SAMPLE_LIMIT;
    shuffle->epochs = 1;
    tnd_stats_set(&iterator->counters->room, shuffle->limit < SHOWN_MAX ? shuffle->limit : 0);
    shuffle_seed(shuffle, iterator->node, iterator->iterator_number);
    return TUNDISH_OK;
}

static void
shuffle_repeat(struct order_iterator *iterator, int64_t count)
{
    shuffle_of(iterator)->epochs = count;
}

static void
shuffle_close(struct order_iterator *iterator)
{
    struct shuffle *shuffle = shuffle_of(iterator);
    const struct plan_node *node = iterator->node;

    for (uint64_t i = 0; i < shuffle->held && node->run_words != 0; i++)
        run_words_release(shuffle->window + wrap(shuffle, shuffle->head + i) * node->width, 1,
                          node->width, node->run_words);
    free(shuffle->window);
    free(shuffle->lengths);
    order_close(shuffle->input);
}

static enum order_seeds
shuffle_seeds(const struct spec_stage *stage)
{
    (void)stage;
    return ORDER_SEEDS_TENSORFLOW;
}

const struct order_ops order_shuffle = {
    .name = "shuffle",
    .form = ORDER_PASSES,
    .selection = ORDER_ONLY_ORDERS,
    .alike = ORDER_ALIKE_ELEMENTS,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .shuffles_in = "buffer_size",
    .state_bytes = sizeof(struct shuffle),
    .open = shuffle_open,
    .next = shuffle_next,
    .close = shuffle_close,
    .pass_over = shuffle_pass_over,
    .repeat = shuffle_repeat,
    .counts_elements = true,
    .seeds = shuffle_seeds,
    .cardinality = order_count_input,
};
