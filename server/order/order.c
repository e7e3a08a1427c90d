/* order.c - the table of order stages, and the parts that all iterators share. */
#include "order/order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/arguments.h"
#include "order/failure.h"
#include "shm/segment.h"

#define ORDER(name, ...) extern const struct order_ops order_##name;
#define PLANNED_ORDER(name) ORDER(name, )
#include "spec/stages.def"

static const struct order_ops *const table[] = {
#define ORDER(name, ...) &order_##name,
#define PLANNED_ORDER(name) ORDER(name, )
#include "spec/stages.def"
};

const struct order_ops *
order_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const struct plan_node *
order_node(const struct plan_node *node)
{
    while (node->order == NULL) {
        must(node->input_count > 0);
        node = node->inputs[0];
    }
    return node;
}

bool
order_is_indexed(const struct plan_node *node)
{
    node = order_node(node);
    if (node->order->count == NULL || node->order->at == NULL)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!order_is_indexed(node->inputs[i]))
            return false;
    return node->body == NULL || order_is_indexed(node->body->root);
}

bool
order_numbers_draws(const struct plan_graph *body)
{
    for (uint32_t i = 0; i < body->node_count; i++)
        if (body->nodes[i]->order == &order_ordinal ||
            (body->nodes[i]->body != NULL && order_numbers_draws(body->nodes[i]->body)))
            return true;
    return false;
}

/* A body's dataset objects are gone with their outer element, so no later iterator can see how far
 * they were pulled; but ordinals count on. */
bool
order_shows_lookahead(const struct plan_node *node)
{
    node = order_node(node);
    if (node->random || node->order->counts_elements)
        return true;
    if (node->body != NULL && order_numbers_draws(node->body))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (order_shows_lookahead(node->inputs[i]))
            return true;
    return false;
}

bool
order_reads_content(const struct plan_node *node)
{
    enum order_content_use content_use =
        node->order != NULL ? node->order->content_use : ORDER_READS_CONTENT_NEVER;

    return content_use == ORDER_READS_CONTENT_ALWAYS ||
           (content_use == ORDER_READS_CONTENT_FOR_ROWS && node->cuts_content);
}

struct order_gathered
order_gathered(const struct plan_node *node, uint32_t word)
{
    node = order_node(node);
    if (node->order->gathered != NULL)
        return node->order->gathered(node, word);
    must(node->input_count > 0);
    return order_gathered(node->inputs[0], word);
}

uint32_t
order_row_width(const struct plan_node *node, uint32_t word)
{
    struct order_gathered gathered;
    uint32_t width = 0;

    if ((node->run_words >> word & 1) == 0)
        return 1;
    gathered = order_gathered(node, word);
    if (!gathered.in_pieces)
        return gathered.elements->width;
    for (uint32_t i = 0; i < gathered.elements->width; i++)
        width += order_row_width(gathered.elements, i);
    return width;
}

const struct plan_node *
order_united_input(const struct plan_node *node, uint32_t word, uint32_t *ret_word)
{
    uint32_t i = 0;

    while (word < node->inputs[i]->first_word ||
           word - node->inputs[i]->first_word >= node->inputs[i]->width) {
        i++;
        must(i < node->input_count);
    }
    *ret_word = word - node->inputs[i]->first_word;
    return node->inputs[i];
}

struct order_gathered
order_gathered_united(const struct plan_node *node, uint32_t word)
{
    const struct plan_node *input = order_united_input(node, word, &word);

    return order_gathered(input, word);
}

struct order_gathered
order_gathered_input(const struct plan_node *node, uint32_t word)
{
    (void)word;
    return (struct order_gathered){ .elements = node->inputs[0] };
}

bool
order_any(const struct plan_node *node, bool (*is)(const struct plan_node *))
{
    if (is(node))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (order_any(node->inputs[i], is))
            return true;
    return node->body != NULL && order_any(node->body->root, is);
}

struct order_instance *
order_instance_open(const struct plan_graph *graph, const struct order_scope *scope,
                    struct order_services *services)
{
    struct order_instance *instance = tnd_zalloc(1, sizeof *instance);

    instance->graph = graph;
    instance->scope = scope;
    instance->services = services;
    instance->iterator_counts = tnd_zalloc(graph->node_count, sizeof *instance->iterator_counts);
    instance->element_counts = tnd_zalloc(graph->node_count, sizeof *instance->element_counts);
    instance->kept = tnd_zalloc(graph->node_count, sizeof *instance->kept);
    instance->draw_count = graph->draw_count;
    if (graph->draw_count > 0)
        instance->draws = tnd_zalloc(graph->draw_count, sizeof *instance->draws);
    return instance;
}

