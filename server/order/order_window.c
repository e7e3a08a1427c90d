/* order_window.c - windows over the input, each made a batch: tf.data's window(...) followed by
 * batch. A failure stands for an element, and each window that contains it fails. */
#include "order/arguments.h"
#include "order/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "order/failure.h"
#include "shm/segment.h"

struct window {
    struct order_iterator *input; /* NULL: at its end */
    uint64_t size, shift, stride;
    uint64_t span; /* from the first to the last element of a window */
    bool drop_remainder;

    bool shares; /* windows are views of the series */
    uint64_t room_max;

    struct run *series;            /* NULL: nothing is held */
    struct order_failure **errors; /* per element of the series; NULL: no failure */
    size_t failed;                 /* of those held */
    size_t begin, held;            /* the elements of the series from the next window's first on */
    size_t room;                   /* of the series */
};

/* A series has room for some spans: a window that is kept keeps all of it. */
enum { ROOM_AT_FIRST = 64, SPANS = 4 };
enum { VIEW_WORDS = sizeof(struct run) / sizeof(uint64_t) };

static struct window *
state_of(struct order_iterator *iterator)
{
    return (struct window *)iterator->state;
}

static tundish_status
read_number(struct order_iterator *iterator, const char *parameter, uint64_t *ret_number)
{
    tundish_status status;
    int64_t number;

    status = order_int(iterator, parameter, &number);
    if (status == TUNDISH_OK && number < 1)
        status = order_fail(iterator, TUNDISH_E_PIPELINE, "%s must be at least 1, not %" PRId64,
                            parameter, number);
    if (status == TUNDISH_OK)
        *ret_number = (uint64_t)number;
    return status;
}

static tundish_status
window_open(struct order_iterator *iterator)
{
    struct window *window = state_of(iterator);
    const struct plan_node *node = iterator->node;
    tundish_status status;

    status = read_number(iterator, "size", &window->size);
    window->shift = window->size;
    if (status == TUNDISH_OK && spec_get(node->stage, "shift") != NULL)
        status = read_number(iterator, "shift", &window->shift);
    if (status == TUNDISH_OK)
        status = read_number(iterator, "stride", &window->stride);
    if (status != TUNDISH_OK)
        return status;
    if (__builtin_mul_overflow(window->size - 1, window->stride, &window->span) ||
        window->span >= SIZE_MAX / 2)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "%" PRIu64 " elements, every %" PRIu64 "th, are too many for a window",
                          window->size, window->stride);
    window->span++;
    window->shares = window->stride == 1 && window->shift < window->span;
    window->room_max = window->span;
    if (window->shares && window->span < SIZE_MAX / 2 / SPANS)
        window->room_max =
            SPANS * window->span > ROOM_AT_FIRST ? SPANS * window->span : ROOM_AT_FIRST;
    window->drop_remainder = spec_bool(node->stage, "drop_remainder");
    return order_open(node->inputs[0], iterator->instance, &window->input);
}

/* An element's share of what is held. */
static uint64_t
bytes_each(const struct order_iterator *iterator)
{
    return iterator->node->inputs[0]->width * sizeof(uint64_t) + sizeof(char *);
}

/* As many windows as begin in a series lie there, but in no more memory than its elements: a window
 * that is kept keeps all of it. */
static uint64_t
views_of(const struct window *window, const struct plan_node *input, size_t room)
{
    uint64_t windows = room / window->shift + 1, fit = room * input->width / VIEW_WORDS;

    return !window->shares ? 0 : windows < fit ? windows : fit;
}

/* Leave the elements before the next window to the windows that have them. */
static void
begin_series(struct window *window, const struct plan_node *input, size_t room)
{
    struct run *before = window->series;
    struct run *series =
        run_begin_series(input->width, input->run_words, room, views_of(window, input, room));

    series->element_count = window->held;
    if (window->held > 0) {
        const uint64_t *words = before->words + window->begin * input->width;

        memcpy(series->storage, words, window->held * input->width * sizeof *words);
        run_words_retain(words, window->held, input->width, input->run_words);
    }
    run_release(before);
    window->series = series;
}

/* The same where no window has any of them. */
static void
move_to_front(struct window *window, const struct plan_node *input, size_t room)
{
    struct run *series = window->series;

    run_words_release(series->words, window->begin, input->width, input->run_words);
    if (window->begin > 0)
        memmove(series->storage, series->storage + window->begin * input->width,
                window->held * input->width * sizeof *series->storage);
    series->element_count = window->held;
    window->series = run_grow_series(series, room, views_of(window, input, room));
}

static void
change_room(struct window *window, const struct plan_node *input, size_t room)
{
    if (window->series != NULL && run_is_unshared(window->series))
        move_to_front(window, input, room);
    else
        begin_series(window, input, room);
    if (room > window->room || window->errors == NULL)
        window->errors = tnd_realloc(window->errors, room, sizeof *window->errors);
    if (window->begin > 0)
        memmove(window->errors, window->errors + window->begin,
                window->held * sizeof *window->errors);
    window->begin = 0;
    window->room = room;
}

