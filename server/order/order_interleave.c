/* order_interleave.c - a function makes a dataset for each outer element; elements come from
 * `cycle_length` of them in turn. flat_map is the cycle of one with endless blocks.
 *
 * As in tf.data's InterleaveDataset, a slot is opened when it is visited, never earlier. An
 * exhausted slot is cleared and left, and opened again on the next visit. The order is thus the
 * same for any number of threads. If blocks are short, a slot's elements are pulled in chunks.
 */
#include "order/arguments.h"
#include "order/interleave_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/rewind.h"

enum { CHUNK = 32 }; /* elements pulled at once from a dataset with short blocks */

static struct interleave *
state_of(struct order_iterator *iterator)
{
    return (struct interleave *)iterator->state;
}

/* Read a length parameter. A stage without a pipeline-file entry has its length from the plan. */
static tundish_status
read_length(struct order_iterator *iterator, const char *parameter, int64_t planned,
            uint64_t *ret_length)
{
    int64_t length = planned;
    tundish_status status =
        iterator->node->stage != NULL ? order_int(iterator, parameter, &length) : TUNDISH_OK;

    if (status != TUNDISH_OK)
        return status;
    if (length < 1)
        return order_fail(iterator, TUNDISH_E_PIPELINE, "%s must be at least 1, not %" PRId64,
                          parameter, length);
    *ret_length = (uint64_t)length;
    return TUNDISH_OK;
}

static tundish_status
open_input(struct order_iterator *iterator)
{
    struct interleave *interleave = state_of(iterator);

    order_noting_begin(&interleave->noting, iterator, false);
    interleave->left_out = iterator->instance->services->left_out;
    announce_open(&interleave->announce, iterator, interleave->cycle_length);
    return order_open(iterator->node->inputs[0], iterator->instance, &interleave->input);
}

static tundish_status
interleave_open(struct order_iterator *iterator)
{
    struct interleave *interleave = state_of(iterator);
    const struct function_arguments *planned = iterator->node->arguments;
    tundish_status status =
        read_length(iterator, "cycle_length", planned->cycle_length, &interleave->cycle_length);

    if (status == TUNDISH_OK)
        status =
            read_length(iterator, "block_length", planned->block_length, &interleave->block_length);
    if (status != TUNDISH_OK)
        return status;
    interleave->can_reopen = order_can_reopen(iterator->node->body);
    interleave->pulls_ahead = interleave->block_length < CHUNK && interleave->can_reopen;
    return open_input(iterator);
}

static tundish_status
flat_map_open(struct order_iterator *iterator)
{
    struct interleave *interleave = state_of(iterator);

    interleave->cycle_length = 1;
    interleave->block_length = UINT64_MAX;
    return open_input(iterator);
}

void
interleave_close_slot(struct interleave *interleave, struct interleave_slot *slot,
                      const struct plan_node *node)
{
    const struct plan_node *root = node->body->root;

    interleave->open_count -= slot->iterator != NULL;
    if (slot->ahead != NULL)
        run_words_release(slot->ahead + slot->at * root->width, slot->count - slot->at, root->width,
                          root->run_words);
    free(slot->ahead);
    order_close(slot->iterator);
    order_instance_close(slot->instance);
    order_scope_close(slot->scope, node->inputs[0]);
    *slot = (struct interleave_slot){ 0 };
}

tundish_status
interleave_open_slot(struct order_iterator *iterator, const uint64_t *outer_words)
{
    struct interleave *interleave = state_of(iterator);
    const struct plan_node *node = iterator->node;
    struct interleave_slot *slot = &interleave->slots[interleave->at];
    tundish_status status;

    status = order_scope_open(iterator->instance, node->inputs[0], outer_words, &slot->scope);
    if (status != TUNDISH_OK)
        return status;
    slot->outer = interleave->pulled;
    slot->instance = order_instance_open_body(iterator, slot->scope);
    status = order_open(node->body->root, slot->instance, &slot->iterator);
    if (status != TUNDISH_OK)
        interleave_close_slot(interleave, slot, node);
    else
        interleave->open_count++;
    if (status == TUNDISH_OK && interleave->pulls_ahead)
        slot->ahead = tnd_alloc(CHUNK * node->body->root->width * sizeof *slot->ahead);
    return status;
}

