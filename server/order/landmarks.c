/* landmarks.c - see landmarks.h. */
#include "order/landmarks.h"

#include <stdlib.h>

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
    return list;
}

struct order_landmark_list *
order_landmarks_begin(const struct order_iterator *iterator)
{
    struct order_landmarks *landmarks = iterator->instance->services->landmarks;
    struct order_landmark_list *list = NULL;
    uint64_t pass;

    if (landmarks == NULL || iterator->instance->graph->outside != NULL ||
        order_any(iterator->node, remembers))
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
}

static void
thin(struct order_landmark_list *list)
{
    list->count /= 2;
    list->step *= 2;
    for (uint32_t i = 0; i < list->count; i++)
        list->passed[i] = list->passed[2 * i + 1];
}

void
order_landmarks_note(struct order_landmarks *landmarks, struct order_landmark_list *list,
                     uint64_t taken, uint64_t passed)
{
    if (taken / list->step != list->count + UINT64_C(1) || taken % list->step != 0)
        return;
    if (list->count == LANDMARKS_AT_MOST) {
        thin(list);
        if (taken % list->step != 0)
            return;
    }
    make_room(list);
    list->passed[list->count++] = passed;
    landmarks->noted++;
}

bool
order_landmarks_before(const struct order_landmark_list *list, uint64_t count, uint64_t *ret_taken,
                       uint64_t *ret_passed)
{
    uint32_t first = 0, end = list->count;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;

        if (list->passed[middle] < count)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == 0)
        return false;
    *ret_taken = first * list->step;
    *ret_passed = list->passed[first - 1];
    return true;
}

uint64_t
order_landmarks_reach(const struct order_landmark_list *list)
{
    return list->count > 0 ? list->passed[list->count - 1] : 0;
}

void
order_landmarks_close(struct order_landmarks *landmarks)
{
    for (uint32_t i = 0; i < landmarks->list_count; i++)
        free(landmarks->lists[i].passed);
    *landmarks = (struct order_landmarks){ 0 };
}
