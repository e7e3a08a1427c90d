/* landmarks.c - see landmarks.h. */
#include "order/landmarks.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/order.h"

enum { ROOM_AT_FIRST = 64 };

static bool
remembers(const struct plan_node *node)
{
    return node->order != NULL && node->order->remembers;
}

bool
order_is_noted(const struct plan_node *node)
{
    const struct plan_graph *body = node->body;

    return node->order != NULL && node->order->is_noted && !order_any(node, remembers) &&
           (body == NULL ||
            (order_any(body->root, order_reads_content) && !order_numbers_draws(body)));
}

/* Its later passes may differ from its first. */
static bool
counts(const struct plan_node *node)
{
    return node->random || node->seeds_for != NULL ||
           (node->order != NULL && (node->order->counts_elements || node->order->counts_iterators));
}

static uint64_t
chain_number(uint64_t hash, uint64_t number)
{
    return tnd_hash_farm_chain(hash, &number, sizeof number);
}

/* Only what a place stores: all else begins at zero in a run that resumes. */
static uint64_t
chain_counts(uint64_t hash, const struct order_instance *instance, const struct plan_node *node)
{
    if (counts(node)) {
        hash = chain_number(hash, instance->iterator_counts[node->number]);
        hash = chain_number(hash, instance->element_counts[node->number]);
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        hash = chain_counts(hash, instance, node->inputs[i]);
    return hash;
}

static uint64_t
pass_of(const struct order_iterator *iterator)
{
    const struct order_instance *instance = iterator->instance;
    const struct order_services *services = instance->services;
    uint64_t hash = chain_number(1, iterator->node->number);

    hash = chain_number(hash, services->shard);
    hash = chain_number(hash, services->shard_count);
    if (!order_any(iterator->node, counts))
        return hash;
    hash = chain_number(hash, services->landmarks->seed);
    for (uint32_t i = 0; i < instance->draw_count; i++)
        hash = chain_number(hash, instance->draws[i]);
    return chain_counts(hash, instance, iterator->node);
}

uint64_t
order_landmarks_step(const struct order_landmarks *landmarks)
{
    return landmarks->step != 0 ? landmarks->step : LANDMARK_STEP;
}

/* A list for a new pass: that of the pass which was begun the longest time ago, if all are taken.
 * NULL: all are in use. */
static struct order_landmark_list *
new_list(struct order_landmarks *landmarks, uint64_t pass)
{
    struct order_landmark_list *list = NULL;

    if (landmarks->list_count < LANDMARK_LISTS)
        list = &landmarks->lists[landmarks->list_count++];
    for (uint32_t i = 0; list == NULL && i < LANDMARK_LISTS; i++)
        if (landmarks->lists[i].users == 0)
            list = &landmarks->lists[i];
    for (uint32_t i = 0; list != NULL && i < landmarks->list_count; i++)
        if (landmarks->lists[i].users == 0 && landmarks->lists[i].last_used < list->last_used)
            list = &landmarks->lists[i];
    if (list == NULL)
        return NULL;
    list->pass = pass;
    list->step = order_landmarks_step(landmarks);
    list->count = 0;
    list->are_parts = false;
    free(list->state_ends);
    list->state_ends = NULL;
    return list;
}

struct order_landmark_list *
order_landmarks_begin(const struct order_iterator *iterator)
{
    struct order_landmarks *landmarks = iterator->instance->services->landmarks;
    struct order_landmark_list *list = NULL;
    uint64_t pass;

    if (landmarks == NULL || iterator->instance->graph->outside != NULL ||
        !order_is_noted(iterator->node))
        return NULL;
    pass = pass_of(iterator);
    for (uint32_t i = 0; i < landmarks->list_count; i++)
        if (landmarks->lists[i].pass == pass)
            list = &landmarks->lists[i];
    if (list == NULL)
        list = new_list(landmarks, pass);
    if (list != NULL) {
        list->users++;
        list->last_used = ++landmarks->clock;
    }
    return list;
}

void
order_landmarks_end(struct order_landmark_list *list)
{
    if (list == NULL)
        return;
    must(list->users > 0);
    list->users--;
}

static void
make_room(struct order_landmark_list *list)
{
    if (list->count < list->room)
        return;
    list->room = list->room == 0 ? ROOM_AT_FIRST : 2 * list->room;
    list->passed = tnd_realloc(list->passed, list->room, sizeof *list->passed);
    if (list->state_ends != NULL)
        list->state_ends = tnd_realloc(list->state_ends, list->room, sizeof *list->state_ends);
}

size_t
order_landmarks_state_bytes(const struct order_landmark_list *list)
{
    return list->state_ends != NULL && list->count > 0 ? (size_t)list->state_ends[list->count - 1]
                                                       : 0;
}

static struct order_landmark
landmark_at(const struct order_landmark_list *list, uint32_t index)
{
    struct order_landmark landmark = { (index + UINT64_C(1)) * list->step, list->passed[index],
                                       NULL, 0 };
    uint64_t begin;

    if (list->state_ends == NULL)
        return landmark;
    begin = index > 0 ? list->state_ends[index - 1] : 0;
    landmark.state_bytes = (size_t)(list->state_ends[index] - begin);
    if (landmark.state_bytes > 0)
        landmark.state = list->states + begin;
    return landmark;
}

static void
thin(struct order_landmark_list *list)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < list->count / 2; i++) {
        struct order_landmark kept = landmark_at(list, 2 * i + 1);

        list->passed[i] = kept.passed;
        if (list->state_ends == NULL)
            continue;
        if (kept.state_bytes > 0)
            memmove(list->states + end, kept.state, kept.state_bytes);
        end += kept.state_bytes;
        list->state_ends[i] = end;
    }
    list->count /= 2;
    list->step *= 2;
}

