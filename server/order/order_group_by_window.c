/* order_group_by_window.c - batches of elements that have the same key. A full window becomes a
 * batch at once. At the end of the input the partial windows follow by ascending key:
 * GroupByWindowDataset keeps them in a std::map.
 *
 * A window is made with its first element and freed with its batch. So a key without elements takes
 * no memory, and window_size_func is evaluated again for each window.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/arguments.h"
#include "order/columns.h"
#include "order/held.h"
#include "order/noting.h"
#include "order/peek.h"
#include "plan/stage.h"

struct window {
    int64_t key; /* first member: the tree compares windows by it */
    uint64_t size;
    struct order_held held;
};

struct groups {
    struct order_peek peek; /* gives the key, and with window_size_func the size */
    uint64_t size;          /* of every window; 0: window_size_func gives it */
    bool drop_remainder;
    void *windows; /* a tree of those that have elements (search.h), by key */
    uint64_t held; /* elements in all of them */
    bool input_ended;
    struct window *
        *left; /* after the end of the input: the partial windows by key; [0, at) are gone */
    size_t left_count, at;
    struct order_noting noting;
};

enum { ROOM_AT_FIRST = 16 };

static struct groups *
state_of(struct order_iterator *iterator)
{
    return (struct groups *)iterator->state;
}

static int
compare_keys(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static tundish_status
read_size(struct order_iterator *iterator)
{
    struct groups *groups = state_of(iterator);
    tundish_status status;
    int64_t size;

    if (spec_get(iterator->node->stage, "window_size") == NULL)
        return TUNDISH_OK;
    status = order_int(iterator, "window_size", &size);
    if (status == TUNDISH_OK && size < 1)
        status = order_fail(iterator, TUNDISH_E_PIPELINE,
                            "window_size must be greater than zero, not %" PRId64, size);
    if (status == TUNDISH_OK)
        groups->size = (uint64_t)size;
    return status;
}

static tundish_status
groups_open(struct order_iterator *iterator)
{
    struct groups *groups = state_of(iterator);
    const struct plan_node *node = iterator->node;
    tundish_status status = read_size(iterator);

    if (status != TUNDISH_OK)
        return status;
    groups->drop_remainder = spec_bool(node->stage, "drop_remainder");
    groups->peek.node = node;
    groups->peek.kind = PEEK_INT64;
    groups->peek.asks = true;
    groups->peek.has_second = groups->size == 0;
    order_noting_begin(&groups->noting, iterator, false);
    return order_peek_open(&groups->peek, node->inputs[0], iterator->instance);
}

static void
window_free(struct window *window)
{
    order_held_close(&window->held);
    free(window);
}

/* Make a window for a key. window_size_func may give a new size each time. */
static tundish_status
add_window(struct order_iterator *iterator, int64_t key, struct window **ret_window)
{
    struct groups *groups = state_of(iterator);
    int64_t size = groups->size > 0 ? (int64_t)groups->size : groups->peek.second;
    struct window *window;

    if (size < 1)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "window_size_func must give a size greater than zero, and gives %" PRId64
                          " for the key %" PRId64,
                          size, key);
    window = tnd_zalloc(1, sizeof *window);
    window->key = key;
    window->size = (uint64_t)size;
    tnd_must_have(tsearch(window, &groups->windows, compare_keys) != NULL);
    *ret_window = window;
    return TUNDISH_OK;
}

