/* order_choose_from_datasets.c - a dataset of numbers (the last input of the plan node) chooses the
 * input of each element. As DirectedInterleave does, the iterators of all inputs are made at once.
 */
#include "order/columns.h"
#include "order/noting.h"
#include "order/peek.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/memory.h"

struct choose {
    struct order_peek choices;
    struct order_iterator **inputs; /* NULL: at its end */
    uint32_t input_count, open_count;
    bool stop_on_empty;
    uint64_t *taken; /* elements of each */
    struct order_noting noting;
};

static struct choose *
state_of(struct order_iterator *iterator)
{
    return (struct choose *)iterator->state;
}

static tundish_status
choose_open(struct order_iterator *iterator)
{
    struct choose *choose = state_of(iterator);
    const struct plan_node *node = iterator->node;
    tundish_status status;

    choose->input_count = choose->open_count = node->input_count - 1;
    choose->inputs = tnd_zalloc(choose->input_count, sizeof(struct order_iterator *));
    choose->taken = tnd_zalloc(choose->input_count, sizeof *choose->taken);
    order_noting_begin(&choose->noting, iterator, false);
    choose->stop_on_empty = spec_bool(node->stage, "stop_on_empty_dataset");
    choose->choices.node = node->inputs[choose->input_count];
    choose->choices.kind = PEEK_INT64;
    status = order_peek_open(&choose->choices, choose->choices.node, iterator->instance);
    for (uint32_t i = 0; i < choose->input_count && status == TUNDISH_OK; i++)
        status = order_open(node->inputs[i], iterator->instance, &choose->inputs[i]);
    return status;
}

static enum order_result
next_choice(struct order_iterator *iterator, size_t max, uint32_t *ret_choice)
{
    struct choose *choose = state_of(iterator);
    const struct plan_node *node = choose->choices.node;
    const uint64_t *words;
    int64_t choice;
    enum order_result result = order_peek_next(&choose->choices, max, &words, &choice);

    if (result != ORDER_OK)
        return result;
    run_words_release(words, 1, node->width, node->run_words);
    if (choice < 0 || choice >= choose->input_count) {
        order_fail(iterator, TUNDISH_E_DATA,
                   "choice_dataset yields %" PRId64
                   ", but there are only %u datasets, numbered from 0",
                   choice, choose->input_count);
        return ORDER_FAILED;
    }
    *ret_choice = (uint32_t)choice;
    return ORDER_OK;
}

/* So many elements were taken of each input; and was its end met? */
static void
note(struct order_iterator *iterator)
{
    struct choose *choose = state_of(iterator);
    uint64_t taken = choose->choices.taken;
    struct order_state_writer *state;

    if (choose->choices.has_bad)
        order_noting_end(&choose->noting);
    if (choose->noting.list == NULL || !order_noting_wants(&choose->noting, iterator, taken))
        return;
    state = order_noting_state(iterator);
    for (uint32_t i = 0; i < choose->input_count; i++) {
        order_state_put(state, choose->taken[i]);
        order_state_put(state, choose->inputs[i] == NULL);
    }
    order_noting_note(&choose->noting, iterator, taken, state);
}

static enum order_result
choose_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct choose *choose = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (*ret_count < max) {
        uint64_t *element = words + *ret_count * node->width;
        enum order_result result;
        uint32_t choice;
        size_t count;

        if (choose->choices.taken == choose->noting.next)
            note(iterator);
        result = next_choice(iterator, max - *ret_count, &choice);
        if (result == ORDER_FAILED)
            order_noting_end(&choose->noting);
        if (result != ORDER_OK)
            return result;
        /* DirectedInterleave skips choices of an exhausted input without an error. */
        if (choose->inputs[choice] == NULL)
            continue;
        /* One element per choice: pulling more would advance an input farther than tf.data does. */
        result = order_next(choose->inputs[choice], element, 1, &count);
        if (result == ORDER_FAILED) {
            order_noting_end(&choose->noting);
            return result;
        }
        if (result == ORDER_OK) {
            choose->taken[choice]++;
            choose->noting.passed++;
            order_spread(element, 1, node->inputs[choice]->width, node->width,
                         node->inputs[choice]->first_word);
            element[0] = choice;
            ++*ret_count;
            continue;
        }
        order_drop(&choose->inputs[choice]);
        if (--choose->open_count == 0 || choose->stop_on_empty)
            return ORDER_END;
    }
    return ORDER_OK;
}

/* Read how far each input was taken, which is together as far as elements passed. One is left, or
 * nothing would have been noted. */
