/* order_rebatch.c - batches of other sizes, made of rows from consecutive batches. deal_carry is
 * TensorFlow's newer rebatching (RebatchDatasetV2), whose sizes cycle. rebatch has one size or a
 * list of them.
 *
 * The output is a run of pieces (run.h), one for each input batch that gives rows. The row
 * count of an input batch comes from its runs, from the type (rebatch_arguments.rows), or from its
 * content.
 *
 * Landmarks are by batches made: then one batch of the input is held at most.
 */
#include "order/arguments.h"
#include "order/columns.h"
#include "order/noting.h"
#include "order/peek.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

struct rebatch {
    struct order_iterator *input;
    int64_t *sizes;
    size_t size_count, size_at;
    bool drop_remainder;

    uint64_t batch[PLAN_WIDTH_MAX]; /* rows [taken, rows) are left */
    uint64_t taken, rows;           /* equal: no batch is held */
    uint64_t pulled;                /* batches of the input */

    uint64_t *pieces; /* of the batch being made */
    size_t piece_count, piece_room;
    struct order_noting noting; /* counts the batches made */
};

static struct rebatch *
state_of(struct order_iterator *iterator)
{
    return (struct rebatch *)iterator->state;
}

/* Read batch_size: an integer or a list. */
static tundish_status
read_sizes(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct spec_value *value = spec_get(iterator->node->stage, "batch_size");
    const struct spec_value *items = value->kind == SPEC_LIST ? value->items : value;

    rebatch->size_count = value->kind == SPEC_LIST ? value->count : 1;
    rebatch->sizes = tnd_zalloc(rebatch->size_count, sizeof *rebatch->sizes);
    if (rebatch->size_count == 0)
        return order_fail(iterator, TUNDISH_E_PIPELINE, "batch_size must have a size");
    for (size_t i = 0; i < rebatch->size_count; i++) {
        int64_t *size = &rebatch->sizes[i];

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
    order_noting_begin(&rebatch->noting, iterator, false);
    return order_open(iterator->node->inputs[0], iterator->instance, &rebatch->input);
}

/* The size of a slice in RebatchDatasetV2: as even as possible. With the rotation, the slices of
 * all workers on one step add up to one global batch. */
static int64_t
carried_size(const struct rebatch_arguments *arguments, int64_t slice)
{
    int64_t larger = arguments->batch % arguments->slices;

    return arguments->batch / arguments->slices +
           ((slice + arguments->rotation) % arguments->slices < larger);
}

static tundish_status
deal_carry_open(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct rebatch_arguments *arguments = iterator->node->arguments;

    must(arguments->slices > 0);
    rebatch->size_count = (size_t)arguments->slices;
    rebatch->sizes = tnd_alloc(rebatch->size_count * sizeof *rebatch->sizes);
    for (size_t i = 0; i < rebatch->size_count; i++)
        rebatch->sizes[i] = carried_size(arguments, (int64_t)i);
    order_noting_begin(&rebatch->noting, iterator, false);
    return order_open(iterator->node->inputs[0], iterator->instance, &rebatch->input);
}

static void
release_batch(struct rebatch *rebatch, const struct plan_node *input)
{
    run_words_release(rebatch->batch, 1, input->width, input->run_words);
    rebatch->taken = rebatch->rows = 0;
}

static tundish_status
count_rows(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct rebatch_arguments *arguments = iterator->node->arguments;
    const struct plan_node *input = iterator->node->inputs[0];
    bool is_left_out = false;
    tundish_status status;

    if (arguments->rows < 0) {
        status = order_peek_rows(iterator, rebatch->batch, &rebatch->rows, &is_left_out);
        if (is_left_out)
            order_noting_end(&rebatch->noting);
        return status;
    }
    rebatch->rows = (uint64_t)arguments->rows;
    if (rebatch->rows > 0 ||
        run_words_rows(rebatch->batch, input->width, input->run_words, &rebatch->rows))
        return TUNDISH_OK;
    return order_fail(iterator, TUNDISH_E_DATA,
                      "the columns of a batch differ in their number of rows");
}

/* Hold the next batch, unless it has no rows. */
static enum order_result
hold_next(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    size_t count;
    enum order_result result = order_next(rebatch->input, rebatch->batch, 1, &count);
    tundish_status status;

    if (result != ORDER_OK)
        return result;
    rebatch->pulled++;
    rebatch->taken = 0;
    status = count_rows(iterator);
    if (status != TUNDISH_OK || rebatch->rows == 0)
        release_batch(rebatch, input);
    return status == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
}

/* Hold a batch that has rows: empty ones are skipped, as they would give an empty piece. */
static enum order_result
fetch(struct order_iterator *iterator)
{
    const struct rebatch *rebatch = state_of(iterator);
    enum order_result result = ORDER_OK;

    while (rebatch->taken == rebatch->rows && result == ORDER_OK)
        result = hold_next(iterator);
    return result;
}

/* Words of a piece: those of the element, and if content is cut the first row and the row count. */
static uint32_t
piece_width(const struct plan_node *node)
{
    return node->inputs[0]->width + (node->cuts_content ? 2 : 0);
}

static void
write_piece(const struct rebatch *rebatch, const struct plan_node *node, uint64_t rows,
            uint64_t *piece)
{
    const struct plan_node *input = node->inputs[0];

    if (!node->cuts_content) {
        run_words_slice(rebatch->batch, input->width, input->run_words, rebatch->taken, rows,
                        piece);
        return;
    }
    memcpy(piece, rebatch->batch, input->width * sizeof *piece);
    run_words_retain(piece, 1, input->width, input->run_words);
    piece[input->width] = rebatch->taken;
    piece[input->width + 1] = rows;
}

static void
release_pieces(struct rebatch *rebatch, const struct plan_node *node)
{
    run_words_release(rebatch->pieces, rebatch->piece_count, piece_width(node),
                      node->inputs[0]->run_words);
    rebatch->piece_count = 0;
}

static void
take_piece(struct rebatch *rebatch, const struct plan_node *node, uint64_t rows)
{
    uint32_t width = piece_width(node);

    if (rebatch->piece_count == rebatch->piece_room) {
        rebatch->piece_room = rebatch->piece_room == 0 ? 4 : 2 * rebatch->piece_room;
        rebatch->pieces =
            tnd_realloc(rebatch->pieces, rebatch->piece_room, width * sizeof *rebatch->pieces);
    }
    write_piece(rebatch, node, rows, rebatch->pieces + rebatch->piece_count * width);
    rebatch->piece_count++;
    rebatch->taken += rows;
    if (rebatch->taken == rebatch->rows)
        release_batch(rebatch, node->inputs[0]);
}

/* So many batches were pulled; and how many rows of the last one are taken, if some are left? */
static void
note(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);
    uint64_t made = rebatch->noting.passed;
    struct order_state_writer *state;

    if (!order_noting_wants(&rebatch->noting, iterator, made))
        return;
    state = order_noting_state(iterator);
    order_state_put(state, rebatch->pulled);
    order_state_put(state, rebatch->taken < rebatch->rows ? rebatch->taken : 0);
    order_noting_note(&rebatch->noting, iterator, made, state);
}

