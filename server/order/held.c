/* held.c - see held.h. */
#include "order/held.h"

#include <stdlib.h>

#include "core/memory.h"
#include "order/failure.h"
#include "order/noting.h"

void
order_held_grow(struct order_held *held, size_t room, uint32_t width, bool has_numbers)
{
    held->room = room;
    held->words = tnd_realloc(held->words, room, width * sizeof *held->words);
    if (has_numbers)
        held->numbers = tnd_realloc(held->numbers, room, sizeof *held->numbers);
}

void
order_held_close(struct order_held *held)
{
    free(held->words);
    free(held->numbers);
    *held = (struct order_held){ 0 };
}

/* Gaps between neighbours are short numbers. */
void
order_held_write(const struct order_held *held, struct order_state_writer *writer)
{
    uint64_t before = 0;

    order_state_put(writer, held->count);
    for (size_t i = 0; i < held->count; i++) {
        order_state_put(writer, held->numbers[i] - before);
        before = held->numbers[i];
    }
}

bool
order_held_read(struct order_held *held, struct order_state_reader *reader, uint64_t most,
                uint32_t width)
{
    uint64_t count = order_state_get(reader), number = 0;

    if (reader->is_bad || count >= most || count > (size_t)(reader->end - reader->at))
        return false;
    *held = (struct order_held){
        .words = tnd_zalloc(count + 1, width * sizeof *held->words),
        .numbers = tnd_alloc((count + 1) * sizeof *held->numbers),
        .count = (size_t)count,
        .room = (size_t)count + 1,
    };
    for (size_t i = 0; i < held->count; i++) {
        uint64_t gap = order_state_get(reader);

        if (gap > UINT64_MAX - number || (i > 0 && gap == 0))
            return false;
        number += gap;
        held->numbers[i] = number;
    }
    return !reader->is_bad;
}

/* An element to pull, and where it belongs. */
struct pull {
    uint64_t number;
    uint64_t *words;
};

static int
compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct pull *)a)->number, y = ((const struct pull *)b)->number;

    return (x > y) - (x < y);
}

/* All elements, in the order of the input, and one more entry at `taken`. */
static struct pull *
list_pulls(struct order_held *const *list, size_t list_count, const struct order_iterator *input,
           size_t *ret_count)
{
    size_t count = 0;
    struct pull *pulls;

    for (size_t i = 0; i < list_count; i++)
        count += list[i]->count;
    pulls = tnd_alloc((count + 1) * sizeof *pulls);
    *ret_count = count;
    count = 0;
    for (size_t i = 0; i < list_count; i++)
        for (size_t k = 0; k < list[i]->count; k++)
            pulls[count++] =
                (struct pull){ list[i]->numbers[k], list[i]->words + k * input->node->width };
    qsort(pulls, count, sizeof *pulls, compare_numbers);
    return pulls;
}

/* No element is held twice, nor beyond those that were taken. */
static bool
can_be(const struct pull *pulls, size_t count, uint64_t taken)
{
    for (size_t i = 0; i < count; i++)
        if (pulls[i].number >= taken || (i > 0 && pulls[i].number == pulls[i - 1].number))
            return false;
    return true;
}

static tundish_status
pull_one(const struct order_iterator *iterator, struct order_iterator *input, uint64_t *words)
{
    size_t count;
    enum order_result result = order_next(input, words, 1, &count);

    if (result == ORDER_END)
        return order_noting_skip(iterator, input, 1);
    return order_status(result);
}

tundish_status
order_held_pull(const struct order_iterator *iterator, struct order_iterator *input,
                struct order_held *const *list, size_t list_count, uint64_t taken)
{
    size_t count;
    struct pull *pulls = list_pulls(list, list_count, input, &count);
    uint64_t at = 0;
    tundish_status status = can_be(pulls, count, taken) ? TUNDISH_OK : TUNDISH_NO_VALUE;

    for (size_t i = 0; i < count && status == TUNDISH_OK; i++) {
        if (pulls[i].number > at)
            status = order_noting_skip(iterator, input, pulls[i].number - at);
        if (status == TUNDISH_OK)
            status = pull_one(iterator, input, pulls[i].words);
        at = pulls[i].number + 1;
    }
    if (status == TUNDISH_OK && taken > at)
        status = order_noting_skip(iterator, input, taken - at);
    free(pulls);
    return status;
}
