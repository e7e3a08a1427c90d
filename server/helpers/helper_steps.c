/* helper_steps.c - see helper_steps.h. */
#include "helpers/helper_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* No range takes more. */
enum { RANGE_BYTES = 128 };

static bool
is_before(struct helper_step one, struct helper_step other)
{
    return one.epoch < other.epoch || (one.epoch == other.epoch && one.number < other.number);
}

/* From a range to the one after it; UINT64_MAX: it begins in another epoch. */
static uint64_t
distance(const struct helper_range *range)
{
    return range[1].first.epoch == range->last.epoch ? range[1].first.number - range->last.number
                                                     : UINT64_MAX;
}

/* The range after `at` becomes part of it. */
static void
join(struct helper_steps *steps, uint32_t at)
{
    struct helper_range *range = &steps->list[at];

    range->last = range[1].last;
    memmove(range + 1, range + 2, (steps->count - at - 2) * sizeof *range);
    steps->count--;
}

static void
make_room(struct helper_steps *steps)
{
    uint32_t nearest = 0;

    for (uint32_t i = 1; i + 1 < steps->count; i++)
        if (distance(&steps->list[i]) < distance(&steps->list[nearest]))
            nearest = i;
    join(steps, nearest);
    steps->is_rough = true;
}

static void
insert(struct helper_steps *steps, uint32_t at, struct helper_step step)
{
    if (steps->count == steps->room) {
        steps->room = steps->room == 0 ? 16 : 2 * steps->room;
        steps->list = tnd_realloc(steps->list, steps->room, sizeof *steps->list);
    }
    memmove(steps->list + at + 1, steps->list + at, (steps->count - at) * sizeof *steps->list);
    steps->list[at] = (struct helper_range){ step, step };
    steps->count++;
}

void
helper_steps_add(struct helper_steps *steps, struct helper_step step)
{
    uint32_t at = steps->count;

    /* Mostly at the end. */
    while (at > 0 && !is_before(steps->list[at - 1].last, step))
        at--;
    if (at < steps->count && !is_before(step, steps->list[at].first))
        return;
    insert(steps, at, step);
    steps->steps++;
    if (at + 1 < steps->count && distance(&steps->list[at]) == 1)
        join(steps, at);
    if (at > 0 && distance(&steps->list[at - 1]) == 1)
        join(steps, at - 1);
    if (steps->count > HELPER_RANGES_MAX)
        make_room(steps);
}

void
helper_steps_close(struct helper_steps *steps)
{
    free(steps->list);
    *steps = (struct helper_steps){ 0 };
}

static size_t
put_step(char *text, size_t room, struct helper_step step, bool with_epoch)
{
    int bytes = with_epoch
                    ? snprintf(text, room, "epoch %llu step %llu", (unsigned long long)step.epoch,
                               (unsigned long long)step.number)
                    : snprintf(text, room, "%llu", (unsigned long long)step.number);

    return (size_t)bytes;
}

uint32_t
helper_steps_text(const struct helper_steps *steps, uint32_t from, char *text, size_t room)
{
    size_t used = 0;
    uint32_t i = from;

    text[0] = '\0';
    for (; i < steps->count && used + RANGE_BYTES < room; i++) {
        const struct helper_range *range = &steps->list[i];
        bool is_new = i == from || range->first.epoch != range[-1].last.epoch;

        if (i > from)
            used += (size_t)snprintf(text + used, room - used, ", ");
        used += put_step(text + used, room - used, range->first, is_new);
        if (!is_before(range->first, range->last))
            continue;
        used += (size_t)snprintf(text + used, room - used, " to ");
        used += put_step(text + used, room - used, range->last,
                         range->last.epoch != range->first.epoch);
    }
    return i;
}