static tundish_status
make_room(struct order_iterator *iterator, struct window *window)
{
    struct groups *groups = state_of(iterator);
    uint32_t width = iterator->node->inputs[0]->width;
    struct order_held *held = &window->held;
    const struct order_growth growth = {
        .room = held->room,
        .first = ROOM_AT_FIRST,
        .needed = held->count + 1,
        .at_most = window->size,
        .bytes_each = width * sizeof *held->words,
    };
    size_t room;

    if (held->count < held->room)
        return TUNDISH_OK;
    /* The memory limit applies to all windows together. */
    if (order_room(iterator, "window_size", groups->held + 1, growth.bytes_each + sizeof *window) !=
            TUNDISH_OK ||
        order_grow(iterator, "window_size", &growth, &room) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    order_held_grow(held, room, width, groups->noting.list != NULL);
    return TUNDISH_OK;
}

/* Free a window whose elements are gone. */
static void
forget(struct groups *groups, struct window *window)
{
    tdelete(window, &groups->windows, compare_keys);
    window_free(window);
}

/* Put an element into its window, which is made if there is none. */
static tundish_status
put_element(struct order_iterator *iterator, int64_t key, const uint64_t *element,
            struct window **ret_window)
{
    struct groups *groups = state_of(iterator);
    uint32_t width = iterator->node->inputs[0]->width;
    struct window **found = tfind(&key, &groups->windows, compare_keys);
    struct window *window = found != NULL ? *found : NULL;
    struct order_held *held;

    if (window == NULL && add_window(iterator, key, &window) != TUNDISH_OK)
        return TUNDISH_E_DATA;
    if (make_room(iterator, window) != TUNDISH_OK) {
        if (window->held.count == 0)
            forget(groups, window);
        return TUNDISH_E_MEMORY;
    }
    held = &window->held;
    memcpy(held->words + held->count * width, element, width * sizeof *element);
    if (groups->noting.list != NULL)
        held->numbers[held->count] = groups->peek.taken - 1;
    held->count++;
    groups->held++;
    *ret_window = window;
    return TUNDISH_OK;
}

/* Make a run of a window. The run takes over its elements. */
static uint64_t
batch_of(struct order_iterator *iterator, const struct window *window)
{
    struct groups *groups = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    groups->held -= window->held.count;
    tnd_stats_set(&iterator->counters->queued, groups->held);
    return run_word(
        run_new(window->held.words, window->held.count, input->width, input->run_words));
}

static void
collect(const void *node, VISIT visit, void *context)
{
    struct groups *groups = context;

    if (visit == postorder || visit == leaf)
        groups->left[groups->left_count++] = *(struct window *const *)node;
}

static void
count_windows(const void *node, VISIT visit, void *context)
{
    size_t *count = context;

    (void)node;
    *count += visit == postorder || visit == leaf;
}

/* List the windows by key. */
static void
list_windows(struct groups *groups)
{
    size_t count = 0;

    twalk_r(groups->windows, count_windows, &count);
    groups->left = tnd_alloc((count + 1) * sizeof(struct window *));
    twalk_r(groups->windows, collect, groups);
}

static enum order_result
next_left(struct order_iterator *iterator, uint64_t *word)
{
    struct groups *groups = state_of(iterator);

    if (groups->at == groups->left_count || groups->drop_remainder)
        return ORDER_END;
    *word = batch_of(iterator, groups->left[groups->at]);
    forget(groups, groups->left[groups->at++]);
    return ORDER_OK;
}

static void
write_window(const void *node, VISIT visit, void *context)
{
    const struct window *window = *(struct window *const *)node;

    if (visit != postorder && visit != leaf)
        return;
    order_state_put_signed(context, window->key);
    order_state_put(context, window->size);
    order_held_write(&window->held, context);
}

static void
note(struct order_iterator *iterator)
{
    struct groups *groups = state_of(iterator);
    struct order_state_writer *state;

    if (groups->peek.has_bad)
        order_noting_end(&groups->noting);
    if (groups->noting.list == NULL ||
        !order_noting_wants(&groups->noting, iterator, groups->peek.taken))
        return;
    state = order_noting_state(iterator);
    order_state_put(state, groups->held);
    twalk_r(groups->windows, write_window, state);
    order_noting_note(&groups->noting, iterator, groups->peek.taken, state);
}

static enum order_result
next_batch(struct order_iterator *iterator, size_t max, uint64_t *word)
{
    struct groups *groups = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    while (!groups->input_ended) {
        const uint64_t *element;
        struct window *window;
        int64_t key;
        bool is_full;
        enum order_result result = order_peek_next(&groups->peek, max, &element, &key);

        if (result == ORDER_FAILED)
            return result;
        if (result == ORDER_END) {
            groups->input_ended = true;
            list_windows(groups);
            break;
        }
        if (put_element(iterator, key, element, &window) != TUNDISH_OK) {
            order_noting_end(&groups->noting);
            run_words_release(element, 1, input->width, input->run_words);
            return ORDER_FAILED;
        }
        tnd_stats_set(&iterator->counters->queued, groups->held);
        is_full = window->held.count == window->size;
        if (is_full) {
            *word = batch_of(iterator, window);
            forget(groups, window);
            groups->noting.passed++;
        }
        if (groups->peek.taken == groups->noting.next)
            note(iterator);
        if (is_full)
            return ORDER_OK;
    }
    return next_left(iterator, word);
}

static enum order_result
groups_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        result = next_batch(iterator, max - *ret_count, &words[*ret_count]);
        *ret_count += result == ORDER_OK;
    }
    return result;
}

static void
release_windows(struct groups *groups, const struct plan_node *input)
{
    for (size_t i = groups->at; i < groups->left_count; i++) {
        struct window *window = groups->left[i];

        run_words_release(window->held.words, window->held.count, input->width, input->run_words);
        forget(groups, window);
    }
    free(groups->left);
}

/* Make one of the windows that are held at a landmark. The reader says if there is no such. */
static void
read_window(struct groups *groups, struct order_state_reader *reader, uint32_t width)
{
    struct window *window = tnd_zalloc(1, sizeof *window);
    struct window **found;

    window->key = order_state_get_signed(reader);
    window->size = order_state_get(reader);
    found = tsearch(window, &groups->windows, compare_keys);
    tnd_must_have(found != NULL);
    if (*found != window) { /* two of a key */
        window_free(window);
        reader->is_bad = true;
        return;
    }
    reader->is_bad |= groups->size > 0 && window->size != groups->size;
    reader->is_bad |= !order_held_read(&window->held, reader, window->size, width);
    reader->is_bad |= window->held.count == 0;
    groups->held += window->held.count;
}

