/* noting.c - see noting.h. */
#include "order/noting.h"
#include "order/failure.h"

#include <inttypes.h>

static struct order_landmarks *
landmarks_of(const struct order_iterator *iterator)
{
    return iterator->instance->services->landmarks;
}

void
order_noting_begin(struct order_noting *noting, const struct order_iterator *iterator,
                   bool are_parts)
{
    *noting = (struct order_noting){ .list = order_landmarks_begin(iterator), .next = UINT64_MAX };
    if (noting->list == NULL)
        return;
    noting->list->are_parts = are_parts;
    noting->next = order_landmarks_step(landmarks_of(iterator));
}

void
order_noting_end(struct order_noting *noting)
{
    order_landmarks_end(noting->list);
    noting->list = NULL;
    noting->next = UINT64_MAX;
}

void
order_noting_take_back(struct order_noting *noting, uint64_t taken)
{
    if (noting->list != NULL)
        order_landmarks_cut(noting->list, taken);
    order_noting_end(noting);
}

bool
order_noting_wants(struct order_noting *noting, const struct order_iterator *iterator,
                   uint64_t taken)
{
    noting->next += order_landmarks_step(landmarks_of(iterator));
    return order_landmarks_want(noting->list, taken);
}

struct order_state_writer *
order_noting_state(const struct order_iterator *iterator)
{
    struct order_state_writer *writer = &landmarks_of(iterator)->writer;

    writer->count = 0;
    return writer;
}

void
order_noting_note(struct order_noting *noting, const struct order_iterator *iterator,
                  uint64_t taken, const struct order_state_writer *state)
{
    const struct order_landmark landmark = {
        .taken = taken,
        .passed = noting->passed,
        .state = state != NULL ? state->bytes : NULL,
        .state_bytes = state != NULL ? state->count : 0,
    };

    order_landmarks_note(landmarks_of(iterator), noting->list, &landmark);
}

bool
order_noting_before(const struct order_noting *noting, uint64_t count,
                    struct order_landmark *ret_landmark)
{
    return noting->list != NULL && order_landmarks_before(noting->list, count, ret_landmark);
}

tundish_status
order_noting_skip(const struct order_iterator *iterator, struct order_iterator *input,
                  uint64_t count)
{
    uint64_t passed;
    enum order_result result = order_pass_over(input, count, &passed);

    if (result == ORDER_END && passed < count)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "an earlier run had at least %" PRIu64
                          " more elements: empty the cache folder if files have changed",
                          count - passed);
    return order_status(result);
}

void
order_noting_stand_at(struct order_noting *noting, const struct order_iterator *iterator,
                      const struct order_landmark *landmark, uint64_t from)
{
    noting->passed = landmark->passed;
    noting->next = landmark->taken + order_landmarks_step(landmarks_of(iterator));
    landmarks_of(iterator)->leapt += landmark->taken - from;
}

uint64_t
order_noting_reach(const struct order_noting *noting)
{
    return noting->list != NULL ? order_landmarks_reach(noting->list) : 0;
}