static bool
read_taken(const struct choose *choose, const struct order_landmark *landmark, uint64_t *ret_taken,
           bool *ret_ended)
{
    struct order_state_reader reader = { landmark->state, landmark->state + landmark->state_bytes,
                                         false };
    uint64_t left = landmark->passed, ended_count = 0;

    for (uint32_t i = 0; i < choose->input_count && !reader.is_bad; i++) {
        uint64_t ended;

        ret_taken[i] = order_state_get(&reader);
        ended = order_state_get(&reader);
        ret_ended[i] = ended == 1;
        reader.is_bad |= ret_taken[i] > left || ended > 1;
        left -= ret_taken[i];
        ended_count += ended;
    }
    return order_state_is_whole(&reader) && left == 0 &&
           (choose->stop_on_empty ? ended_count == 0 : ended_count < choose->input_count);
}

/* Go on to the `taken`th element of an input, or to its end after that. */
static tundish_status
go_to(struct order_iterator *iterator, uint32_t input, uint64_t taken, bool ended)
{
    struct choose *choose = state_of(iterator);
    uint64_t passed;
    tundish_status status = TUNDISH_OK;

    if (taken > 0)
        status = order_noting_skip(iterator, choose->inputs[input], taken);
    choose->taken[input] = taken;
    if (status != TUNDISH_OK || !ended)
        return status;
    if (order_pass_over(choose->inputs[input], 1, &passed) != ORDER_END)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "an earlier run had fewer elements of dataset %u: empty the cache folder "
                          "if files have changed",
                          input);
    order_drop(&choose->inputs[input]);
    choose->open_count--;
    return TUNDISH_OK;
}

static enum order_result
choose_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct choose *choose = state_of(iterator);
    struct order_landmark landmark;
    uint64_t *taken;
    bool *ended, is_read;
    tundish_status status = TUNDISH_OK;

    if (choose->choices.taken > 0 || !order_noting_before(&choose->noting, count, &landmark))
        return ORDER_OK;
    taken = tnd_zalloc(choose->input_count, sizeof *taken);
    ended = tnd_zalloc(choose->input_count, sizeof *ended);
    is_read = read_taken(choose, &landmark, taken, ended);
    if (is_read)
        status = order_noting_skip(iterator, choose->choices.input, landmark.taken);
    for (uint32_t i = 0; is_read && i < choose->input_count && status == TUNDISH_OK; i++)
        status = go_to(iterator, i, taken[i], ended[i]);
    free(taken);
    free(ended);
    if (!is_read || status != TUNDISH_OK)
        return is_read ? ORDER_FAILED : ORDER_OK;
    choose->choices.taken = landmark.taken;
    order_noting_stand_at(&choose->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}

static uint64_t
choose_surely(struct order_iterator *iterator)
{
    const struct choose *choose = state_of(iterator);

    return choose->choices.taken == 0 ? order_noting_reach(&choose->noting) : 0;
}

static void
choose_close(struct order_iterator *iterator)
{
    struct choose *choose = state_of(iterator);

    for (uint32_t i = 0; choose->inputs != NULL && i < choose->input_count; i++)
        order_close(choose->inputs[i]);
    free(choose->inputs);
    free(choose->taken);
    order_noting_end(&choose->noting);
    order_peek_close(&choose->choices);
}

/* Check that the last input is a dataset of int64 scalars. */
static tundish_status
check_choice(const struct order_planning *planning, const struct plan_node *node)
{
    const struct schema *choice = &node->inputs[node->input_count - 1]->schema;
    const struct column_spec *column = &choice->columns[0];

    if (choice->count != 1)
        return order_complain(
            planning->errors, node,
            "%s: choice_dataset must have one column, an int64 scalar, and has %u "
            "columns: add a `select` to it",
            node->name, choice->count);
    if (column->dtype != TUNDISH_INT64 || column->kind != TUNDISH_DENSE)
        return order_complain(planning->errors, node,
                              "%s: choice_dataset must be of int64 scalars, and its column '%s' is "
                              "%s: add `cast: int64` to it",
                              node->name, column->name,
                              column->kind == TUNDISH_DENSE ? tnd_dtype_name(column->dtype)
                                                            : "ragged or sparse");
    if (column->rank != 0)
        return order_complain(planning->errors, node,
                              "%s: choice_dataset must be of int64 scalars, and its column '%s' "
                              "has a shape: remove its batch, or add `unbatch`",
                              node->name, column->name);
    return TUNDISH_OK;
}

static tundish_status
choose_columns(const struct order_planning *planning, struct plan_node *node)
{
    tundish_status status = check_choice(planning, node);

    return status == TUNDISH_OK ? order_merge_columns(planning, node, node->input_count - 1)
                                : status;
}

const struct order_ops order_choose_from_datasets = {
    .name = "choose_from_datasets",
    .form = ORDER_BRANCHES,
    .content_use = ORDER_READS_CONTENT_ALWAYS,
    .decides = "choice_dataset",
    .state_bytes = sizeof(struct choose),
    .open = choose_open,
    .next = choose_next,
    .close = choose_close,
    .pass_over = choose_pass_over,
    .surely = choose_surely,
    .gathered = order_gathered_united,
    .columns = choose_columns,
    .is_endless = order_all_are_endless,
};
