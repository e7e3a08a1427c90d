/* interleave_rounds.c - passes over whole rounds of an interleave, however many.
 *
 * In rounds in which no slot is opened or ends, each slot passes over its blocks by itself. Where a
 * slot turns out to end before, the rounds are as many as it has, and those that have gone farther
 * are reopened. By then it is known how far each one reaches, so that few are reopened again.
 *
 * A slot that does not end will come as far as all the rounds wanted in any case: no more of its
 * files is scanned than has to be.
 */
#include <stdlib.h>

#include "core/memory.h"
#include "order/failure.h"
#include "order/interleave_private.h"

static uint64_t
known_left(const struct interleave_slot *slot)
{
    return slot->reach > slot->taken ? slot->reach - slot->taken : 0;
}

/* END or FAILED: it has fewer. */
static enum order_result
pass_over_slot(struct interleave_slot *slot, const struct plan_node *root, uint64_t count,
               uint64_t *ret_passed)
{
    uint64_t waiting = interleave_drop_waiting(slot, root, count), passed = 0;
    enum order_result result = ORDER_OK;

    if (waiting < count)
        result = order_pass_over(slot->iterator, count - waiting, &passed);
    slot->taken += waiting + passed;
    *ret_passed = waiting + passed;
    return result;
}

/* Go `count` elements on, which are known to be there. */
static tundish_status
go_on(struct order_iterator *iterator, struct interleave_slot *slot, uint64_t count)
{
    uint64_t passed;
    enum order_result result = pass_over_slot(slot, iterator->node->body->root, count, &passed);

    if (result == ORDER_END && passed < count)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "a dataset has fewer elements than a moment ago: a file has changed");
    return order_status(result);
}

/* Reopen the dataset of a slot, and stand after its first `count` elements. */
static tundish_status
reopen(struct order_iterator *iterator, struct interleave_slot *slot, uint64_t count)
{
    const struct plan_node *root = iterator->node->body->root;
    struct interleave *interleave = (struct interleave *)iterator->state;

    (void)interleave_drop_waiting(slot, root, UINT64_MAX);
    slot->at = slot->count = 0;
    slot->taken = 0;
    order_drop(&slot->iterator);
    interleave->open_count--;
    order_instance_close(slot->instance);
    slot->instance = order_instance_open_body(iterator, slot->scope);
    if (order_open(root, slot->instance, &slot->iterator) != TUNDISH_OK) {
        interleave_close_slot(interleave, slot, iterator->node);
        return order_status(ORDER_FAILED);
    }
    interleave->open_count++;
    return go_on(iterator, slot, count);
}

/* For how many rounds, at most `rounds`, have those slots blocks of which the end is known? One
 * that has failed is not like that when it is reopened. */
static uint64_t
rounds_known(const struct interleave *interleave, uint64_t rounds)
{
    for (size_t i = 0; i < interleave->slot_count; i++) {
        const struct interleave_slot *slot = &interleave->slots[i];
        uint64_t left = known_left(slot) / interleave->block_length;

        if (slot->has_failed)
            return 0;
        if (slot->iterator != NULL && slot->is_whole && left < rounds)
            rounds = left;
    }
    return rounds;
}

/* Pass over `rounds` blocks of a slot of which it is not known that they are there. Returns how
 * many are. */
static uint64_t
find_out(struct interleave_slot *slot, const struct plan_node *root, uint64_t block,
         uint64_t rounds)
{
    uint64_t passed;
    enum order_result result = pass_over_slot(slot, root, rounds * block, &passed);

    if (slot->reach < slot->taken)
        slot->reach = slot->taken;
    slot->is_whole |= result != ORDER_OK;
    /* So that it is reopened, and the failure is met where it is its turn. */
    slot->taken += result == ORDER_FAILED;
    return passed / block < rounds ? passed / block : rounds;
}

/* Let each slot stand `count` elements after `before[i]`. */
static tundish_status
move_slots(struct order_iterator *iterator, const uint64_t *before, uint64_t count)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < interleave->slot_count && status == TUNDISH_OK; i++) {
        struct interleave_slot *slot = &interleave->slots[i];
        uint64_t wanted = before[i] + count;

        if (slot->iterator == NULL)
            continue;
        if (slot->taken > wanted)
            status = reopen(iterator, slot, wanted);
        else if (slot->taken < wanted)
            status = go_on(iterator, slot, wanted - slot->taken);
    }
    return status;
}

static tundish_status
pass_over_blocks(struct order_iterator *iterator, uint64_t *rounds)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    uint64_t block = interleave->block_length;
    uint64_t *before = tnd_alloc(interleave->slot_count * sizeof *before);
    tundish_status status;

    for (size_t i = 0; i < interleave->slot_count; i++)
        before[i] = interleave->slots[i].taken;
    for (size_t i = 0; i < interleave->slot_count; i++) {
        struct interleave_slot *slot = &interleave->slots[i];

        if (slot->iterator != NULL && known_left(slot) < *rounds * block)
            *rounds = find_out(slot, iterator->node->body->root, block, *rounds);
    }
    status = move_slots(iterator, before, *rounds * block);
    free(before);
    return status;
}

enum order_result
interleave_pass_over_rounds(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    bool is_open = interleave->input == NULL || interleave->open_count == interleave->cycle_length;
    uint64_t round, rounds;

    if (!is_open || interleave->emitted != 0 || !interleave->can_reopen ||
        __builtin_mul_overflow(interleave->block_length, interleave->open_count, &round))
        return ORDER_OK;
    rounds = rounds_known(interleave, count / round);
    if (rounds < 2)
        return ORDER_OK;
    if (pass_over_blocks(iterator, &rounds) != TUNDISH_OK)
        return ORDER_FAILED;
    *ret_passed = rounds * round;
    return ORDER_OK;
}
