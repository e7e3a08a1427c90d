/* peek.c - see peek.h. Pulled elements wait in chunks with their numbers. If the evaluation of a
 * chunk fails, its elements are evaluated one by one, so that only the bad one fails. */
#include "order/peek.h"

#include <stdlib.h>
#include <string.h>

#include "column/frame.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/failure.h"

enum { AHEAD_AT_FIRST = 8, AHEAD_AT_MOST = 512 };

/* Handing a chunk to another thread takes a few microseconds, and waking that as many as
 * WORTH_NS. A chunk of LOOK_NS pays for both, and more threads share few elements. */
static const uint64_t LOOK_NS = 200000, WORTH_NS = 30000;
/* Elements that come as slowly as this are not waited for while others are there. */
static const int64_t SLOW_NS = 2000000;
/* Chunks ahead: one in work and one waiting for each thread. */
enum { CHUNKS_A_THREAD = 2, CHUNKS_AT_MOST = 128 };

/* The filter `node` comes after all that are known to come after this one. */
static void
let_follow(struct order_peek *peek, const struct plan_node *node)
{
    for (; peek != NULL && peek->later_count < FORESEEN_AT_MOST; peek = peek->before) {
        peek->later = tnd_realloc(peek->later, peek->later_count + 1, sizeof *peek->later);
        peek->later[peek->later_count++] = node;
    }
}

tundish_status
order_peek_open(struct order_peek *peek, const struct plan_node *input,
                struct order_instance *instance)
{
    tundish_status status;

    peek->may_look_ahead = !order_shows_lookahead(input);
    peek->capacity = 1;
    peek->chunks = tnd_zalloc(1, sizeof *peek->chunks);
    status = order_open(input, instance, &peek->input);
    if (status == TUNDISH_OK && peek->asks && peek->kind == PEEK_BOOL && input->order != NULL &&
        input->order->foresees) {
        peek->before = (struct order_peek *)peek->input->state;
        let_follow(peek->before, peek->node);
    }
    return status;
}

static struct order_services *
services_of(const struct order_peek *peek)
{
    return peek->input->instance->services;
}

static struct order_peek_chunk *
chunk_of(struct order_peek *peek, uint32_t index)
{
    return &peek->chunks[(peek->first + index) % peek->capacity];
}

