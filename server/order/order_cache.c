/* order_cache.c - keep the elements of the first complete pass and replay them in all later ones.
 *
 * The dataset object keeps references, not content. As in tf.data (MemoryCache), an iterator
 * decides when it is made whether it reads or writes. A pass leaves nothing unless it is read to
 * its end, or to its last element where tf.data knows the cardinality. A shuffle before the cache
 * is thereby frozen: no more iterators of the input are made.
 *
 * A checkpoint does not store the references. It stores element_counts = 1 once a pass is kept. The
 * counts of all stages before the cache are then reset to those at the beginning of that pass (only
 * the cache makes iterators of them), so that a resumed job makes the same pass again.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "order/cardinality.h"
#include "order/rewind.h"

/* The kept elements. The dataset object owns them once the pass is complete, until then the writer.
 */
struct cached {
    uint64_t *words;
    uint64_t count, room;
    uint32_t width;
    uint64_t run_words;
};

struct cache {
    struct order_iterator *input; /* NULL: this iterator reads */
    struct order_iterator *rest;  /* the input of one that has all elements, but not its end */
    uint64_t **counts;            /* of all stages before the cache */
    uint64_t *began;              /* what they were when this pass began */
    size_t count_count;
    struct cached *cached; /* the elements it reads or has written so far */
    int64_t cardinality;   /* of the input; negative: not known */
    uint64_t at;
};

enum { ROOM_AT_FIRST = 1024, AT_ONCE = 1024 };

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

static void
note_counts(const struct order_instance *instance, const struct plan_node *node,
            struct cache *cache)
{
    cache->count_count = order_counts_before(instance, node, NULL);
    cache->counts = tnd_zalloc(cache->count_count, sizeof(uint64_t *));
    cache->began = tnd_zalloc(cache->count_count, sizeof *cache->began);
    order_counts_before(instance, node, cache->counts);
    for (size_t i = 0; i < cache->count_count; i++)
        cache->began[i] = *cache->counts[i];
}

/* Write the counts of note_counts back. */
static void
restore_counts(const struct cache *cache)
{
    for (size_t i = 0; i < cache->count_count; i++)
        *cache->counts[i] = cache->began[i];
}

static tundish_status
cache_open(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);
    const struct plan_node *node = iterator->node;
    cache->cached = iterator->instance->kept[node->number].state;
    if (cache->cached != NULL)
        return TUNDISH_OK;
    note_counts(iterator->instance, node->inputs[0], cache);
    cache->cached = tnd_zalloc(1, sizeof *cache->cached);
    cache->cached->width = node->width;
    cache->cached->run_words = node->run_words;
    cache->cardinality = order_cardinality(node->inputs[0], iterator->instance);
    return order_open(node->inputs[0], iterator->instance, &cache->input);
}

/* Make room for `count` more elements. */
static tundish_status
make_room(const struct order_iterator *iterator, struct cached *cached, size_t count)
{
    const struct order_growth growth = {
        .room = cached->room,
        .first = ROOM_AT_FIRST,
        .needed = cached->count + count,
        .at_most = UINT64_MAX,
        .bytes_each = cached->width * sizeof *cached->words,
    };

    if (count <= cached->room - cached->count)
        return TUNDISH_OK;
    if (order_grow(iterator, "input, or keep it in a file (filename)", &growth, &cached->room) !=
        TUNDISH_OK)
        return TUNDISH_E_MEMORY;
    cached->words = tnd_realloc(cached->words, cached->room, cached->width * sizeof *cached->words);
    return TUNDISH_OK;
}

static void
append(struct cached *cached, const uint64_t *words, size_t count)
{
    if (count == 0)
        return;
    memcpy(cached->words + cached->count * cached->width, words,
           count * cached->width * sizeof *words);
    cached->count += count;
    run_words_retain(words, count, cached->width, cached->run_words);
}

/* Several iterators may write at once (under zip, for example). The first to reach the end is kept,
 * the others are dropped. */