static tundish_status
make_room(struct order_iterator *iterator)
{
    struct window *window = state_of(iterator);
    size_t room = window->room;
    struct order_growth growth = {
        .room = room,
        .first = ROOM_AT_FIRST,
        .needed = window->held + 1,
        .at_most = window->span,
        .bytes_each = bytes_each(iterator),
    };
    struct tnd_room memory;

    if (window->series != NULL && window->begin + window->held < room)
        return TUNDISH_OK;
    if (window->held >= room && order_grow(iterator, "size", &growth, &room) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    if (window->begin > 0 && room < window->room_max &&
        tnd_segment_memory_holds(window->room_max, growth.bytes_each,
                                 iterator->instance->services->memory_limit, &memory))
        room = (size_t)window->room_max;
    change_room(window, iterator->node->inputs[0], room);
    return TUNDISH_OK;
}

/* The words of an element to come, for which there is room. */
static uint64_t *
next_words(struct window *window, const struct plan_node *input)
{
    return window->series->storage + (window->begin + window->held) * input->width;
}

static void
hold(struct window *window, size_t count, struct order_failure *error)
{
    for (size_t i = 0; i < count; i++)
        window->errors[window->begin + window->held++] = error;
    window->failed += error != NULL;
    window->series->element_count = window->begin + window->held;
}

/* Zeros hold no runs, so an element of them can be released like any other. */
static void
hold_zeros(struct window *window, const struct plan_node *input, struct order_failure *error)
{
    memset(next_words(window, input), 0, input->width * sizeof(uint64_t));
    hold(window, 1, error);
}

/* How many elements this window and those after it lack, `windows` in all. A failure ends a call,
 * so where one is held only this window's are pulled. */
static uint64_t
count_missing(const struct window *window, size_t windows)
{
    uint64_t missing = window->span - window->held, others, all;

    must_in_debug(windows > 0 && window->held < window->span);
    if (!window->shares || window->failed > 0 ||
        __builtin_mul_overflow(windows - 1, window->shift, &others) ||
        __builtin_add_overflow(missing, others, &all))
        return missing;
    return all;
}

/* Hold what this window has, and of the next ones what there is room for. */
static tundish_status
fill_window(struct order_iterator *iterator, size_t windows)
{
    struct window *window = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    while (window->input != NULL && window->held < window->span) {
        uint64_t room, missing = count_missing(window, windows);
        size_t count;
        enum order_result result;

        if (make_room(iterator) != TUNDISH_OK)
            return TUNDISH_E_MEMORY;
        room = window->room - window->begin - window->held;
        result = order_next(window->input, next_words(window, input),
                            (size_t)(room < missing ? room : missing), &count);
        hold(window, count, NULL);
        if (result == ORDER_END)
            order_drop(&window->input);
        if (result == ORDER_FAILED)
            hold_zeros(window, input, order_failure_keep());
    }
    return TUNDISH_OK;
}

/* Discard elements between this window and the next (shift > span). WindowDataset pulls them at
 * once and ignores failures among them. */
static void
discard(struct window *window, uint64_t count)
{
    while (window->input != NULL && count > 0) {
        uint64_t passed;
        enum order_result result = order_pass_over(window->input, count, &passed);

        count -= passed;
        if (result == ORDER_END)
            order_drop(&window->input);
        if (result == ORDER_FAILED)
            count--;
    }
}

static void
forget(struct window *window, size_t count)
{
    for (size_t i = window->begin; window->failed > 0 && i < window->begin + count; i++) {
        window->failed -= window->errors[i] != NULL;
        free(window->errors[i]);
    }
    window->begin += count;
    window->held -= count;
}

static void
forget_all(struct window *window)
{
    forget(window, window->held);
    run_release(window->series);
    window->series = NULL;
    window->begin = 0;
}

static void
shift(struct window *window)
{
    size_t gone = window->shift < window->held ? (size_t)window->shift : window->held;

    forget(window, gone);
    discard(window, window->shift - gone);
}

/* Every `stride`th of the elements held. The run takes counts of its own. */
static struct run *
gather(const struct window *window, const struct plan_node *input, size_t count)
{
    struct run *run = run_begin(input->width, input->run_words, count);
    const uint64_t *words = window->series->words + window->begin * input->width;

    for (size_t i = 0; i < count; i++)
        memcpy(run->storage + i * input->width, words + i * window->stride * input->width,
               input->width * sizeof *words);
    run->element_count = count;
    run_words_retain(run->words, count, input->width, input->run_words);
    return run_finish(run, count);
}

static enum order_result
choose(const struct window *window, const struct plan_node *input, uint64_t *word)
{
    size_t held = window->held < window->span ? window->held : (size_t)window->span;
    size_t count = 1 + (held - 1) / window->stride;

    for (size_t i = 0; window->failed > 0 && i < count; i++) {
        const struct order_failure *error = window->errors[window->begin + i * window->stride];

        if (error != NULL) {
            order_failure_tell(error);
            return ORDER_FAILED;
        }
    }
    *word = run_word(window->shares ? run_of_series(window->series, window->begin, count)
                                    : gather(window, input, count));
    return ORDER_OK;
}

static enum order_result
window_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct window *window = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        struct order_failure *error = NULL;

        if (fill_window(iterator, max - *ret_count) != TUNDISH_OK)
            return ORDER_FAILED;
        if (window->held == 0 || (window->drop_remainder && window->held < window->span))
            return ORDER_END;
        result = choose(window, input, &words[*ret_count]);
        *ret_count += result == ORDER_OK;
        if (result == ORDER_FAILED)
            error = order_failure_keep();
        shift(window);
        if (error != NULL)
            order_failure_tell(error);
        free(error);
    }
    return result;
}

