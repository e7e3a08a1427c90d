/* order_window.c - windows over the input, each made a batch: tf.data's window(...) followed by
 * batch. A failure stands for an element, and each window that contains it fails. */
#include "order/arguments.h"
#include "order/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

struct window {
    struct order_iterator *input; /* NULL: at its end */
    uint64_t size, shift, stride;
    uint64_t span; /* from the first to the last element of a window */
    bool drop_remainder;

    uint64_t *words;
    char **errors; /* per element held; NULL: no failure */
    size_t held, room;
    uint64_t *chosen; /* scratch for one window */
    size_t chosen_room;
};

enum { ROOM_AT_FIRST = 64 };

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
    window->drop_remainder = spec_bool(node->stage, "drop_remainder");
    return order_open(node->inputs[0], iterator->instance, &window->input);
}

static tundish_status
make_room(struct order_iterator *iterator)
{
    struct window *window = state_of(iterator);
    uint32_t width = iterator->node->inputs[0]->width;
    const struct order_growth growth = {
        .room = window->room,
        .first = ROOM_AT_FIRST,
        .needed = window->held + 1,
        .at_most = (uint64_t)window->span,
        .bytes_each = width * sizeof *window->words + sizeof *window->errors,
    };

    if (window->held < window->room)
        return TUNDISH_OK;
    if (order_grow(iterator, "size", &growth, &window->room) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    window->words = tnd_realloc(window->words, window->room, width * sizeof *window->words);
    window->errors = tnd_realloc(window->errors, window->room, sizeof *window->errors);
    return TUNDISH_OK;
}

static tundish_status
fill_window(struct order_iterator *iterator)
{
    struct window *window = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    while (window->input != NULL && window->held < window->span) {
        size_t room, count;
        enum order_result result;

        if (make_room(iterator) != TUNDISH_OK)
            return TUNDISH_E_MEMORY;
        room = window->room < window->span ? window->room : (size_t)window->span;
        result = order_next(window->input, window->words + window->held * input->width,
                            room - window->held, &count);
        for (size_t i = 0; i < count; i++)
            window->errors[window->held++] = NULL;
        if (result == ORDER_END)
            order_drop(&window->input);
        if (result == ORDER_FAILED) {
            /* Zeros hold no runs, so the slot of a failure can be released like any other. */
            memset(window->words + window->held * input->width, 0,
                   input->width * sizeof *window->words);
            window->errors[window->held++] = tnd_strdup(tnd_error_text());
        }
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
give_up(struct window *window, const struct plan_node *input, size_t count)
{
    run_words_release(window->words, count, input->width, input->run_words);
    for (size_t i = 0; i < count; i++)
        free(window->errors[i]);
}

static void
shift(struct window *window, const struct plan_node *input)
{
    size_t gone = window->shift < window->held ? (size_t)window->shift : window->held;
    uint64_t beyond = window->shift - gone;

    give_up(window, input, gone);
    window->held -= gone;
    memmove(window->words, window->words + gone * input->width,
            window->held * input->width * sizeof *window->words);
    memmove(window->errors, window->errors + gone, window->held * sizeof *window->errors);
    discard(window, beyond);
}

/* The `count` elements of a window, one after the other. */
static const uint64_t *
gather(struct window *window, const struct plan_node *input, size_t count)
{
    if (window->stride == 1)
        return window->words;
    if (count > window->chosen_room) {
        window->chosen_room = count;
        window->chosen = tnd_realloc(window->chosen, count, input->width * sizeof *window->chosen);
    }
    for (size_t i = 0; i < count; i++)
        memcpy(window->chosen + i * input->width, window->words + i * window->stride * input->width,
               input->width * sizeof *window->words);
    return window->chosen;
}

/* Make the run of one window. Windows may overlap, so the run takes counts of its own. */
static enum order_result
choose(struct window *window, const struct plan_node *input, uint64_t *word)
{
    size_t count = 1 + (window->held - 1) / window->stride;
    const uint64_t *words;

    for (size_t i = 0; i < count; i++)
        if (window->errors[i * window->stride] != NULL) {
            tnd_fail(TUNDISH_E_DATA, "%s", window->errors[i * window->stride]);
            return ORDER_FAILED;
        }
    words = gather(window, input, count);
    run_words_retain(words, count, input->width, input->run_words);
    *word = run_word(run_new(words, count, input->width, input->run_words));
    return ORDER_OK;
}

static enum order_result
window_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct window *window = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        char *error = NULL;

        if (fill_window(iterator) != TUNDISH_OK)
            return ORDER_FAILED;
        if (window->held == 0 || (window->drop_remainder && window->held < window->span))
            return ORDER_END;
        result = choose(window, input, &words[*ret_count]);
        *ret_count += result == ORDER_OK;
        if (result == ORDER_FAILED)
            error = tnd_strdup(tnd_error_text());
        shift(window, input);
        if (error != NULL)
            tnd_fail(TUNDISH_E_DATA, "%s", error);
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
    uint32_t width = iterator->node->inputs[0]->width;

    *ret_missing = begin > at ? begin - at : 0;
    while (begin < at && window->held < at - begin) {
        if (make_room(iterator) != TUNDISH_OK)
            return TUNDISH_E_MEMORY;
        memset(window->words + window->held * width, 0, width * sizeof *window->words);
        window->errors[window->held++] = NULL;
    }
    return TUNDISH_OK;
}

/* Hold the failure as an element, unless it lies between windows. */
static enum order_result
hold_failure(struct order_iterator *iterator, uint64_t at)
{
    struct window *window = state_of(iterator);
    uint32_t width = iterator->node->inputs[0]->width;
    char *error = tnd_strdup(tnd_error_text());
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
    memset(window->words + window->held * width, 0, width * sizeof *window->words);
    window->errors[window->held++] = error;
    return ORDER_OK;
}

static bool
holds_failure(const struct window *window)
{
    for (size_t i = 0; i < window->held; i++)
        if (window->errors[i] != NULL)
            return true;
    return false;
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
    const struct plan_node *input = iterator->node->inputs[0];
    uint64_t wanted, at = window->held, passed, missing;
    enum order_result result;

    if (__builtin_mul_overflow(count - 1, window->shift, &wanted))
        wanted = UINT64_MAX / window->shift * window->shift;
    if (window->input == NULL || wanted < at || wanted - at <= window->span ||
        holds_failure(window))
        return ORDER_OK;
    result = order_pass_over(window->input, wanted - at, &passed);
    at += passed;
    give_up(window, input, window->held);
    window->held = 0;
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

    give_up(window, iterator->node->inputs[0], window->held);
    free(window->words);
    free(window->errors);
    free(window->chosen);
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