/* A Keras layer is one object, whatever function calls it: its counter is in no body. */
struct order_instance *
order_instance_open_body(const struct order_iterator *iterator, const struct order_scope *scope)
{
    const struct order_instance *outside = iterator->instance;
    struct order_instance *instance =
        order_instance_open(iterator->node->body, scope, outside->services);

    instance->draws = outside->draws;
    instance->draw_count = outside->draw_count;
    return instance;
}

void
order_instance_close(struct order_instance *instance)
{
    if (instance == NULL)
        return;
    for (uint32_t i = 0; i < instance->graph->node_count; i++)
        if (instance->kept[i].state != NULL)
            instance->kept[i].close(instance->kept[i].state);
    free(instance->iterator_counts);
    free(instance->element_counts);
    if (instance->graph->outside == NULL)
        free(instance->draws);
    free(instance->kept);
    free(instance);
}

/* Without an observer all counts go to one dummy, so that the hot path needs no test. */
static struct tnd_stats_stage *
counters_of(struct order_services *services, const struct plan_node *node)
{
    struct tnd_stats_stage *counters =
        services->counters != NULL ? services->counters[node->index] : NULL;

    return counters != NULL ? counters : &services->unseen;
}

tundish_status
order_open(const struct plan_node *node, struct order_instance *instance,
           struct order_iterator **ret_iterator)
{
    struct order_iterator *iterator;
    tundish_status status;

    node = order_node(node);
    must(node->number < instance->graph->node_count);
    must(node->width >= 1 && node->width <= PLAN_WIDTH_MAX);
    iterator = tnd_zalloc(1, sizeof *iterator + node->order->state_bytes);
    iterator->node = node;
    iterator->ops = node->order;
    iterator->instance = instance;
    iterator->counters = counters_of(instance->services, node);
    iterator->timed_from =
        iterator->counters == &instance->services->unseen ? SIZE_MAX : ORDER_TIMED_MIN;
    iterator->iterator_number = instance->iterator_counts[node->number]++;
    status = node->order->open(iterator);
    if (status != TUNDISH_OK) {
        order_close(iterator);
        return status;
    }
    *ret_iterator = iterator;
    return TUNDISH_OK;
}

tundish_status
order_at_stride(struct order_iterator *input, const uint64_t *indices, size_t index_count,
                uint64_t stride, uint64_t offset, uint64_t *words)
{
    uint64_t wanted[256];
    tundish_status status = TUNDISH_OK;

    for (size_t done = 0; done < index_count && status == TUNDISH_OK;) {
        size_t some = 0;

        for (; some < 256 && done + some < index_count; some++)
            wanted[some] = indices[done + some] * stride + offset;
        status = input->ops->at(input, wanted, some, words + done * input->node->width);
        done += some;
    }
    return status;
}

void
order_close(struct order_iterator *iterator)
{
    if (iterator == NULL)
        return;
    iterator->ops->close(iterator);
    free(iterator->next_error);
    free(iterator);
}

void
order_drop(struct order_iterator **iterator)
{
    order_close(*iterator);
    *iterator = NULL;
}

/* Deliver the elements that came with an END or a failure first, and report that on the next call.
 * The error text is copied: other iterators may fail in between. */
enum order_result
order_next_settle(struct order_iterator *iterator, enum order_result result, size_t *ret_count)
{
    if (result == ORDER_END)
        iterator->next_result = ORDER_END;
    if (*ret_count == 0)
        return result;
    iterator->next_result = result;
    if (result == ORDER_FAILED)
        iterator->next_error = order_failure_keep();
    return ORDER_OK;
}

enum order_result
order_next_held(struct order_iterator *iterator, size_t *ret_count)
{
    *ret_count = 0;
    if (iterator->next_result == ORDER_END)
        return ORDER_END;
    order_failure_tell(iterator->next_error);
    free(iterator->next_error);
    iterator->next_error = NULL;
    iterator->next_result = ORDER_OK;
    return ORDER_FAILED;
}

/* Count the time of this stage alone. A stage does little before it asks its input, so both begin
 * at one reading of the clock. inner_ns adds up the time of the stages it calls; it is subtracted
 * here, and the caller's own sum gets the whole duration. */
