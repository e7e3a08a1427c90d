/* peek.c - see peek.h. Pulled elements wait in `words` with their numbers. If the evaluation of a
 * chunk fails, its elements are evaluated one by one, so that only the bad one fails. */
#include "order/peek.h"

#include <stdlib.h>

#include "column/frame.h"
#include "core/memory.h"
#include "core/must.h"

enum { AHEAD_AT_FIRST = 8, AHEAD_AT_MOST = 512 };

tundish_status
order_peek_open(struct order_peek *peek, const struct plan_node *input,
                struct order_instance *instance)
{
    peek->may_look_ahead = !order_shows_lookahead(input);
    return order_open(input, instance, &peek->input);
}

static void
make_room(struct order_peek *peek, size_t room)
{
    const struct plan_node *node = peek->input->node;

    if (room <= peek->room)
        return;
    peek->words = tnd_realloc(peek->words, room, node->width * sizeof *peek->words);
    peek->numbers = tnd_realloc(peek->numbers, room, sizeof *peek->numbers);
    peek->left_out = tnd_realloc(peek->left_out, room, sizeof *peek->left_out);
    if (peek->has_second)
        peek->seconds = tnd_realloc(peek->seconds, room, sizeof *peek->seconds);
    peek->room = room;
}

static int64_t
number_of(const struct order_peek *peek, const struct column *column, size_t element)
{
    switch (peek->kind) {
    case PEEK_BOOL:
        must(column->level_count == 0);
        return ((const bool *)column->values)[element];
    case PEEK_INT64:
        must(column->level_count == 0);
        return ((const int64_t *)column->values)[element];
    case PEEK_LENGTH:
        return column->level_count == 0 ? ((const int64_t *)column->values)[element]
                                        : level_length(&column->levels[0], (int64_t)element);
    }
    return 0;
}

/* Evaluate the numbers of elements [at, at + count). */
static tundish_status
see(struct order_peek *peek, size_t at, size_t count)
{
    struct order_services *services = peek->input->instance->services;
    const uint64_t *words = peek->words + at * peek->input->node->width;
    order_evaluate *evaluate = peek->asks ? services->evaluate_answers : services->evaluate;
    const struct frame *frame;
    tundish_status status =
        evaluate(services, peek->node, peek->input->instance->scope, words, count, &frame);

    if (status != TUNDISH_OK)
        return status;
    must(frame->kept != NULL || (uint64_t)frame->count == count);
    for (size_t i = 0; i < count; i++)
        peek->left_out[at + i] = frame->kept != NULL;
    for (int64_t i = 0; i < frame->count; i++) {
        size_t element = at + (size_t)(frame->kept != NULL ? frame->kept[i] : i);

        if (peek->kind == PEEK_LENGTH && frame->columns[peek->column].level_count == 0 &&
            frame->schema->columns[peek->column].dtype != TUNDISH_INT64)
            return tnd_fail(TUNDISH_E_DATA, "a scalar has no length to put it into a bucket by");

        peek->left_out[element] = false;
        peek->numbers[element] = number_of(peek, &frame->columns[peek->column], (size_t)i);
        if (peek->has_second)
            peek->seconds[element] = number_of(peek, &frame->columns[peek->column + 1], (size_t)i);
    }
    return TUNDISH_OK;
}

/* Pull the elements that the caller is sure to want. If looking ahead is unobservable, double the
 * chunk each time: the first element comes soon, and later ones share the cost of an evaluation. */
static enum order_result
refill(struct order_peek *peek, size_t max)
{
    enum order_result result;
    size_t wanted = max < AHEAD_AT_MOST ? max : AHEAD_AT_MOST;

    if (peek->may_look_ahead && wanted < 2 * peek->count && peek->count < AHEAD_AT_MOST)
        wanted = 2 * peek->count;
    if (peek->may_look_ahead && wanted < AHEAD_AT_FIRST)
        wanted = AHEAD_AT_FIRST;
    make_room(peek, wanted);
    peek->at = peek->count = 0;
    result = order_next(peek->input, peek->words, wanted, &peek->count);
    if (result == ORDER_OK)
        peek->is_seen = see(peek, 0, peek->count) == TUNDISH_OK;
    return result;
}

enum order_result
order_peek_next(struct order_peek *peek, size_t max, const uint64_t **ret_words,
                int64_t *ret_number)
{
    const struct plan_node *node = peek->input->node;

    for (;;) {
        enum order_result result = peek->at == peek->count ? refill(peek, max) : ORDER_OK;
        const uint64_t *words = peek->words + peek->at * node->width;
        size_t at = peek->at;

        if (result != ORDER_OK)
            return result;
        peek->at++;
        /* The chunk failed as a whole. Its own evaluation tells whether this element is the bad
         * one. */
        if (!peek->is_seen && see(peek, at, 1) != TUNDISH_OK) {
            run_words_release(words, 1, node->width, node->run_words);
            return ORDER_FAILED;
        }
        if (!peek->left_out[at]) {
            *ret_words = words;
            *ret_number = peek->numbers[at];
            if (peek->has_second)
                peek->second = peek->seconds[at];
            return ORDER_OK;
        }
        run_words_release(words, 1, node->width, node->run_words);
    }
}

void
order_peek_close(struct order_peek *peek)
{
    if (peek->input == NULL)
        return;
    if (peek->at < peek->count)
        run_words_release(peek->words + peek->at * peek->input->node->width, peek->count - peek->at,
                          peek->input->node->width, peek->input->node->run_words);
    free(peek->words);
    free(peek->numbers);
    free(peek->seconds);
    free(peek->left_out);
    order_close(peek->input);
}

tundish_status
order_peek_rows(const struct order_iterator *iterator, const uint64_t *element, uint64_t *ret_rows)
{
    struct order_services *services = iterator->instance->services;
    const struct frame *frame;
    tundish_status status;
    int64_t rows = -1;

    status = services->evaluate(services, iterator->node->inputs[0], iterator->instance->scope,
                                element, 1, &frame);
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < frame->column_count && frame->count > 0; i++) {
        const struct column *column = &frame->columns[i];

        if (column->level_count == 0)
            return order_fail(iterator, TUNDISH_E_DATA, "column %s is a scalar: it has no rows",
                              frame->schema->columns[i].name);
        if (rows >= 0 && level_length(&column->levels[0], 0) != rows)
            return order_fail(iterator, TUNDISH_E_DATA,
                              "columns %s and %s do not have the same number of rows",
                              frame->schema->columns[0].name, frame->schema->columns[i].name);
        rows = level_length(&column->levels[0], 0);
    }
    *ret_rows = rows < 0 ? 0 : (uint64_t)rows;
    return TUNDISH_OK;
}