static void
keep_first_pass(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);
    struct order_kept *kept = &iterator->instance->kept[iterator->node->number];

    if (kept->state == NULL) {
        *kept = (struct order_kept){ .state = cache->cached, .close = cached_close };
        iterator->instance->element_counts[iterator->node->number] = 1;
    } else {
        cached_close(cache->cached);
    }
    cache->cached = NULL;
    order_drop(&cache->input);
    restore_counts(cache);
}

/* All elements are here, but END was not requested. tf.data keeps the pass now, and a later
 * iterator must find it. This iterator becomes a reader that stands after the last element. It
 * still asks its input for the end if it is asked itself: in a body the numbers of elements that
 * are passed over there stay taken. */
static void
keep_early(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);

    if (iterator->instance->graph->outside != NULL) {
        cache->rest = cache->input;
        cache->input = NULL;
    }
    keep_first_pass(iterator);
    cache->cached = iterator->instance->kept[iterator->node->number].state;
    cache->at = cache->cached->count;
}

static enum order_result
end(struct cache *cache)
{
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    if (cache->rest != NULL && order_next(cache->rest, words, 1, &count) == ORDER_OK)
        run_words_release(words, count, cache->cached->width, cache->cached->run_words);
    order_drop(&cache->rest);
    return ORDER_END;
}

static enum order_result
cache_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct cache *cache = state_of(iterator);
    struct cached *cached = cache->cached;
    enum order_result result;

    /* An endless pass is never complete: keeping its elements would only fill memory. */
    if (cache->input != NULL && cache->cardinality == CARDINALITY_INFINITE)
        return order_next(cache->input, words, max, ret_count);
    if (cache->input != NULL) {
        if (max > AT_ONCE)
            max = AT_ONCE;
        result = order_next(cache->input, words, max, ret_count);
        if (make_room(iterator, cached, *ret_count) != TUNDISH_OK) {
            run_words_release(words, *ret_count, cached->width, cached->run_words);
            *ret_count = 0;
            return ORDER_FAILED;
        }
        append(cached, words, *ret_count);
        if (result == ORDER_END)
            keep_first_pass(iterator);
        else if (cache->cardinality > 0 && cached->count == (uint64_t)cache->cardinality)
            keep_early(iterator);
        return result;
    }
    if (cache->at == cached->count)
        return end(cache);
    if (max > cached->count - cache->at)
        max = (size_t)(cached->count - cache->at);
    memcpy(words, cached->words + cache->at * cached->width, max * cached->width * sizeof *words);
    run_words_retain(words, max, cached->width, cached->run_words);
    cache->at += max;
    *ret_count = max;
    return ORDER_OK;
}

/* Only a reader can leap: a writer must see every element. */
static enum order_result
cache_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct cache *cache = state_of(iterator);
    uint64_t left;

    *ret_passed = 0;
    if (cache->input != NULL && cache->cardinality == CARDINALITY_INFINITE)
        return order_pass_over(cache->input, count, ret_passed);
    if (cache->input != NULL || cache->cached == NULL)
        return ORDER_OK;
    left = cache->cached->count - cache->at;
    *ret_passed = count < left ? count : left;
    cache->at += *ret_passed;
    return count <= left ? ORDER_OK : end(cache);
}

static void
cache_close(struct order_iterator *iterator)
{
    struct cache *cache = state_of(iterator);
    const struct plan_node *node = iterator->node;

    if (cache->cached != NULL && cache->cached != iterator->instance->kept[node->number].state)
        cached_close(cache->cached);
    /* After a resume the pass is made again although element_counts says it is kept. If it is
     * abandoned here, its counts must still be those of a kept pass. */
    if (cache->input != NULL && iterator->instance->element_counts[node->number] != 0)
        restore_counts(cache);
    order_close(cache->input);
    order_close(cache->rest);
    free(cache->counts);
    free(cache->began);
}

const struct order_ops order_cache = {
    .name = "cache",
    .form = ORDER_PASSES,
    .selection = ORDER_ONLY_ORDERS,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .remembers = true,
    .counts_through = true,
    .in_file = "filename",
    .file_source = "cache_file",
    .state_bytes = sizeof(struct cache),
    .open = cache_open,
    .next = cache_next,
    .close = cache_close,
    .pass_over = cache_pass_over,
    .counts_elements = true,
    .cardinality = order_count_input,
};