static void
advance(struct interleave *interleave)
{
    /* After the end of the input, a slot that was never visited stays empty and needs no visit. */
    uint64_t cycle = interleave->input != NULL ? interleave->cycle_length : interleave->slot_count;

    interleave->emitted = 0;
    interleave->at++;
    if (interleave->at >= cycle)
        interleave->at = 0;
}

void
interleave_add_slot(struct interleave *interleave)
{
    if (interleave->slot_count == interleave->slot_room) {
        interleave->slot_room = interleave->slot_room == 0 ? 16 : 2 * interleave->slot_room;
        interleave->slots =
            tnd_realloc(interleave->slots, interleave->slot_room, sizeof *interleave->slots);
    }
    interleave->slots[interleave->slot_count++] = (struct interleave_slot){ 0 };
}

/* The current slot is empty: open the next outer element's dataset there, or move on at the end of
 * the input. NO_VALUE is a bad outer element; the next one gets the slot. */
static enum order_result
visit_empty(struct order_iterator *iterator)
{
    struct interleave *interleave = state_of(iterator);
    uint64_t outer_words[PLAN_WIDTH_MAX];
    tundish_status status;
    enum order_result result;
    size_t count;

    if (interleave->input == NULL) {
        advance(interleave);
        return ORDER_OK;
    }
    result = order_next(interleave->input, outer_words, 1, &count);
    if (result == ORDER_END) {
        order_drop(&interleave->input);
        return ORDER_OK;
    }
    if (result != ORDER_OK)
        return result;
    interleave->pulled++;
    announce_step(&interleave->announce, iterator, outer_words);
    status = interleave_open_slot(iterator, outer_words);
    return status == TUNDISH_OK || status == TUNDISH_NO_VALUE ? ORDER_OK : ORDER_FAILED;
}

/* Append the words of the outer element to each inner element, for bodies whose content uses $name.
 */
static void
carry_outer(const struct plan_node *node, const struct interleave_slot *slot, uint64_t *words,
            size_t count)
{
    const struct plan_node *outer = node->inputs[0];
    uint32_t inner_width = node->body->root->width;

    order_spread(words, count, inner_width, node->width, 0);
    for (size_t i = 0; i < count; i++) {
        memcpy(words + i * node->width + inner_width, slot->scope->words,
               outer->width * sizeof *words);
        run_words_retain(slot->scope->words, 1, outer->width, outer->run_words);
    }
}

/* Account for `count` elements and `result` of the current slot. The turn ends with a full block or
 * with the dataset, not with a failure. */
static enum order_result
leave_slot(struct order_iterator *iterator, enum order_result result, uint64_t count)
{
    struct interleave *interleave = state_of(iterator);
    struct interleave_slot *slot = &interleave->slots[interleave->at];

    interleave->emitted += count;
    interleave->noting.passed += count;
    slot->taken += count;
    slot->has_failed |= result == ORDER_FAILED;
    if (result == ORDER_END)
        interleave_close_slot(interleave, slot, iterator->node);
    if (result == ORDER_END || interleave->emitted == interleave->block_length)
        advance(interleave);
    return result == ORDER_FAILED ? ORDER_FAILED : ORDER_OK;
}

/* Make sure that a slot that is pulled ahead has an element waiting. */
static inline enum order_result
pull_ahead(struct interleave_slot *slot)
{
    if (slot->at < slot->count)
        return ORDER_OK;
    slot->at = 0;
    return order_next(slot->iterator, slot->ahead, CHUNK, &slot->count);
}

/* Take at most `max` elements from an open slot. */
static inline enum order_result
take_from(struct interleave_slot *slot, uint32_t width, uint64_t *words, size_t max,
          size_t *ret_count)
{
    enum order_result result;

    if (slot->ahead == NULL)
        return order_next(slot->iterator, words, max, ret_count);
    result = pull_ahead(slot);
    *ret_count = 0;
    if (result != ORDER_OK)
        return result;
    if (max > slot->count - slot->at)
        max = slot->count - slot->at;
    for (size_t i = 0; i < max * width; i++)
        words[i] = slot->ahead[slot->at * width + i];
    slot->at += max;
    *ret_count = max;
    return ORDER_OK;
}