static bool
read_windows(struct groups *groups, const struct order_landmark *landmark, uint32_t width)
{
    struct order_state_reader reader = order_landmark_read(landmark);
    uint64_t held = order_state_get(&reader);

    while (!reader.is_bad && reader.at < reader.end)
        read_window(groups, &reader, width);
    return order_state_is_whole(&reader) && groups->held == held;
}

/* Pull what the windows hold. */
static tundish_status
pull_held(struct order_iterator *iterator, uint64_t taken)
{
    struct groups *groups = state_of(iterator);
    struct order_held **list;
    tundish_status status;

    list_windows(groups);
    list = tnd_alloc((groups->left_count + 1) * sizeof(struct order_held *));
    for (size_t i = 0; i < groups->left_count; i++)
        list[i] = &groups->left[i]->held;
    status = order_held_pull(iterator, groups->peek.input, list, groups->left_count, taken);
    free(list);
    return status;
}

static enum order_result
groups_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct groups *groups = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    struct order_landmark landmark;
    tundish_status status = TUNDISH_NO_VALUE;

    if (groups->peek.taken > 0 || !order_noting_before(&groups->noting, count, &landmark))
        return ORDER_OK;
    if (read_windows(groups, &landmark, input->width))
        status = pull_held(iterator, landmark.taken);
    else
        list_windows(groups);
    if (status != TUNDISH_OK) {
        release_windows(groups, input);
        groups->held = 0;
    } else {
        free(groups->left);
    }
    groups->left = NULL;
    groups->left_count = 0;
    if (status != TUNDISH_OK)
        return status == TUNDISH_NO_VALUE ? ORDER_OK : ORDER_FAILED;
    tnd_stats_set(&iterator->counters->queued, groups->held);
    groups->peek.taken = landmark.taken;
    order_noting_stand_at(&groups->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}

static uint64_t
groups_surely(struct order_iterator *iterator)
{
    const struct groups *groups = state_of(iterator);

    return groups->peek.taken == 0 ? order_noting_reach(&groups->noting) : 0;
}

static void
groups_close(struct order_iterator *iterator)
{
    struct groups *groups = state_of(iterator);

    if (!groups->input_ended)
        list_windows(groups);
    release_windows(groups, iterator->node->inputs[0]);
    order_noting_end(&groups->noting);
    order_peek_close(&groups->peek);
}

/* Rows are combined as by the stage that `reduce` names. */
static enum order_rows
rows_of(const struct spec_stage *stage)
{
    return order_find(spec_text(stage, "reduce"))->rows;
}

static tundish_status
groups_check_stage(const struct spec_stage *stage, struct spec_errors *errors)
{
    const struct spec_value *size = spec_get(stage, "window_size");
    const struct spec_value *function = spec_get(stage, "window_size_func");

    if ((size == NULL) == (function == NULL))
        return spec_complain(errors, stage->line, stage->column,
                             "group_by_window needs window_size or window_size_func, and not both");
    if (rows_of(stage) != ORDER_ROWS_PADDED &&
        (spec_given(stage, "padded_shapes") || spec_given(stage, "padding_values")))
        return spec_complain(errors, stage->line, stage->column,
                             "padded_shapes and padding_values need reduce: padded_batch");
    return TUNDISH_OK;
}

static tundish_status
groups_columns(const struct order_planning *planning, struct plan_node *node)
{
    bool are_whole = order_is_true(node, "drop_remainder") && !planning->may_be_short;
    int64_t length = are_whole ? order_literal(node, "window_size", -1) : -1;

    return order_batch_columns(planning, node, rows_of(node->stage), length);
}

static const struct stage_question questions[] = {
    { .parameter = "key", .dtype = TUNDISH_INT64 },
    { .parameter = "window_size_func", .dtype = TUNDISH_INT64, .of_answers = true },
    { 0 },
};

const struct order_ops order_group_by_window = {
    .name = "group_by_window",
    .is_noted = true,
    .form = ORDER_BATCHES,
    .content_use = ORDER_READS_CONTENT_ALWAYS,
    .gathers = "window_size",
    .questions = questions,
    .arguments_bytes = sizeof(struct batch_arguments),
    .state_bytes = sizeof(struct groups),
    .open = groups_open,
    .next = groups_next,
    .close = groups_close,
    .pass_over = groups_pass_over,
    .surely = groups_surely,
    .gathered = order_gathered_input,
    .check_stage = groups_check_stage,
    .columns = groups_columns,
};
