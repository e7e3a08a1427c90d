/* order_rebatch.c - batches of other sizes: rows are joined across batches. deal_carry is
 * TensorFlow's newer rebatching, whose sizes go round; rebatch has one.
 *
 * What comes out is a joined run (run.h): each batch that a new one takes rows from gives one
 * piece.
 */
#include "order/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

struct rebatch {
    struct order_iterator *input;
    const int64_t *sizes;
    int64_t *own_sizes;
    size_t size_count, size_at;
    bool drop_remainder;

    uint64_t batch[PLAN_WIDTH_MAX]; /* rows from `taken` on are left */
    uint64_t taken, rows;           /* equal: there is none */

    uint64_t *pieces; /* of the batch being made */
    size_t piece_count, piece_room;
};

static struct rebatch *
state_of(struct order_iterator *iterator)
{
    return (struct rebatch *)iterator->state;
}

/* One size, or a list of them. */
static tundish_status
read_sizes(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct spec_value *value = spec_get(iterator->node->stage, "batch_size");
    const struct spec_value *items = value->kind == SPEC_LIST ? value->items : value;

    rebatch->size_count = value->kind == SPEC_LIST ? value->count : 1;
    rebatch->own_sizes = tnd_zalloc(rebatch->size_count, sizeof *rebatch->own_sizes);
    rebatch->sizes = rebatch->own_sizes;
    if (rebatch->size_count == 0)
        return order_fail(iterator, TUNDISH_E_PIPELINE, "batch_size must have a size");
    for (size_t i = 0; i < rebatch->size_count; i++) {
        int64_t *size = &rebatch->own_sizes[i];

        if (order_value_int(iterator->instance, &items[i], size) != TUNDISH_OK)
            return order_fail(iterator, TUNDISH_E_PIPELINE, "batch_size: %s", tnd_error_text());
        if (*size <= 0)
            return order_fail(iterator, TUNDISH_E_PIPELINE,
                              "batch_size must be greater than zero, not %" PRId64, *size);
    }
    return TUNDISH_OK;
}

static tundish_status
rebatch_open(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    tundish_status status = read_sizes(iterator);

    if (status != TUNDISH_OK)
        return status;
    rebatch->drop_remainder = spec_bool(iterator->node->stage, "drop_remainder");
    return order_open(iterator->node->inputs[0], iterator->instance, &rebatch->input);
}

static tundish_status
deal_carry_open(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *node = iterator->node;

    must(node->numbers[0] > 0 && node->sizes != NULL);
    rebatch->sizes = node->sizes;
    rebatch->size_count = (size_t)node->numbers[0];
    return order_open(node->inputs[0], iterator->instance, &rebatch->input);
}

static void
release_batch(struct rebatch *rebatch, const struct plan_node *input)
{
    run_words_release(rebatch->batch, 1, input->width, input->run_words);
    rebatch->taken = rebatch->rows = 0;
}

static void
release_pieces(struct rebatch *rebatch, const struct plan_node *input)
{
    run_words_release(rebatch->pieces, rebatch->piece_count, input->width, input->run_words);
    rebatch->piece_count = 0;
}

/* The next batch that has rows. */
static enum order_result
fetch(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    while (rebatch->taken == rebatch->rows) {
        size_t count;
        enum order_result result = order_next(rebatch->input, rebatch->batch, 1, &count);

        if (result != ORDER_OK)
            return result;
        rebatch->taken = 0;
        if (!run_words_rows(rebatch->batch, input->width, input->run_words, &rebatch->rows)) {
            release_batch(rebatch, input);
            order_fail(iterator, TUNDISH_E_DATA,
                       "the components of a batch do not all have the same number of rows");
            return ORDER_FAILED;
        }
        if (rebatch->rows == 0)
            release_batch(rebatch, input);
    }
    return ORDER_OK;
}

static void
take_piece(struct rebatch *rebatch, const struct plan_node *input, uint64_t rows)
{
    if (rebatch->piece_count == rebatch->piece_room) {
        rebatch->piece_room = rebatch->piece_room == 0 ? 4 : 2 * rebatch->piece_room;
        rebatch->pieces = tnd_realloc(rebatch->pieces, rebatch->piece_room,
                                      input->width * sizeof *rebatch->pieces);
    }
    run_words_slice(rebatch->batch, input->width, input->run_words, rebatch->taken, rows,
                    rebatch->pieces + rebatch->piece_count * input->width);
    rebatch->piece_count++;
    rebatch->taken += rows;
    if (rebatch->taken == rebatch->rows)
        release_batch(rebatch, input);
}

static enum order_result
next_batch(struct order_iterator *iterator, uint64_t *word)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    uint64_t wanted = (uint64_t)rebatch->sizes[rebatch->size_at];
    uint64_t found = 0;

    while (found < wanted) {
        enum order_result result = fetch(iterator);
        uint64_t rows;

        if (result == ORDER_FAILED || (result == ORDER_END && rebatch->drop_remainder))
            release_pieces(rebatch, input);
        if (result == ORDER_END && rebatch->piece_count > 0)
            break;
        if (result != ORDER_OK)
            return result;
        rows = rebatch->rows - rebatch->taken;
        if (rows > wanted - found)
            rows = wanted - found;
        take_piece(rebatch, input, rows);
        found += rows;
    }
    rebatch->size_at = (rebatch->size_at + 1) % rebatch->size_count;
    *word =
        run_word(run_join(rebatch->pieces, rebatch->piece_count, input->width, input->run_words));
    rebatch->piece_count = 0;
    return ORDER_OK;
}

static enum order_result
rebatch_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    enum order_result result = ORDER_OK;

    while (*ret_count < max && result == ORDER_OK) {
        result = next_batch(iterator, &words[*ret_count]);
        *ret_count += result == ORDER_OK;
    }
    return result;
}

static struct order_gathered
rebatch_gathered(const struct plan_node *node, uint32_t word)
{
    (void)word;
    return (struct order_gathered){ .elements = node->inputs[0], .joined = true };
}

static void
rebatch_close(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    if (rebatch->taken < rebatch->rows)
        release_batch(rebatch, input);
    release_pieces(rebatch, input);
    free(rebatch->pieces);
    free(rebatch->own_sizes);
    order_close(rebatch->input);
}

const struct order_ops order_rebatch = {
    .name = "rebatch",
    .state_bytes = sizeof(struct rebatch),
    .open = rebatch_open,
    .next = rebatch_next,
    .close = rebatch_close,
    .gathered = rebatch_gathered,
};

const struct order_ops order_deal_carry = {
    .name = "deal_carry",
    .state_bytes = sizeof(struct rebatch),
    .open = deal_carry_open,
    .next = rebatch_next,
    .close = rebatch_close,
    .gathered = rebatch_gathered,
};
