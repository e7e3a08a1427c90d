/* order_cache.c - the elements of the first pass that was read to its end, in all later ones.
 *
 * What is kept is references, by the dataset object. Whether an iterator reads or writes is decided
 * when it is made, as in tf.data; a pass that is not read to its end leaves nothing. So a shuffle
 * above is frozen, and no iterator of the input is made any more.
 *
 * A place does not hold the references. What is counted (element_counts) is 1 more than the number
 * of the pass that was kept, so that whoever resumes makes that pass again.
 */
#include "order/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* Elements, by the dataset object once they are all there. */
struct cached {
    uint64_t *words;
    uint64_t count, room;
    uint32_t width;
    uint64_t run_words;
};

struct cache {
    struct order_iterator *input; /* NULL: this one reads */
    struct cached *cached;        /* what it reads, or has written so far */
    uint64_t at;
};

enum { ROOM_AT_FIRST = 1024 };

static struct cache *
state_of(struct order_iterator *iterator)
{
    return (struct cache *)iterator->state;
}

static void
cached_close(void *state)
{
    struct cached *cached = state;

    if (cached == NULL)
        return;
    run_words_release(cached->words, cached->count, cached->width, cached->run_words);
    free(cached->words);
    free(cached);
}

/* Let everything before the cache count from 0 again: only the cache makes iterators of it. */
static void
count_anew(struct order_instance *instance, const struct plan_node *node)
{
    instance->iterator_counts[node->number] = 0;
    instance->element_counts[node->number] = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        count_anew(instance, node->inputs[i]);
}

static tundish_status
cache_open(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);
    const struct plan_node *node = iterator->node;
    uint64_t kept_pass = iterator->instance->element_counts[node->number];

    cache->cached = iterator->instance->kept[node->number].state;
    if (cache->cached != NULL)
        return TUNDISH_OK;
    if (kept_pass > 1)
        return order_fail(iterator, TUNDISH_E_PLACE,
                          "the place was taken behind a cache that pass %" PRIu64 " had filled; "
                          "only the first can be made again",
                          kept_pass);
    if (kept_pass == 1)
        count_anew(iterator->instance, node->inputs[0]);
    cache->cached = tnd_zalloc(1, sizeof *cache->cached);
    cache->cached->width = node->width;
    cache->cached->run_words = node->run_words;
    return order_open(node->inputs[0], iterator->instance, &cache->input);
}

static void
append(struct cached *cached, const uint64_t *words, size_t count)
{
    while (cached->count + count > cached->room) {
        cached->room = cached->room == 0 ? ROOM_AT_FIRST : 2 * cached->room;
        cached->words =
            tnd_realloc(cached->words, cached->room, cached->width * sizeof *cached->words);
    }
    memcpy(cached->words + cached->count * cached->width, words,
           count * cached->width * sizeof *words);
    cached->count += count;
    run_words_retain(words, count, cached->width, cached->run_words);
}

/* The first to get to the end is kept; another's pass is not needed. */
static void
keep(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);
    struct order_kept *kept = &iterator->instance->kept[iterator->node->number];
    uint64_t *kept_pass = &iterator->instance->element_counts[iterator->node->number];

    if (kept->state == NULL) {
        *kept = (struct order_kept){ .state = cache->cached, .close = cached_close };
        if (*kept_pass == 0)
            *kept_pass = iterator->iterator_number + 1;
    } else {
        cached_close(cache->cached);
    }
    cache->cached = NULL;
    order_drop(&cache->input);
}

static enum order_result
cache_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct cache *cache = state_of(iterator);
    struct cached *cached = cache->cached;
    enum order_result result;

    if (cache->input != NULL) {
        result = order_next(cache->input, words, max, ret_count);
        append(cached, words, *ret_count);
        if (result == ORDER_END)
            keep(iterator);
        return result;
    }
    if (cache->at == cached->count)
        return ORDER_END;
    if (max > cached->count - cache->at)
        max = (size_t)(cached->count - cache->at);
    memcpy(words, cached->words + cache->at * cached->width, max * cached->width * sizeof *words);
    run_words_retain(words, max, cached->width, cached->run_words);
    cache->at += max;
    *ret_count = max;
    return ORDER_OK;
}

static void
cache_close(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);

    if (cache->cached != NULL &&
        cache->cached != iterator->instance->kept[iterator->node->number].state)
        cached_close(cache->cached);
    order_close(cache->input);
}

const struct order_ops order_cache = {
    .name = "cache",
    .state_bytes = sizeof(struct cache),
    .open = cache_open,
    .next = cache_next,
    .close = cache_close,
    .counts_elements = true,
};