size_t
interleave_drop_waiting(struct interleave_slot *slot, const struct plan_node *root, uint64_t max)
{
    size_t count = slot->count - slot->at;

    if (count > max)
        count = (size_t)max;
    if (count > 0 && root->run_words != 0)
        run_words_release(slot->ahead + slot->at * root->width, count, root->width,
                          root->run_words);
    slot->at += count;
    return count;
}

/* Pass over at most `max` elements of an open slot. OK may mean fewer. */
static enum order_result
pass_over_some(struct interleave_slot *slot, const struct plan_node *root, uint64_t max,
               uint64_t *ret_passed)
{
    enum order_result result;

    if (slot->ahead == NULL)
        return order_pass_over(slot->iterator, max, ret_passed);
    result = pull_ahead(slot);
    *ret_passed = result == ORDER_OK ? interleave_drop_waiting(slot, root, max) : 0;
    return result;
}

/* Elements of the current block, at most those before the next landmark. */
static uint64_t
count_left(const struct interleave *interleave)
{
    uint64_t of_block = interleave->block_length - interleave->emitted;
    uint64_t unnoted = interleave->noting.next - interleave->noting.passed;

    return of_block < unnoted ? of_block : unnoted;
}

/* Take elements of the current block from an open slot. */
static enum order_result
visit_open(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct interleave *interleave = state_of(iterator);
    const struct plan_node *node = iterator->node;
    struct interleave_slot *slot = &interleave->slots[interleave->at];
    uint64_t left = count_left(interleave);
    enum order_result result;

    result =
        take_from(slot, node->body->root->width, words, max < left ? max : (size_t)left, ret_count);
    if (result == ORDER_OK && node->body->captures)
        carry_outer(node, slot, words, *ret_count);
    return leave_slot(iterator, result, *ret_count);
}

/* Move to a valid slot, adding one that the cycle reaches for the first time. END: the input and
 * all slots are exhausted. */
static enum order_result
reach_open_slot(struct order_iterator *iterator, bool *ret_open)
{
    struct interleave *interleave = state_of(iterator);

    if (interleave->input == NULL && interleave->open_count == 0)
        return ORDER_END;
    if (interleave->at == interleave->slot_count && interleave->input != NULL)
        interleave_add_slot(interleave);
    if (interleave->at >= interleave->slot_count)
        interleave->at = 0;
    *ret_open = interleave->slots[interleave->at].iterator != NULL;
    return ORDER_OK;
}

/* Pass over at most `max` elements of the current block. */
static enum order_result
pass_over_block(struct order_iterator *iterator, uint64_t max, uint64_t *ret_passed)
{
    struct interleave *interleave = state_of(iterator);
    uint64_t left = count_left(interleave);
    enum order_result result =
        pass_over_some(&interleave->slots[interleave->at], iterator->node->body->root,
                       left < max ? left : max, ret_passed);

    return leave_slot(iterator, result, *ret_passed);
}

static enum order_result
interleave_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct interleave *interleave = state_of(iterator);
    uint64_t alone = 0; /* blocks to pass over one by one, before rounds are tried */
    enum order_result result = interleave_leap(iterator, count, ret_passed);

    while (*ret_passed < count && result == ORDER_OK) {
        uint64_t passed = 0;
        bool is_open;

        if (interleave->noting.passed == interleave->noting.next)
            interleave_note(iterator);
        result = reach_open_slot(iterator, &is_open);
        if (result == ORDER_OK && !is_open) {
            result = visit_empty(iterator);
            continue;
        }
        if (result == ORDER_OK && alone == 0) {
            result = interleave_pass_over_rounds(iterator, count - *ret_passed, &passed);
            alone = interleave->open_count;
        }
        if (result == ORDER_OK && passed == 0) {
            result = pass_over_block(iterator, count - *ret_passed, &passed);
            alone--;
        }
        *ret_passed += passed;
    }
    if (result == ORDER_FAILED)
        order_noting_end(&interleave->noting);
    return result;
}

