/* branches.c - see branches.h. */
#include "order/branches.h"

#include <stdlib.h>

#include "core/memory.h"
#include "order/noting.h"
#include "plan/stage.h"

void
order_branches_begin(struct order_branches *branches, const struct order_iterator *iterator,
                     uint32_t count)
{
    *branches = (struct order_branches){
        .inputs = tnd_zalloc(count, sizeof(struct order_iterator *)),
        .taken = tnd_zalloc(count, sizeof *branches->taken),
        .count = count,
        .stop_on_empty = spec_bool(iterator->node->stage, "stop_on_empty_dataset"),
    };
}

tundish_status
order_branches_open(struct order_branches *branches, const struct order_iterator *iterator)
{
    tundish_status status = TUNDISH_OK;

    branches->open_count = branches->count;
    for (uint32_t i = 0; i < branches->count && status == TUNDISH_OK; i++)
        status = order_open(iterator->node->inputs[i], iterator->instance, &branches->inputs[i]);
    return status;
}

void
order_branches_close(struct order_branches *branches)
{
    for (uint32_t i = 0; i < branches->count; i++)
        order_close(branches->inputs[i]);
    free(branches->inputs);
    free(branches->taken);
    *branches = (struct order_branches){ 0 };
}

bool
order_branches_end(struct order_branches *branches, uint32_t input)
{
    order_drop(&branches->inputs[input]);
    return --branches->open_count == 0 || branches->stop_on_empty;
}

void
order_branches_write(const struct order_branches *branches, const uint64_t *more,
                     struct order_state_writer *writer)
{
    for (uint32_t i = 0; i < branches->count; i++) {
        order_state_put(writer, branches->taken[i] + (more != NULL ? more[i] : 0));
        order_state_put(writer, branches->inputs[i] == NULL);
    }
}

/* How far each input was taken is together as far as elements passed. One is left, or nothing would
 * have been noted. */
static bool
read_taken(const struct order_branches *branches, const struct order_landmark *landmark,
           uint64_t *ret_taken, bool *ret_ended)
{
    struct order_state_reader reader = order_landmark_read(landmark);
    uint64_t left = landmark->passed, ended_count = 0;

    for (uint32_t i = 0; i < branches->count && !reader.is_bad; i++) {
        uint64_t ended;

        ret_taken[i] = order_state_get(&reader);
        ended = order_state_get(&reader);
        ret_ended[i] = ended == 1;
        reader.is_bad |= ret_taken[i] > left || ended > 1;
        left -= ret_taken[i];
        ended_count += ended;
    }
    return order_state_is_whole(&reader) && left == 0 &&
           (branches->stop_on_empty ? ended_count == 0 : ended_count < branches->count);
}

/* Go on to the `taken`th element of an input, or to its end after that. */
static tundish_status
go_to(const struct order_iterator *iterator, struct order_branches *branches, uint32_t input,
      uint64_t taken, bool ended)
{
    uint64_t passed;
    tundish_status status = TUNDISH_OK;

    if (taken > 0)
        status = order_noting_skip(iterator, branches->inputs[input], taken);
    branches->taken[input] = taken;
    if (status != TUNDISH_OK || !ended)
        return status;
    if (order_pass_over(branches->inputs[input], 1, &passed) != ORDER_END)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "an earlier run had fewer elements of dataset %u: empty the cache folder "
                          "if files have changed",
                          input);
    (void)order_branches_end(branches, input);
    return TUNDISH_OK;
}

tundish_status
order_branches_go_to(const struct order_iterator *iterator, struct order_branches *branches,
                     const struct order_landmark *landmark)
{
    uint64_t *taken = tnd_zalloc(branches->count, sizeof *taken);
    bool *ended = tnd_zalloc(branches->count, sizeof *ended);
    tundish_status status =
        read_taken(branches, landmark, taken, ended) ? TUNDISH_OK : TUNDISH_NO_VALUE;

    for (uint32_t i = 0; i < branches->count && status == TUNDISH_OK; i++)
        status = go_to(iterator, branches, i, taken[i], ended[i]);
    free(taken);
    free(ended);
    return status;
}