static enum order_result
next_batch(struct order_iterator *iterator, uint64_t *word)
{
    struct rebatch *rebatch = state_of(iterator);
    const struct plan_node *node = iterator->node;
    uint64_t wanted = (uint64_t)rebatch->sizes[rebatch->size_at];
    uint64_t found = 0;

    while (found < wanted) {
        enum order_result result = fetch(iterator);
        uint64_t rows;

        if (result == ORDER_FAILED)
            order_noting_end(&rebatch->noting);
        /* A failure discards the rows that were already in the new batch. */
        if (result == ORDER_FAILED || (result == ORDER_END && rebatch->drop_remainder))
            release_pieces(rebatch, node);
        if (result == ORDER_END && rebatch->piece_count > 0)
            break;
        if (result != ORDER_OK)
            return result;
        rows = rebatch->rows - rebatch->taken;
        if (rows > wanted - found)
            rows = wanted - found;
        take_piece(rebatch, node, rows);
        found += rows;
    }
    rebatch->size_at = (rebatch->size_at + 1) % rebatch->size_count;
    *word = run_word(run_join(rebatch->pieces, rebatch->piece_count, piece_width(node),
                              node->inputs[0]->run_words, found));
    rebatch->piece_count = 0;
    if (++rebatch->noting.passed == rebatch->noting.next)
        note(iterator);
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

/* Hold the batch that a landmark says has `taken` rows taken, and others left. */
static enum order_result
hold_again(struct order_iterator *iterator, uint64_t taken)
{
    struct rebatch *rebatch = state_of(iterator);
    enum order_result result = hold_next(iterator);

    if (result == ORDER_FAILED)
        return result;
    if (result == ORDER_END || taken >= rebatch->rows) {
        order_fail(iterator, TUNDISH_E_DATA,
                   "an earlier run had a batch of more than %" PRIu64
                   " rows: empty the cache folder if files have changed",
                   taken);
        return ORDER_FAILED;
    }
    rebatch->taken = taken;
    return ORDER_OK;
}

static enum order_result
go_to(struct order_iterator *iterator, uint64_t pulled, uint64_t taken)
{
    struct rebatch *rebatch = state_of(iterator);

    rebatch->pulled = pulled - (taken > 0);
    if (rebatch->pulled > 0 &&
        order_noting_skip(iterator, rebatch->input, rebatch->pulled) != TUNDISH_OK)
        return ORDER_FAILED;
    return taken > 0 ? hold_again(iterator, taken) : ORDER_OK;
}

static enum order_result
rebatch_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct rebatch *rebatch = state_of(iterator);
    struct order_landmark landmark;
    struct order_state_reader reader;
    uint64_t pulled, taken;

    if (rebatch->noting.passed > 0 || rebatch->pulled > 0 ||
        !order_noting_before(&rebatch->noting, count, &landmark))
        return ORDER_OK;
    reader = order_landmark_read(&landmark);
    pulled = order_state_get(&reader);
    taken = order_state_get(&reader);
    if (!order_state_is_whole(&reader) || (taken > 0 && pulled == 0) ||
        landmark.passed != landmark.taken)
        return ORDER_OK;
    if (go_to(iterator, pulled, taken) != ORDER_OK)
        return ORDER_FAILED;
    rebatch->size_at = landmark.passed % rebatch->size_count;
    order_noting_stand_at(&rebatch->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}

static uint64_t
rebatch_surely(struct order_iterator *iterator)
{
    const struct rebatch *rebatch = state_of(iterator);

    return rebatch->noting.passed == 0 && rebatch->pulled == 0
               ? order_noting_reach(&rebatch->noting)
               : 0;
}

static struct order_gathered
rebatch_gathered(const struct plan_node *node, uint32_t word)
{
    (void)word;
    return (struct order_gathered){ .elements = node->inputs[0], .in_pieces = true };
}

static void
rebatch_close(struct order_iterator *iterator)
{
    struct rebatch *rebatch = state_of(iterator);

    if (rebatch->taken < rebatch->rows)
        release_batch(rebatch, iterator->node->inputs[0]);
    release_pieces(rebatch, iterator->node);
    free(rebatch->pieces);
    free(rebatch->sizes);
    order_noting_end(&rebatch->noting);
    order_close(rebatch->input);
}

/* The requested size, if it is the same for every batch; else -1. */
static int64_t
rebatch_size(const struct plan_node *node)
{
    const struct spec_value *sizes = spec_get(node->stage, "batch_size");

    if (sizes->kind != SPEC_LIST || sizes->count == 0)
        return order_literal(node, "batch_size", -1);
    for (uint32_t i = 0; i < sizes->count; i++)
        if (sizes->items[i].kind != SPEC_INTEGER ||
            sizes->items[i].integer != sizes->items[0].integer)
            return -1;
    return sizes->items[0].integer;
}

/* The static row count, known only if no batch can be partial: the remainder is dropped, or the
 * input batches have a known row count that is a multiple. */
static int64_t
rebatched_length(const struct order_planning *planning, const struct plan_node *node,
                 const struct schema *input)
{
    int64_t size = planning->may_be_short ? -1 : rebatch_size(node);

    if (size < 1 || order_is_true(node, "drop_remainder"))
        return size;
    for (uint32_t i = 0; i < input->count; i++)
        if (input->columns[i].rank > 0 && input->columns[i].shape[0] >= 0)
            return input->columns[i].shape[0] % size == 0 ? size : -1;
    return -1;
}

/* Ragged columns stay ragged, whatever their rows are. An unbatched input counts as batched from
 * here on. */
static tundish_status
rebatch_columns(const struct order_planning *planning, struct plan_node *node)
{
    int64_t length = rebatched_length(planning, node, &node->inputs[0]->schema);

    order_pass_columns(node);
    if (node->depth == 0)
        node->depth = 1;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status = order_check_rows(planning, node, column);

        if (status != TUNDISH_OK)
            return status;
        if (column->rank > 0)
            column->shape[0] = length;
    }
    return TUNDISH_OK;
}

