/* bodies.c - the datasets that a function makes for all outer elements, for random access to
 * flat_map. */
#include "order/bodies.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

static tundish_status
open_body(struct body *body, const struct order_iterator *iterator, const uint64_t *outer_words)
{
    const struct plan_node *node = iterator->node;
    tundish_status status;

    status = order_scope_open(iterator->instance, node->inputs[0], outer_words, &body->scope);
    if (status != TUNDISH_OK)
        return status;
    body->instance = order_instance_open_body(iterator, body->scope);
    return order_open(node->body->root, body->instance, &body->iterator);
}

/* Open all datasets before the first is counted, so that their files are scanned in parallel. */
static tundish_status
open_all(struct bodies *bodies, const struct order_iterator *iterator, struct order_iterator *input)
{
    uint32_t width = iterator->node->inputs[0]->width;
    uint64_t *words = tnd_alloc(width * sizeof *words);
    uint64_t count = 0;
    tundish_status status = input->ops->count(input, &count);

    bodies->list = tnd_zalloc(count + 1, sizeof *bodies->list);
    for (uint64_t i = 0; i < count && status == TUNDISH_OK; i++) {
        status = input->ops->at(input, &i, 1, words);
        if (status == TUNDISH_OK)
            status = open_body(&bodies->list[bodies->count], iterator, words);
        if (status == TUNDISH_OK)
            bodies->count++;
        else if (status == TUNDISH_NO_VALUE)
            status = TUNDISH_OK; /* a bad outer element makes no dataset, as in flat_map */
    }
    free(words);
    return status;
}

tundish_status
bodies_open(struct bodies *bodies, const struct order_iterator *iterator,
            struct order_iterator *input)
{
    tundish_status status = open_all(bodies, iterator, input);

    for (uint64_t i = 0; i < bodies->count && status == TUNDISH_OK; i++) {
        struct body *body = &bodies->list[i];
        uint64_t length = 0;

        status = body->iterator->ops->count(body->iterator, &length);
        if (status == TUNDISH_OK &&
            __builtin_add_overflow(body->first, length, &bodies->list[i + 1].first))
            status = order_fail(iterator, TUNDISH_E_DATA, "more elements than 64 bits can count");
    }
    return status;
}

/* The dataset that holds element `index`: binary search over the numbers of their first elements.
 * Among empty datasets it finds the last that begins there, which is the one with elements. */
static const struct body *
body_of(const struct bodies *bodies, uint64_t index)
{
    uint64_t low = 0, high = bodies->count;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (bodies->list[middle].first <= index)
            low = middle;
        else
            high = middle;
    }
    return &bodies->list[low];
}

tundish_status
bodies_at(const struct bodies *bodies, const struct plan_node *node, const uint64_t *indices,
          size_t index_count, uint64_t *words)
{
    const struct plan_node *root = node->body->root, *outer = node->inputs[0];
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < index_count && status == TUNDISH_OK; i++, words += node->width) {
        const struct body *body = body_of(bodies, indices[i]);
        uint64_t index = indices[i] - body->first;

        must(indices[i] < bodies->list[bodies->count].first);
        status = body->iterator->ops->at(body->iterator, &index, 1, words);
        if (status == TUNDISH_OK && node->body->captures) {
            /* The word array now refers to the outer element's runs too, so it owns a count of
             * each. */
            memcpy(words + root->width, body->scope->words, outer->width * sizeof *words);
            run_words_retain(body->scope->words, 1, outer->width, outer->run_words);
        }
    }
    return status;
}

void
bodies_close(struct bodies *bodies, const struct plan_node *node)
{
    /* open_body may have failed half-way in the entry after the last counted one. */
    for (uint64_t i = 0; bodies->list != NULL && i <= bodies->count; i++) {
        order_close(bodies->list[i].iterator);
        order_instance_close(bodies->list[i].instance);
        order_scope_close(bodies->list[i].scope, node->inputs[0]);
    }
    free(bodies->list);
    *bodies = (struct bodies){ 0 };
}