bool
order_landmarks_want(const struct order_landmark_list *list, uint64_t taken)
{
    return taken / list->step == list->count + UINT64_C(1) && taken % list->step == 0;
}

/* Long ones are not kept. */
static size_t
kept_bytes(const struct order_landmark *landmark)
{
    return landmark->state_bytes <= LANDMARK_STATE_BYTES ? landmark->state_bytes : 0;
}

static bool
is_full(const struct order_landmark_list *list, const struct order_landmark *landmark)
{
    size_t bytes = order_landmarks_state_bytes(list) + kept_bytes(landmark);

    return list->count == LANDMARKS_AT_MOST || landmark->state_bytes > list->step ||
           bytes > LANDMARK_LIST_BYTES;
}

static void
add_state(struct order_landmark_list *list, const struct order_landmark *landmark)
{
    size_t begin = order_landmarks_state_bytes(list);
    size_t bytes = kept_bytes(landmark);

    if (begin + bytes > list->state_room) {
        list->state_room = 2 * (begin + bytes);
        list->states = tnd_realloc(list->states, list->state_room, 1);
    }
    if (bytes > 0)
        memcpy(list->states + begin, landmark->state, bytes);
    list->state_ends[list->count] = begin + bytes;
}

void
order_landmarks_note(struct order_landmarks *landmarks, struct order_landmark_list *list,
                     const struct order_landmark *landmark)
{
    bool has_states = landmark->state != NULL;

    if (!order_landmarks_want(list, landmark->taken))
        return;
    while (is_full(list, landmark))
        thin(list);
    if (landmark->taken % list->step != 0)
        return;
    if (has_states && list->count == 0 && list->state_ends == NULL)
        list->state_ends = tnd_alloc((list->room + 1) * sizeof *list->state_ends);
    if (has_states != (list->state_ends != NULL)) /* a file's list of another stage */
        return;
    make_room(list);
    if (has_states)
        add_state(list, landmark);
    list->passed[list->count++] = landmark->passed;
    landmarks->noted++;
}

void
order_landmarks_cut(struct order_landmark_list *list, uint64_t taken)
{
    if (taken / list->step < list->count)
        list->count = (uint32_t)(taken / list->step);
}

bool
order_landmarks_before(const struct order_landmark_list *list, uint64_t count,
                       struct order_landmark *ret_landmark)
{
    uint32_t first = 0, end = list->count;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;

        if (list->passed[middle] < count)
            first = middle + 1;
        else
            end = middle;
    }
    while (first > 0 && list->state_ends != NULL && landmark_at(list, first - 1).state == NULL)
        first--;
    if (first == 0)
        return false;
    *ret_landmark = landmark_at(list, first - 1);
    return true;
}

struct order_state_reader
order_landmark_read(const struct order_landmark *landmark)
{
    struct order_state_reader reader = { landmark->state, landmark->state, false };

    if (landmark->state_bytes > 0)
        reader.end += landmark->state_bytes;
    return reader;
}

bool
order_landmarks_are_there(const struct order_landmarks *landmarks)
{
    for (uint32_t i = 0; i < landmarks->list_count; i++)
        if (landmarks->lists[i].count > 0)
            return true;
    return false;
}

uint64_t
order_landmarks_reach(const struct order_landmark_list *list)
{
    return list->count > 0 ? list->passed[list->count - 1] : 0;
}

void
order_landmarks_empty(struct order_landmark_list *list)
{
    free(list->passed);
    free(list->state_ends);
    free(list->states);
    *list = (struct order_landmark_list){ 0 };
}

void
order_landmarks_close(struct order_landmarks *landmarks)
{
    for (uint32_t i = 0; i < landmarks->list_count; i++)
        order_landmarks_empty(&landmarks->lists[i]);
    order_state_close(&landmarks->writer);
    *landmarks = (struct order_landmarks){ 0 };
}
