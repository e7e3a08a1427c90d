/* order_zip.c - elements of several inputs side by side, until one ends.
 *
 * As in tf.data's ZipDataset, if one input ends or fails in a row, all the others still advance by
 * that row, so they stay in step. Inputs are pulled in chunks if that cannot be observed. If more
 * than one shows it, all of those are pulled one element at a time.
 */
#include "order/cardinality.h"
#include "order/failure.h"
#include "order/order.h"
#include "order/planning.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { CHUNK = 256 };

struct part {
    struct order_iterator *iterator;
    bool shows_lookahead;
    uint64_t *words; /* CHUNK elements; [at, count) are waiting */
    size_t at, count;
};

struct zip {
    uint32_t shown_count; /* parts that show lookahead */
    struct part *parts;
};

static struct zip *
state_of(struct order_iterator *iterator)
{
    return (struct zip *)iterator->state;
}

/* As in tf.data, the iterators of all inputs are made at once. */
static tundish_status
zip_open(struct order_iterator *iterator)
{
    struct zip *zip = state_of(iterator);
    const struct plan_node *node = iterator->node;
    tundish_status status = TUNDISH_OK;

    zip->parts = tnd_zalloc(node->input_count, sizeof *zip->parts);
    for (uint32_t i = 0; i < node->input_count && status == TUNDISH_OK; i++) {
        struct part *part = &zip->parts[i];

        part->shows_lookahead = order_shows_lookahead(node->inputs[i]);
        part->words = tnd_alloc(CHUNK * node->inputs[i]->width * sizeof *part->words);
        zip->shown_count += part->shows_lookahead;
        status = order_open(node->inputs[i], iterator->instance, &part->iterator);
    }
    return status;
}

static enum order_result
refill(struct part *part, size_t max)
{
    part->at = part->count = 0;
    return order_next(part->iterator, part->words, max < CHUNK ? max : CHUNK, &part->count);
}

/* Input `culprit` ended or failed in this row: advance the others by it. True if an input before
 * the culprit ends in the same row, which ZipDataset reports as the end. */
static bool
advance_others(struct zip *zip, const struct plan_node *node, uint32_t culprit)
{
    bool ended = false;

    for (uint32_t i = 0; i < node->input_count; i++) {
        struct part *part = &zip->parts[i];
        const struct plan_node *input = node->inputs[i];

        if (i == culprit)
            continue;
        if (part->at == part->count && refill(part, 1) == ORDER_END)
            ended |= i < culprit;
        if (part->at == part->count)
            continue;
        run_words_release(part->words + part->at * input->width, 1, input->width, input->run_words);
        part->at++;
    }
    return ended;
}

static enum order_result
end_row(struct zip *zip, const struct plan_node *node, uint32_t culprit, enum order_result result)
{
    struct order_failure *failure = result == ORDER_FAILED ? order_failure_keep() : NULL;

    if (advance_others(zip, node, culprit))
        result = ORDER_END;
    if (failure != NULL)
        order_failure_tell(failure);
    free(failure);
    return result;
}

/* Make sure that every part has an element waiting. *ret_ready: how many all of them have, at most
 * `max`. Parts whose lookahead is unobservable go first. A single part that shows it may then be
 * pulled as far as they reach. */
static enum order_result
refill_all(struct order_iterator *iterator, size_t max, size_t *ret_ready)
{
    struct zip *zip = state_of(iterator);
    const struct plan_node *node = iterator->node;
    size_t ready = max;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < node->input_count; i++) {
            struct part *part = &zip->parts[i];
            enum order_result result = ORDER_OK;

            if (part->shows_lookahead != (pass == 1))
                continue;
            if (part->at == part->count)
                result = refill(part, pass == 1 && zip->shown_count > 1 ? 1 : ready);
            if (result != ORDER_OK)
                return end_row(zip, node, i, result);
            if (ready > part->count - part->at)
                ready = part->count - part->at;
        }
    *ret_ready = ready;
    return ORDER_OK;
}

/* A row of a source has two words: the constant width lets the compiler keep them in registers. */
static void
copy_column(uint64_t *to, uint32_t to_width, const uint64_t *from, uint32_t width, size_t count)
{
    if (width == 2)
        for (size_t i = 0; i < count; i++) {
            to[i * to_width] = from[2 * i];
            to[i * to_width + 1] = from[2 * i + 1];
        }
    else
        for (size_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < width; k++)
                to[i * to_width + k] = from[i * width + k];
}

