/* interleave_notes.c - notes where an interleave stands, and goes there. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/memory.h"
#include "order/held.h"
#include "order/interleave_private.h"

/* Where it stood in an earlier run. */
struct standing_slot {
    struct order_held outer; /* its element; none: it was empty */
    uint64_t number;         /* of that, in the input */
    uint64_t taken;          /* of its dataset */
};

struct standing {
    uint64_t at, emitted, pulled;
    bool has_input;
    size_t slot_count;
    struct standing_slot *slots;
    struct order_held **outers; /* of each */
};

static void
write_standing(const struct interleave *interleave, struct order_state_writer *writer)
{
    order_state_put(writer, interleave->at);
    order_state_put(writer, interleave->emitted);
    order_state_put(writer, interleave->pulled);
    order_state_put(writer, interleave->input != NULL);
    order_state_put(writer, interleave->slot_count);
    for (size_t i = 0; i < interleave->slot_count; i++) {
        const struct interleave_slot *slot = &interleave->slots[i];

        order_state_put(writer, slot->iterator != NULL ? slot->outer : 0);
        if (slot->iterator != NULL)
            order_state_put(writer, slot->taken);
    }
}

/* Elements that are left out count where they are met, so no landmark passes over them. */
void
interleave_note(struct order_iterator *iterator)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    uint64_t passed = interleave->noting.passed;
    struct order_state_writer *state;

    if (iterator->instance->services->left_out != interleave->left_out) {
        order_noting_end(&interleave->noting);
        return;
    }
    if (!order_noting_wants(&interleave->noting, iterator, passed))
        return;
    state = order_noting_state(iterator);
    write_standing(interleave, state);
    order_noting_note(&interleave->noting, iterator, passed, state);
}

static void
make_slots(struct standing *standing, size_t count, uint32_t width)
{
    standing->slot_count = count;
    standing->slots = tnd_zalloc(count, sizeof *standing->slots);
    standing->outers = tnd_zalloc(count, sizeof *standing->outers);
    for (size_t i = 0; i < count; i++) {
        struct order_held *outer = standing->outers[i] = &standing->slots[i].outer;

        outer->numbers = &standing->slots[i].number;
        outer->words = tnd_zalloc(width, sizeof *outer->words);
    }
}

static void
close_standing(struct standing *standing, const struct plan_node *input)
{
    for (size_t i = 0; i < standing->slot_count; i++) {
        run_words_release(standing->outers[i]->words, standing->outers[i]->count, input->width,
                          input->run_words);
        free(standing->outers[i]->words);
    }
    free(standing->outers);
    free(standing->slots);
}

/* The elements of a slot are among those that passed. */
static void
read_slots(struct standing *standing, struct order_state_reader *reader, uint64_t passed)
{
    for (size_t i = 0; i < standing->slot_count && !reader->is_bad; i++) {
        struct standing_slot *slot = &standing->slots[i];
        uint64_t outer = order_state_get(reader);

        if (outer == 0)
            continue;
        slot->number = outer - 1;
        slot->outer.count = 1;
        slot->taken = order_state_get(reader);
        reader->is_bad |= slot->taken > passed;
        passed -= slot->taken;
    }
}

/* False: no interleave can have stood there. */
static bool
read_standing(const struct order_iterator *iterator, const struct order_landmark *landmark,
              struct standing *standing)
{
    const struct interleave *interleave = (const struct interleave *)iterator->state;
    struct order_state_reader reader = order_landmark_read(landmark);
    uint64_t has_input, count;

    standing->at = order_state_get(&reader);
    standing->emitted = order_state_get(&reader);
    standing->pulled = order_state_get(&reader);
    has_input = order_state_get(&reader);
    count = order_state_get(&reader);
    if (reader.is_bad || has_input > 1 || count > interleave->cycle_length ||
        count > (size_t)(reader.end - reader.at) || standing->at > count)
        return false;
    standing->has_input = has_input == 1;
    make_slots(standing, (size_t)count, iterator->node->inputs[0]->width);
    read_slots(standing, &reader, landmark->passed);
    if (!order_state_is_whole(&reader) || landmark->taken != landmark->passed)
        return false;
    return standing->emitted == 0 ||
           (standing->at < count && standing->emitted <= standing->slots[standing->at].taken &&
            standing->emitted < interleave->block_length);
}

static tundish_status
open_slot(struct order_iterator *iterator, struct standing_slot *slot, size_t index)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    tundish_status status;

    interleave->at = index;
    interleave->pulled = slot->number + 1;
    slot->outer.count = 0; /* its words are taken over */
    status = interleave_open_slot(iterator, slot->outer.words);
    if (status == TUNDISH_NO_VALUE)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "element %" PRIu64 " of its input is bad, and was good in an earlier "
                          "run: empty the cache folder if files have changed",
                          slot->number);
    if (status == TUNDISH_OK && slot->taken > 0)
        status = order_noting_skip(iterator, interleave->slots[index].iterator, slot->taken);
    interleave->slots[index].taken = slot->taken;
    return status;
}

static tundish_status
end_input(struct order_iterator *iterator)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    uint64_t passed;

    if (order_pass_over(interleave->input, 1, &passed) != ORDER_END)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "an earlier run had fewer elements: empty the cache folder if files have "
                          "changed");
    order_drop(&interleave->input);
    return TUNDISH_OK;
}

/* NO_VALUE: the same outer element is in two slots, say. */
static tundish_status
go_to(struct order_iterator *iterator, struct standing *standing)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    tundish_status status = order_held_pull(iterator, interleave->input, standing->outers,
                                            standing->slot_count, standing->pulled);

    if (status != TUNDISH_OK)
        return status;
    for (size_t i = 0; i < standing->slot_count; i++)
        interleave_add_slot(interleave);
    for (size_t i = 0; i < standing->slot_count && status == TUNDISH_OK; i++)
        if (standing->outers[i]->count > 0)
            status = open_slot(iterator, &standing->slots[i], i);
    if (status == TUNDISH_OK && !standing->has_input)
        status = end_input(iterator);
    interleave->at = standing->at;
    interleave->emitted = standing->emitted;
    interleave->pulled = interleave->announce.taken = standing->pulled;
    return status;
}

enum order_result
interleave_leap(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct interleave *interleave = (struct interleave *)iterator->state;
    struct standing standing = { 0 };
    struct order_landmark landmark;
    tundish_status status = TUNDISH_NO_VALUE;

    *ret_passed = 0;
    if (interleave->pulled > 0 || !order_noting_before(&interleave->noting, count, &landmark))
        return ORDER_OK;
    if (read_standing(iterator, &landmark, &standing))
        status = go_to(iterator, &standing);
    close_standing(&standing, iterator->node->inputs[0]);
    if (status == TUNDISH_NO_VALUE)
        return ORDER_OK;
    if (status != TUNDISH_OK)
        return ORDER_FAILED;
    order_noting_stand_at(&interleave->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}