static enum order_result
interleave_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    const struct interleave *interleave = state_of(iterator);
    uint32_t width = iterator->node->width;
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        size_t count = 0;
        bool is_open;

        if (interleave->noting.passed == interleave->noting.next)
            interleave_note(iterator);
        result = reach_open_slot(iterator, &is_open);
        if (result == ORDER_OK && !is_open)
            result = visit_empty(iterator);
        else if (result == ORDER_OK)
            result = visit_open(iterator, words + *ret_count * width, max - *ret_count, &count);
        *ret_count += count;
    }
    if (result == ORDER_FAILED)
        order_noting_end(&state_of(iterator)->noting);
    return result;
}

static uint64_t
interleave_surely(struct order_iterator *iterator)
{
    const struct interleave *interleave = state_of(iterator);

    return interleave->pulled == 0 ? order_noting_reach(&interleave->noting) : 0;
}

static struct order_gathered
interleave_gathered(const struct plan_node *node, uint32_t word)
{
    const struct plan_node *root = node->body->root;

    if (word < root->width)
        return order_gathered(root, word);
    return order_gathered(node->inputs[0], word - root->width);
}

static void
interleave_close(struct order_iterator *iterator)
{
    struct interleave *interleave = state_of(iterator);

    for (size_t i = 0; i < interleave->slot_count; i++)
        interleave_close_slot(interleave, &interleave->slots[i], iterator->node);
    bodies_close(&interleave->bodies, iterator->node);
    free(interleave->slots);
    announce_close(&interleave->announce);
    order_noting_end(&interleave->noting);
    order_close(interleave->input);
}

static tundish_status
flat_map_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct interleave *interleave = state_of(iterator);
    struct bodies *bodies = &interleave->bodies;
    tundish_status status = TUNDISH_OK;

    if (bodies->list == NULL) {
        status = bodies_open(bodies, iterator, interleave->input);
        if (status != TUNDISH_OK)
            bodies_close(bodies, iterator->node);
    }
    if (status == TUNDISH_OK)
        *ret_count = bodies->list[bodies->count].first;
    return status;
}

static tundish_status
flat_map_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
            uint64_t *words)
{
    uint64_t count;
    tundish_status status = flat_map_count(iterator, &count);

    return status == TUNDISH_OK
               ? bodies_at(&state_of(iterator)->bodies, iterator->node, indices, index_count, words)
               : status;
}

static tundish_status
function_columns(const struct order_planning *planning, struct plan_node *node)
{
    (void)planning;
    schema_pass_all(&node->schema, &node->body->root->schema);
    for (uint32_t i = 0; i < node->schema.count; i++)
        node->schema.columns[i].passed_from = -1;
    node->depth = node->body->root->depth;
    return TUNDISH_OK;
}

const struct order_ops order_interleave = {
    .name = "interleave",
    .is_noted = true,
    .form = ORDER_FUNCTION,
    .alike = ORDER_ALIKE_FUNCTION,
    .search = ORDER_SEARCH_INPUT,
    .counts_through = true,
    .state_bytes = sizeof(struct interleave),
    .arguments_bytes = sizeof(struct function_arguments),
    .open = interleave_open,
    .next = interleave_next,
    .close = interleave_close,
    .pass_over = interleave_pass_over,
    .surely = interleave_surely,
    .gathered = interleave_gathered,
    .columns = function_columns,
};

const struct order_ops order_flat_map = {
    .name = "flat_map",
    .is_noted = true,
    .form = ORDER_FUNCTION,
    .alike = ORDER_ALIKE_FUNCTION,
    .search = ORDER_SEARCH_INPUT,
    .state_bytes = sizeof(struct interleave),
    .arguments_bytes = sizeof(struct function_arguments),
    .open = flat_map_open,
    .next = interleave_next,
    .close = interleave_close,
    .count = flat_map_count,
    .at = flat_map_at,
    .pass_over = interleave_pass_over,
    .surely = interleave_surely,
    .gathered = interleave_gathered,
    .columns = function_columns,
};