static enum order_result
zip_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct zip *zip = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (*ret_count < max) {
        size_t ready;
        enum order_result result = refill_all(iterator, max - *ret_count, &ready);

        if (result != ORDER_OK)
            return result;
        for (uint32_t i = 0; i < node->input_count; i++) {
            struct part *part = &zip->parts[i];
            const struct plan_node *input = node->inputs[i];

            copy_column(words + *ret_count * node->width + input->first_word, node->width,
                        part->words + part->at * input->width, input->width, ready);
            part->at += ready;
        }
        *ret_count += ready;
    }
    return ORDER_OK;
}

/* Pass over `count` elements of one part, beginning with those that are waiting. */
static enum order_result
pass_over_part(struct part *part, const struct plan_node *input, uint64_t count,
               uint64_t *ret_passed)
{
    size_t waiting = part->count - part->at;
    uint64_t passed = 0;
    enum order_result result = ORDER_OK;

    if (waiting > count)
        waiting = (size_t)count;
    run_words_release(part->words + part->at * input->width, waiting, input->width,
                      input->run_words);
    part->at += waiting;
    if (waiting < count)
        result = order_pass_over(part->iterator, count - waiting, &passed);
    *ret_passed = waiting + passed;
    return result;
}

/* Pass over each part by itself. At the end the longer parts are then further than tf.data would
 * pull them, so this is done only if that is unobservable. */
static enum order_result
zip_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct zip *zip = state_of(iterator);
    const struct plan_node *node = iterator->node;
    enum order_result result = ORDER_OK;
    uint64_t least = count;

    *ret_passed = 0;
    if (zip->shown_count > 0)
        return ORDER_OK;
    for (uint32_t i = 0; i < node->input_count && result != ORDER_FAILED; i++) {
        uint64_t passed;
        enum order_result one = pass_over_part(&zip->parts[i], node->inputs[i], least, &passed);

        if (one != ORDER_OK)
            result = one;
        if (passed < least)
            least = passed;
    }
    *ret_passed = least;
    return result;
}

static void
zip_close(struct order_iterator *iterator)
{
    struct zip *zip = state_of(iterator);
    const struct plan_node *node = iterator->node;

    for (uint32_t i = 0; zip->parts != NULL && i < node->input_count; i++) {
        struct part *part = &zip->parts[i];
        const struct plan_node *input = node->inputs[i];

        run_words_release(part->words + part->at * input->width, part->count - part->at,
                          input->width, input->run_words);
        free(part->words);
        order_close(part->iterator);
    }
    free(zip->parts);
}

static tundish_status
zip_columns(const struct order_planning *planning, struct plan_node *node)
{
    node->depth = node->inputs[0]->depth;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct schema *input = &node->inputs[i]->schema;

        if (node->inputs[i]->depth < node->depth)
            node->depth = node->inputs[i]->depth;
        for (uint32_t k = 0; k < input->count; k++) {
            if (schema_find(&node->schema, input->columns[k].name) >= 0)
                return order_complain(planning->errors, node,
                                      "zip: two datasets have a column '%s': rename one (name: of "
                                      "the source, or rename)",
                                      input->columns[k].name);
            schema_pass(&node->schema, input, k)->passed_from = -1;
        }
    }
    return TUNDISH_OK;
}

static int64_t
zip_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t least = CARDINALITY_INFINITE;
    bool all_known = true;

    for (uint32_t i = 0; i < node->input_count; i++) {
        int64_t count = order_count(node->inputs[i], counting);

        all_known &= count != CARDINALITY_UNKNOWN;
        if (count >= 0 && (least < 0 || count < least))
            least = count;
    }
    return all_known || (counting->at_most && least >= 0) ? least : CARDINALITY_UNKNOWN;
}

const struct order_ops order_zip = {
    .name = "zip",
    .form = ORDER_ZIPS,
    .alike = ORDER_ALIKE_UNCUT,
    .search = ORDER_SEARCH_INPUTS,
    .batch_size = ORDER_SIZE_INPUTS,
    .state_bytes = sizeof(struct zip),
    .open = zip_open,
    .next = zip_next,
    .close = zip_close,
    .pass_over = zip_pass_over,
    .gathered = order_gathered_united,
    .columns = zip_columns,
    .is_endless = order_all_are_endless,
    .cardinality = zip_cardinality,
};
