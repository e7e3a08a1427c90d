/* order_choose_from_datasets.c - a dataset of numbers (the last input of the plan node) chooses the
 * input of each element. As DirectedInterleave does, the iterators of all inputs are made at once.
 */
#include "order/branches.h"
#include "order/columns.h"
#include "order/noting.h"
#include "order/peek.h"

#include <inttypes.h>

struct choose {
    struct order_peek choices;
    struct order_branches branches;
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

    order_branches_begin(&choose->branches, iterator, node->input_count - 1);
    order_noting_begin(&choose->noting, iterator, false);
    choose->choices.node = node->inputs[choose->branches.count];
    choose->choices.kind = PEEK_INT64;
    status = order_peek_open(&choose->choices, choose->choices.node, iterator->instance);
    return status == TUNDISH_OK ? order_branches_open(&choose->branches, iterator) : status;
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
    if (choice < 0 || choice >= choose->branches.count) {
        order_fail(iterator, TUNDISH_E_DATA,
                   "choice_dataset yields %" PRId64
                   ", but there are only %u datasets, numbered from 0",
                   choice, choose->branches.count);
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
    order_branches_write(&choose->branches, NULL, state);
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
        if (choose->branches.inputs[choice] == NULL)
            continue;
        /* One element per choice: pulling more would advance an input farther than tf.data does. */
        result = order_next(choose->branches.inputs[choice], element, 1, &count);
        if (result == ORDER_FAILED) {
            order_noting_end(&choose->noting);
            return result;
        }
        if (result == ORDER_OK) {
            choose->branches.taken[choice]++;
            choose->noting.passed++;
            order_spread(element, 1, node->inputs[choice]->width, node->width,
                         node->inputs[choice]->first_word);
            element[0] = choice;
            ++*ret_count;
            continue;
        }
        if (order_branches_end(&choose->branches, choice))
            return ORDER_END;
    }
    return ORDER_OK;
}

static enum order_result
choose_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct choose *choose = state_of(iterator);
    struct order_landmark landmark;
    tundish_status status;

    if (choose->choices.taken > 0 || !order_noting_before(&choose->noting, count, &landmark))
        return ORDER_OK;
    status = order_branches_go_to(iterator, &choose->branches, &landmark);
    if (status == TUNDISH_OK)
        status = order_noting_skip(iterator, choose->choices.input, landmark.taken);
    if (status != TUNDISH_OK)
        return status == TUNDISH_NO_VALUE ? ORDER_OK : ORDER_FAILED;
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

    order_branches_close(&choose->branches);
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
    .is_noted = true,
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