static void
make_room(struct order_peek *peek, struct order_peek_chunk *chunk, size_t room)
{
    const struct plan_node *node = peek->input->node;

    if (room <= chunk->room)
        return;
    chunk->words = tnd_realloc(chunk->words, room, node->width * sizeof *chunk->words);
    chunk->numbers = tnd_realloc(chunk->numbers, room, sizeof *chunk->numbers);
    chunk->left_out = tnd_realloc(chunk->left_out, room, sizeof *chunk->left_out);
    if (peek->has_second)
        chunk->seconds = tnd_realloc(chunk->seconds, room, sizeof *chunk->seconds);
    if (peek->later_count > 0)
        chunk->foreseen = tnd_realloc(chunk->foreseen, room, sizeof *chunk->foreseen);
    chunk->room = room;
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

/* Take the numbers of elements [at, at + count) from their content. Any thread. */
static tundish_status
take_numbers(const struct order_peek *peek, struct order_peek_chunk *chunk, size_t at, size_t count,
             const struct frame *frame)
{
    must(frame->kept != NULL || (uint64_t)frame->count == count);
    for (size_t i = 0; i < count; i++)
        chunk->left_out[at + i] = frame->kept != NULL;
    for (int64_t i = 0; i < frame->count; i++) {
        size_t element = at + (size_t)(frame->kept != NULL ? frame->kept[i] : i);

        if (peek->kind == PEEK_LENGTH && frame->columns[peek->column].level_count == 0 &&
            frame->schema->columns[peek->column].dtype != TUNDISH_INT64)
            return tnd_fail(TUNDISH_E_DATA, "a scalar has no length to put it into a bucket by");

        chunk->left_out[element] = false;
        chunk->numbers[element] = number_of(peek, &frame->columns[peek->column], (size_t)i);
        if (peek->has_second)
            chunk->seconds[element] = number_of(peek, &frame->columns[peek->column + 1], (size_t)i);
    }
    return TUNDISH_OK;
}

static tundish_status
take_look(struct order_look *look, const struct frame *frame)
{
    struct order_peek_chunk *chunk = look->chunk;

    return take_numbers(chunk->peek, chunk, 0, chunk->count, frame);
}

/* A look at elements [at, at + count). */
static struct order_look
look_of(struct order_peek *peek, struct order_peek_chunk *chunk, size_t at, size_t count)
{
    return (struct order_look){
        .node = peek->node,
        .asks = peek->asks,
        .scope = peek->input->instance->scope,
        .words = chunk->words + at * peek->input->node->width,
        .count = count,
        .later = peek->later,
        .later_count = peek->later_count,
        .foreseen = peek->later_count > 0 ? chunk->foreseen + at : NULL,
        .take = take_look,
        .chunk = chunk,
    };
}

/* Evaluate the numbers of elements [at, at + count). */
static tundish_status
see(struct order_peek *peek, struct order_peek_chunk *chunk, size_t at, size_t count)
{
    struct order_services *services = services_of(peek);
    struct order_look look = look_of(peek, chunk, at, count);
    const struct frame *frame;
    tundish_status status = peek->asks ? services->evaluate_answers(services, &look, &frame)
                                       : services->evaluate(services, look.node, look.scope,
                                                            look.words, look.count, &frame);

    return status == TUNDISH_OK ? take_numbers(peek, chunk, at, count, frame) : status;
}

/* Remember what an element takes. Single ones are not representative, and reading the clock would
 * cost as much. */
static void
note_cost(struct order_peek *peek, size_t count, int64_t took_ns)
{
    uint64_t *known = &services_of(peek)->look_ns[peek->node->index];
    uint64_t each = (uint64_t)took_ns / count;

    each += each == 0;
    *known = *known == 0 ? each : (3 * *known + each + 3) / 4;
}

static void
see_here(struct order_peek *peek, struct order_peek_chunk *chunk)
{
    bool is_measured = services_of(peek)->looks != NULL && chunk->count >= AHEAD_AT_FIRST;
    int64_t began_ns;

    if (chunk->is_seen)
        return;
    began_ns = is_measured ? tnd_clock_ns() : 0;
    chunk->is_seen = see(peek, chunk, 0, chunk->count) == TUNDISH_OK;
    if (is_measured)
        note_cost(peek, chunk->count, tnd_clock_ns() - began_ns);
}

static void
look_elsewhere(struct order_peek *peek, struct order_peek_chunk *chunk)
{
    const struct order_looks *looks = services_of(peek)->looks;

    chunk->peek = peek;
    chunk->look = look_of(peek, chunk, 0, chunk->count);
    chunk->is_away = true;
    looks->begin(looks->context, &chunk->look);
}

/* Wait for the chunk's numbers. Fails if the order is being stopped. */
static tundish_status
await_look(struct order_peek *peek, struct order_peek_chunk *chunk)
{
    struct order_services *services = services_of(peek);
    tundish_status status;

    if (!chunk->is_away)
        return TUNDISH_OK;
    status = services->looks->await(services->looks->context, &chunk->look);
    if (status != TUNDISH_OK)
        return status;
    chunk->is_away = false;
    chunk->is_seen = chunk->look.status == TUNDISH_OK;
    services->looked(services, &chunk->look, true);
    note_cost(peek, chunk->count, chunk->look.took_ns);
    return TUNDISH_OK;
}

/* How many elements to pull next. If looking ahead is unobservable, double the chunk each time: the
 * first element comes soon, and later ones share the cost of an evaluation. */
static size_t
chunk_size(const struct order_peek *peek, size_t max)
{
    size_t wanted = max < AHEAD_AT_MOST ? max : AHEAD_AT_MOST;
    size_t ahead = 2 * peek->pulled < AHEAD_AT_MOST ? 2 * peek->pulled : AHEAD_AT_MOST;

    if (!peek->may_look_ahead)
        return wanted;
    if (ahead < AHEAD_AT_FIRST)
        ahead = AHEAD_AT_FIRST;
    return wanted < ahead ? ahead : wanted;
}

/* Take what the filter before has found out about the elements that it just brought. One of which
 * nothing is known is looked at, with its chunk. */
static void
take_foreseen(struct order_peek *peek, struct order_peek_chunk *chunk)
{
    const uint16_t *given = peek->before->given;

    for (size_t i = 0; i < chunk->count; i++)
        if (given[i] == 0)
            return;
    for (size_t i = 0; i < chunk->count; i++) {
        chunk->numbers[i] = given[i] >= FORESEEN_PASS;
        chunk->left_out[i] = false;
        if (peek->later_count > 0)
            chunk->foreseen[i] = given[i] >= FORESEEN_PASS ? given[i] - FORESEEN_PASS : 0;
    }
    chunk->is_seen = true;
}

/* The chunk is_seen afterwards if nobody has to look at it. */
static enum order_result
pull(struct order_peek *peek, struct order_peek_chunk *chunk, size_t wanted)
{
    enum order_result result;

    make_room(peek, chunk, wanted);
    chunk->is_seen = false;
    chunk->at = chunk->count = 0;
    result = order_next(peek->input, chunk->words, wanted, &chunk->count);
    if (result != ORDER_OK)
        return result;
    peek->pulled = chunk->count;
    peek->count++;
    if (peek->before != NULL)
        take_foreseen(peek, chunk);
    return ORDER_OK;
}

/* A chunk is there: report what follows it later. The text is copied, since others may fail
 * meanwhile. */
static void
hold(struct order_peek *peek, enum order_result result)
{
    peek->held_result = result;
    if (result == ORDER_FAILED)
        peek->held_error = order_failure_keep();
}

static enum order_result
take_held(struct order_peek *peek)
{
    enum order_result result = peek->held_result;

    peek->held_result = ORDER_OK;
    if (result == ORDER_FAILED) {
        order_failure_tell(peek->held_error);
        free(peek->held_error);
        peek->held_error = NULL;
    }
    return result;
}

/* No chunk is there: more of them may be from now on. */
static void
make_chunks(struct order_peek *peek)
{
    uint32_t capacity = services_of(peek)->looks->threads * CHUNKS_A_THREAD;

    if (capacity > CHUNKS_AT_MOST)
        capacity = CHUNKS_AT_MOST;
    if (peek->capacity >= capacity)
        return;
    peek->chunks = tnd_realloc(peek->chunks, capacity, sizeof *peek->chunks);
    memset(peek->chunks + peek->capacity, 0, (capacity - peek->capacity) * sizeof *peek->chunks);
    peek->capacity = capacity;
    peek->first = 0;
}

/* How many elements, each of which takes `each_ns`, another thread looks at at once. */
static size_t
look_size(uint64_t each_ns)
{
    return LOOK_NS / each_ns + 1;
}

/* Pull chunks for others to look at, as far ahead as may be. */
static enum order_result
look_ahead(struct order_peek *peek, size_t max, uint64_t each_ns)
{
    while (peek->count < peek->capacity && peek->held_result == ORDER_OK) {
        size_t wanted = chunk_size(peek, max);
        struct order_peek_chunk *chunk = chunk_of(peek, peek->count);
        int64_t began_ns;
        enum order_result result;

        if (wanted > look_size(each_ns))
            wanted = look_size(each_ns);
        if (peek->count > 0 && (peek->pull_ns > SLOW_NS || wanted * each_ns < WORTH_NS))
            break;
        began_ns = tnd_clock_ns();
        result = pull(peek, chunk, wanted);
        peek->pull_ns = tnd_clock_ns() - began_ns;
        if (result != ORDER_OK && peek->count == 0)
            return result;
        if (result != ORDER_OK) {
            hold(peek, result);
            break;
        }
        if (chunk->is_seen)
            break;
        if (peek->count == 1 && chunk->count * each_ns < WORTH_NS) {
            see_here(peek, chunk);
            break;
        }
        look_elsewhere(peek, chunk);
    }
    return ORDER_OK;
}

/* Cut the one chunk into chunks of `size` elements, or larger ones if those are too many. */
static void
cut_chunk(struct order_peek *peek, size_t size)
{
    struct order_peek_chunk *whole = chunk_of(peek, 0);
    size_t total = whole->count, width = peek->input->node->width;

    if (size < (total + peek->capacity - 1) / peek->capacity)
        size = (total + peek->capacity - 1) / peek->capacity;
    for (size_t from = size; from < total; from += size) {
        struct order_peek_chunk *chunk = chunk_of(peek, peek->count++);

        make_room(peek, chunk, size);
        chunk->at = 0;
        chunk->count = total - from < size ? total - from : size;
        memcpy(chunk->words, whole->words + from * width,
               chunk->count * width * sizeof *chunk->words);
    }
    if (whole->count > size)
        whole->count = size;
}

/* The same where looking ahead shows: elements are pulled once, and no more of them before all are
 * taken, since a stage may end without what it seemed to want. */
static enum order_result
look_at_pulled(struct order_peek *peek, size_t max, uint64_t each_ns)
{
    enum order_result result;

    if (peek->count > 0)
        return ORDER_OK;
    result = pull(peek, chunk_of(peek, 0), chunk_size(peek, max));
    if (result != ORDER_OK)
        return result;
    if (chunk_of(peek, 0)->is_seen || chunk_of(peek, 0)->count * each_ns < WORTH_NS) {
        see_here(peek, chunk_of(peek, 0));
        return ORDER_OK;
    }
    cut_chunk(peek, look_size(each_ns));
    for (uint32_t i = 0; i < peek->count; i++)
        look_elsewhere(peek, chunk_of(peek, i));
    return ORDER_OK;
}

/* The first chunk is empty, or still under way, or none is there. */
static enum order_result
refill(struct order_peek *peek, size_t max)
{
    const struct order_services *services = services_of(peek);
    uint64_t each_ns = services->looks != NULL ? services->look_ns[peek->node->index] : 0;
    enum order_result result;

    if (peek->count > 0 && chunk_of(peek, 0)->at == chunk_of(peek, 0)->count) {
        peek->first = (peek->first + 1) % peek->capacity;
        peek->count--;
    }
    if (peek->count == 0 && peek->held_result != ORDER_OK)
        return take_held(peek);
    if (each_ns != 0) {
        if (peek->count == 0)
            make_chunks(peek);
        result = peek->may_look_ahead ? look_ahead(peek, max, each_ns)
                                      : look_at_pulled(peek, max, each_ns);
        if (result == ORDER_OK && await_look(peek, chunk_of(peek, 0)) != TUNDISH_OK)
            return ORDER_FAILED;
        return result;
    }
    result = pull(peek, chunk_of(peek, 0), chunk_size(peek, max));
    if (result == ORDER_OK)
        see_here(peek, chunk_of(peek, 0));
    return result;
}

enum order_result
order_peek_next(struct order_peek *peek, size_t max, const uint64_t **ret_words,
                int64_t *ret_number)
{
    const struct plan_node *node = peek->input->node;

    for (;;) {
        struct order_peek_chunk *chunk = chunk_of(peek, 0);
        const uint64_t *words;
        size_t at;

        if (peek->count == 0 || chunk->at == chunk->count || chunk->is_away) {
            enum order_result result = refill(peek, max);

            peek->has_bad |= result == ORDER_FAILED;
            if (result != ORDER_OK)
                return result;
            chunk = chunk_of(peek, 0);
        }
        at = chunk->at++;
        peek->taken++;
        words = chunk->words + at * node->width;
        /* The chunk failed as a whole. Its own evaluation tells whether this element is the bad
         * one. */
        if (!chunk->is_seen && see(peek, chunk, at, 1) != TUNDISH_OK) {
            run_words_release(words, 1, node->width, node->run_words);
            peek->has_bad = true;
            return ORDER_FAILED;
        }
        if (!chunk->left_out[at]) {
            *ret_words = words;
            *ret_number = chunk->numbers[at];
            if (peek->later_count > 0)
                peek->foreseen = chunk->foreseen[at];
            if (peek->has_second)
                peek->second = chunk->seconds[at];
            return ORDER_OK;
        }
        run_words_release(words, 1, node->width, node->run_words);
        peek->has_bad = true;
        services_of(peek)->left_out++;
    }
}

void
order_peek_give(struct order_peek *peek, size_t index)
{
    if (peek->later_count == 0)
        return;
    if (index >= peek->given_room) {
        peek->given_room = 2 * index + AHEAD_AT_FIRST;
        peek->given = tnd_realloc(peek->given, peek->given_room, sizeof *peek->given);
    }
    peek->given[index] = peek->foreseen;
}

static void
drop_chunk(struct order_peek *peek, struct order_peek_chunk *chunk)
{
    const struct plan_node *node = peek->input->node;
    struct order_services *services = services_of(peek);

    if (chunk->is_away) {
        chunk->is_away = false;
        services->looks->forget(services->looks->context, &chunk->look);
        services->looked(services, &chunk->look, false);
    }
    run_words_release(chunk->words + chunk->at * node->width, chunk->count - chunk->at, node->width,
                      node->run_words);
}

bool
order_peek_waiting(const struct order_peek *peek, uint64_t *ret_count)
{
    uint64_t count = 0;

    if (peek->held_result != ORDER_OK)
        return false;
    for (uint32_t i = 0; i < peek->count; i++) {
        const struct order_peek_chunk *chunk = &peek->chunks[(peek->first + i) % peek->capacity];

        count += chunk->count - chunk->at;
    }
    *ret_count = count;
    return true;
}

void
order_peek_drop_waiting(struct order_peek *peek)
{
    for (uint32_t i = 0; i < peek->count; i++)
        drop_chunk(peek, chunk_of(peek, i));
    peek->first = peek->count = 0;
}

void
order_peek_close(struct order_peek *peek)
{
    if (peek->input != NULL)
        order_peek_drop_waiting(peek);
    for (uint32_t i = 0; i < peek->capacity; i++) {
        free(peek->chunks[i].words);
        free(peek->chunks[i].numbers);
        free(peek->chunks[i].seconds);
        free(peek->chunks[i].left_out);
        free(peek->chunks[i].foreseen);
    }
    free(peek->chunks);
    free(peek->held_error);
    free(peek->given);
    free(peek->later);
    order_close(peek->input);
}

tundish_status
order_peek_rows(const struct order_iterator *iterator, const uint64_t *element, uint64_t *ret_rows,
                bool *ret_left_out)
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
    *ret_left_out = frame->count == 0;
    services->left_out += *ret_left_out;
    return TUNDISH_OK;
}
