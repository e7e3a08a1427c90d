/* look.c - see look.h. */
#include "order/look.h"

#include <stdlib.h>

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
    look->bad = tnd_realloc(look->bad, room, sizeof *look->bad);
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

static tundish_status
evaluate(struct order_look *look, const uint64_t *words, size_t count, const struct frame **frame)
{
    struct order_instance *instance = look->input->instance;

    return instance->services->evaluate(instance->services, look->node, instance->scope, words,
                                        count, frame);
}

static enum order_result
refill(struct order_look *look, size_t max)
{
    const struct plan_node *node = look->input->node;
    const struct frame *frame;
    enum order_result result;
    size_t wanted = max < AHEAD_AT_MOST ? max : AHEAD_AT_MOST;

    if (look->may_look_ahead && wanted < 2 * look->count && look->count < AHEAD_AT_MOST)
        wanted = 2 * look->count;
    if (look->may_look_ahead && wanted < AHEAD_AT_FIRST)
        wanted = AHEAD_AT_FIRST;
    make_room(look, wanted);
    look->at = look->count = 0;
    result = order_next(look->input, look->words, wanted, &look->count);
    if (result != ORDER_OK)
        return result;
    if (evaluate(look, look->words, look->count, &frame) != TUNDISH_OK) {
        run_words_release(look->words, look->count, node->width, node->run_words);
        look->count = 0;
        return ORDER_FAILED;
    }
    must((uint64_t)frame->count == look->count);
    for (size_t i = 0; i < look->count; i++) {
        look->bad[i] =
            frame->errors != NULL && frame->errors->bad_count > 0 && frame->errors->bad[i] != 0;
        if (!look->bad[i])
            look->numbers[i] = number_of(look, &frame->columns[look->column], i);
    }
    return ORDER_OK;
}

/* A frame keeps the text of its first bad element only, so this one is evaluated by itself. */
static void
explain_bad(struct order_look *look, const uint64_t *words)
{
    const struct frame *frame;

    if (evaluate(look, words, 1, &frame) == TUNDISH_OK && frame->errors != NULL)
        tnd_fail(frame->errors->status, "%s", frame->errors->text);
}

enum order_result
order_look_next(struct order_look *look, size_t max, const uint64_t **ret_words,
                int64_t *ret_number)
{
    const struct plan_node *node = look->input->node;
    const uint64_t *words;

    if (look->at == look->count) {
        enum order_result result = refill(look, max);

        if (result != ORDER_OK)
            return result;
    }
    words = look->words + look->at * node->width;
    if (look->bad[look->at++]) {
        explain_bad(look, words);
        run_words_release(words, 1, node->width, node->run_words);
        return ORDER_FAILED;
    }
    *ret_words = words;
    *ret_number = look->numbers[look->at - 1];
    return ORDER_OK;
}

void
order_look_close(struct order_look *look)
{
    if (look->input == NULL)
        return;
    run_words_release(look->words + look->at * look->input->node->width, look->count - look->at,
                      look->input->node->width, look->input->node->run_words);
    free(look->words);
    free(look->numbers);
    free(look->bad);
    order_close(look->input);
}