/* The first windows from here that lie before element `at` as a whole. */
static uint64_t
windows_before(const struct window *window, uint64_t at)
{
    return at < window->span ? 0 : (at - window->span) / window->shift + 1;
}

/* Stand at the first window of which not all elements are among the `at` that are gone. Those of
 * it that are gone are zeros from now on: no such window is delivered, since the leap ends after
 * all windows that begin with one of them. Returns how many of the elements come after `at`. */
static tundish_status
stand_at(struct order_iterator *iterator, uint64_t at, uint64_t *ret_missing)
{
    struct window *window = state_of(iterator);
    uint64_t begin = windows_before(window, at) * window->shift;

    *ret_missing = begin > at ? begin - at : 0;
    while (begin < at && window->held < at - begin) {
        if (make_room(iterator) != TUNDISH_OK)
            return TUNDISH_E_MEMORY;
        hold_zeros(window, iterator->node->inputs[0], NULL);
    }
    return TUNDISH_OK;
}

/* Hold the failure as an element, unless it lies between windows. */
static enum order_result
hold_failure(struct order_iterator *iterator, uint64_t at)
{
    struct window *window = state_of(iterator);
    struct order_failure *error = order_failure_keep();
    uint64_t missing;

    if (stand_at(iterator, at, &missing) != TUNDISH_OK || make_room(iterator) != TUNDISH_OK) {
        free(error);
        return ORDER_FAILED;
    }
    if (missing > 0) {
        free(error);
        discard(window, missing - 1);
        return ORDER_OK;
    }
    hold_zeros(window, iterator->node->inputs[0], error);
    return ORDER_OK;
}

/* The windows remaining where the input has `count` more elements. */
static uint64_t
windows_of(const struct window *window, uint64_t count)
{
    if (window->drop_remainder)
        return windows_before(window, count);
    return count / window->shift + (count % window->shift != 0);
}

/* The k-th window begins k * shift elements on. The windows that reach beyond the elements passed
 * over are left to be pulled: they may fail, or lack elements. The last one is so, too: that as
 * many elements have been pulled as tf.data would pull. */
static enum order_result
window_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct window *window = state_of(iterator);
    uint64_t wanted, at = window->held, passed, missing;
    enum order_result result;

    if (__builtin_mul_overflow(count - 1, window->shift, &wanted))
        wanted = UINT64_MAX / window->shift * window->shift;
    if (window->input == NULL || wanted < at || wanted - at <= window->span || window->failed > 0)
        return ORDER_OK;
    result = order_pass_over(window->input, wanted - at, &passed);
    at += passed;
    forget_all(window);
    if (result == ORDER_END) {
        order_drop(&window->input);
        *ret_passed = windows_of(window, at);
        return ORDER_END;
    }
    *ret_passed = windows_before(window, at);
    if (result == ORDER_FAILED)
        return hold_failure(iterator, at);
    return stand_at(iterator, at, &missing) == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
}

static void
window_close(struct order_iterator *iterator)
{
    struct window *window = state_of(iterator);

    forget_all(window);
    free(window->errors);
    order_close(window->input);
}

/* As batch(size) after it would declare them. A last window may be short. */
static tundish_status
window_columns(const struct order_planning *planning, struct plan_node *node)
{
    return order_batch_columns(planning, node, ORDER_ROWS_STACKED, -1);
}

const struct order_ops order_window = {
    .name = "window",
    .form = ORDER_BATCHES,
    .alike = ORDER_ALIKE_COUNT,
    .search = ORDER_SEARCH_WINDOW,
    .gathers = "size",
    .arguments_bytes = sizeof(struct batch_arguments),
    .state_bytes = sizeof(struct window),
    .open = window_open,
    .next = window_next,
    .close = window_close,
    .pass_over = window_pass_over,
    .gathered = order_gathered_input,
    .columns = window_columns,
};
