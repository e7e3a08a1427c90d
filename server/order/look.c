/* look.c - see look.h. */
#include "order/look.h"

#include <stdlib.h>

#include "column/frame.h"
#include "core/memory.h"
#include "core/must.h"

enum { AHEAD_AT_FIRST = 8, AHEAD_AT_MOST = 512 };

tundish_status
order_look_open(struct order_look *look, const struct plan_node *input,
                struct order_instance *instance)
{
    look->may_look_ahead = !order_shows_lookahead(input);
    return order_open(input, instance, &look->input);
}

static void
make_room(struct order_look *look, size_t room)
{
    const struct plan_node *node = look->input->node;

    if (room <= look->room)
        return;
    look->words = tnd_realloc(look->words, room, node->width * sizeof *look->words);
    look->numbers = tnd_realloc(look->numbers, room, sizeof *look->numbers);
    look->left_out = tnd_realloc(look->left_out, room, sizeof *look->left_out);
    if (look->has_second)
        look->seconds = tnd_realloc(look->seconds, room, sizeof *look->seconds);
    look->room = room;
}

static int64_t
number_of(const struct order_look *look, const struct column *column, size_t element)
{
    switch (look->kind) {
    case LOOK_BOOL:
        must(column->level_count == 0);
        return ((const bool *)column->values)[element];
    case LOOK_INT64:
        must(column->level_count == 0);
        return ((const int64_t *)column->values)[element];
    case LOOK_LENGTH:
        must(column->level_count > 0);
        return level_length(&column->levels[0], (int64_t)element);
    }
    return 0;
}

/* See elements [at, at + count). */
static tundish_status
see(struct order_look *look, size_t at, size_t count)
{
    struct order_services *services = look->input->instance->services;
    const uint64_t *words = look->words + at * look->input->node->width;
    order_evaluate *evaluate = look->asks ? services->evaluate_answers : services->evaluate;
    const struct frame *frame;
    tundish_status status =
        evaluate(services, look->node, look->input->instance->scope, words, count, &frame);

    if (status != TUNDISH_OK)
        return status;
    must(frame->kept != NULL || (uint64_t)frame->count == count);
    for (size_t i = 0; i < count; i++)
        look->left_out[at + i] = frame->kept != NULL;
    for (int64_t i = 0; i < frame->count; i++) {
        size_t element = at + (size_t)(frame->kept != NULL ? frame->kept[i] : i);

        if (look->kind == LOOK_LENGTH && frame->columns[look->column].level_count == 0)
            return tnd_fail(TUNDISH_E_DATA, "a scalar has no length to put it into a bucket by");

        look->left_out[element] = false;
        look->numbers[element] = number_of(look, &frame->columns[look->column], (size_t)i);
        if (look->has_second)
            look->seconds[element] = number_of(look, &frame->columns[look->column + 1], (size_t)i);
    }
    return TUNDISH_OK;
}

static enum order_result
refill(struct order_look *look, size_t max)
{
    enum order_result result;
    size_t wanted = max < AHEAD_AT_MOST ? max : AHEAD_AT_MOST;

    if (look->may_look_ahead && wanted < 2 * look->count && look->count < AHEAD_AT_MOST)
        wanted = 2 * look->count;
    if (look->may_look_ahead && wanted < AHEAD_AT_FIRST)
        wanted = AHEAD_AT_FIRST;
    make_room(look, wanted);
    look->at = look->count = 0;
    result = order_next(look->input, look->words, wanted, &look->count);
    if (result == ORDER_OK)
        look->is_seen = see(look, 0, look->count) == TUNDISH_OK;
    return result;
}

enum order_result
order_look_next(struct order_look *look, size_t max, const uint64_t **ret_words,
                int64_t *ret_number)
{
    const struct plan_node *node = look->input->node;

    for (;;) {
        enum order_result result = look->at == look->count ? refill(look, max) : ORDER_OK;
        const uint64_t *words = look->words + look->at * node->width;
        size_t at = look->at;

        if (result != ORDER_OK)
            return result;
        look->at++;
        if (!look->is_seen && see(look, at, 1) != TUNDISH_OK) {
            run_words_release(words, 1, node->width, node->run_words);
            return ORDER_FAILED;
        }
        if (!look->left_out[at]) {
            *ret_words = words;
            *ret_number = look->numbers[at];
            if (look->has_second)
                look->second = look->seconds[at];
            return ORDER_OK;
        }
        run_words_release(words, 1, node->width, node->run_words);
    }
}

void
order_look_close(struct order_look *look)
{
    if (look->input == NULL)
        return;
    if (look->at < look->count)
        run_words_release(look->words + look->at * look->input->node->width, look->count - look->at,
                          look->input->node->width, look->input->node->run_words);
    free(look->words);
    free(look->numbers);
    free(look->seconds);
    free(look->left_out);
    order_close(look->input);
}

tundish_status
order_look_rows(const struct order_iterator *iterator, const uint64_t *element, uint64_t *ret_rows)
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