enum order_result
order_next_timed(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct order_services *services = iterator->instance->services;
    struct tnd_stats_stage *counters = iterator->counters;
    int64_t outer_ns = services->inner_ns, began_ns = services->now_ns, took_ns;
    enum order_result result;

    if (began_ns == 0)
        began_ns = services->now_ns = tnd_clock_ns();
    services->inner_ns = 0;
    result = iterator->ops->next(iterator, words, max, ret_count);
    took_ns = tnd_clock_ns() - began_ns;
    services->now_ns = 0;
    if (took_ns > services->inner_ns) {
        tnd_stats_add(&counters->busy, (uint64_t)(took_ns - services->inner_ns));
        tnd_stats_observe(&counters->call, (uint64_t)(took_ns - services->inner_ns));
    }
    tnd_stats_add(&counters->calls, 1);
    tnd_stats_add(&counters->errors, result == ORDER_FAILED);
    services->inner_ns = outer_ns + took_ns;
    return result;
}

enum { SKIP_WORDS = 4096 };

/* Pull up to `count` elements and release them. */
static enum order_result
pull_some(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    const struct plan_node *node = iterator->node;
    uint64_t words[SKIP_WORDS];
    size_t room = SKIP_WORDS / node->width;
    size_t taken;
    enum order_result result;

    if (room > count)
        room = (size_t)count;
    result = order_next(iterator, words, room, &taken);
    run_words_release(words, taken, node->width, node->run_words);
    *ret_passed = taken;
    return result;
}

enum order_result
order_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    uint64_t passed = 0;
    enum order_result result = ORDER_OK;

    while (passed < count && result == ORDER_OK) {
        uint64_t some = 0;

        /* A stage may be unable to leap from where it stands (it then passes over none). Elements
         * pulled instead bring it to where it can. */
        if (iterator->ops->pass_over != NULL && !iterator->node->replays &&
            iterator->next_result == ORDER_OK) {
            result = iterator->ops->pass_over(iterator, count - passed, &some);
            if (result == ORDER_END)
                iterator->next_result = ORDER_END;
        }
        if (result == ORDER_OK && some == 0)
            result = pull_some(iterator, count - passed, &some);
        passed += some;
    }
    *ret_passed = passed;
    return result;
}

void
order_spread(uint64_t *words, size_t count, uint32_t from_width, uint32_t to_width,
             uint32_t first_word)
{
    /* Go backwards, since the wider elements overwrite those after them. Elements have few words:
     * calls to copy and clear them cost more than the words. */
    for (size_t i = count; i-- > 0;) {
        const uint64_t *from = words + i * from_width;
        uint64_t *to = words + i * to_width;

        for (uint32_t k = to_width; k-- > 0;)
            to[k] = k >= first_word && k - first_word < from_width ? from[k - first_word] : 0;
    }
}

tundish_status
order_room(const struct order_iterator *iterator, const char *parameter, uint64_t elements,
           uint64_t bytes_each)
{
    struct tnd_room room;

    if (tnd_segment_memory_holds(elements, bytes_each, iterator->instance->services->memory_limit,
                                 &room))
        return TUNDISH_OK;
    return order_fail(iterator, TUNDISH_E_MEMORY,
                      "%" PRIu64 " elements need %" PRIu64 " bytes, but there is room for %" PRIu64
                      ": use a smaller %s, or allow more memory (deliver.memory_limit)",
                      elements, room.wanted_bytes, room.limit_bytes, parameter);
}

/* Grow geometrically, but let the memory limit cut the growth: a stage fails only if the elements
 * it needs now do not fit. */
tundish_status
order_grow(const struct order_iterator *iterator, const char *parameter,
           const struct order_growth *growth, size_t *ret_room)
{
    uint64_t room = growth->room > UINT64_MAX / 2 ? UINT64_MAX : 2 * growth->room;
    struct tnd_room memory;

    if (order_room(iterator, parameter, growth->needed, growth->bytes_each) != TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    room = room < growth->first ? growth->first : room;
    room = room > growth->at_most ? growth->at_most : room;
    room = room < growth->needed ? growth->needed : room;
    if (!tnd_segment_memory_holds(room, growth->bytes_each,
                                  iterator->instance->services->memory_limit, &memory))
        room = memory.limit_bytes / growth->bytes_each;
    *ret_room = room < growth->needed ? growth->needed : room;
    return TUNDISH_OK;
}

tundish_status
order_fail(const struct order_iterator *iterator, tundish_status status, const char *format, ...)
{
    const struct plan_node *node = iterator->node;
    const struct spec_stage *stage = node->stage;
    va_list arguments;
    char *text;

    va_start(arguments, format);
    tnd_must_have(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    if (stage != NULL)
        tnd_fail(status, "%s:%u:%u: %s: %s", stage->file->path, stage->line, stage->column,
                 node->name, text);
    else
        tnd_fail(status, "%s: %s", node->name, text);
    free(text);
    return status;
}