static void
deal_carry_print(const struct plan_node *node, FILE *file)
{
    const struct rebatch_arguments *arguments = node->arguments;

    fputs("{rows: [", file);
    for (int64_t i = 0; i < arguments->slices; i++)
        fprintf(file, "%s%" PRId64, i > 0 ? ", " : "", carried_size(arguments, i));
    fputs("]} (put in)", file);
}

const struct order_ops order_rebatch = {
    .name = "rebatch",
    .is_noted = true,
    .form = ORDER_REBATCHES,
    .arguments_bytes = sizeof(struct rebatch_arguments),
    .search = ORDER_SEARCH_INPUT,
    .counts_through = true,
    .gathers = "batch_size",
    .state_bytes = sizeof(struct rebatch),
    .open = rebatch_open,
    .next = rebatch_next,
    .close = rebatch_close,
    .pass_over = rebatch_pass_over,
    .surely = rebatch_surely,
    .gathered = rebatch_gathered,
    .columns = rebatch_columns,
};

const struct order_ops order_deal_carry = {
    .name = "deal_carry",
    .is_noted = true,
    .form = ORDER_REBATCHES,
    .arguments_bytes = sizeof(struct rebatch_arguments),
    .search = ORDER_SEARCH_INPUT,
    .counts_through = true,
    .state_bytes = sizeof(struct rebatch),
    .open = deal_carry_open,
    .next = rebatch_next,
    .close = rebatch_close,
    .pass_over = rebatch_pass_over,
    .surely = rebatch_surely,
    .gathered = rebatch_gathered,
    .print = deal_carry_print,
};
