/* order_deal_split.c - the rebatching of the Distributed Input guide: cut each batch of n rows into
 * exactly N slices, one per replica, of ceil(n / N) rows each until no rows are left (later slices
 * may be short or empty). Batches that leave a slice empty can be left out. Each component is cut
 * by its own row count. If only content knows a column's row count (plan_node.cuts_content), a
 * slice is just a number here and content is cut later. Or (even) a batch is filled up until its
 * slices have equally many rows. */
#include "order/arguments.h"
#include "order/order.h"
#include "order/planning.h"

#include <inttypes.h>
#include <string.h>

#include "core/must.h"

struct deal_split {
    struct order_iterator *input;
    uint64_t batch[PLAN_WIDTH_MAX]; /* the one being cut */
    uint64_t slice, slices;         /* slice == slices: no batch is being cut */
    uint64_t first[PLAN_WIDTH_MAX]; /* even: the iterator's first batch that has a row */
    bool has_first;
};

static struct deal_split *
state_of(struct order_iterator *iterator)
{
    return (struct deal_split *)iterator->state;
}

static tundish_status
deal_split_open(struct order_iterator *iterator)
{
    struct deal_split *deal = state_of(iterator);
    const struct slices_arguments *arguments = iterator->node->arguments;

    must(arguments->slices > 0);
    deal->slices = deal->slice = (uint64_t)arguments->slices;
    return order_open(iterator->node->inputs[0], iterator->instance, &deal->input);
}

/* Empty slices are runs too: they still know their batch, whose shape and dtype the content of the
 * slice needs. */
static void
cut_runs(const struct deal_split *deal, const struct plan_node *node, uint64_t *words)
{
    for (uint32_t i = 0; i < node->width; i++) {
        struct run *run = run_of_word(deal->batch[i]);
        uint64_t rows_each, begin, end;

        words[i] = deal->batch[i];
        if ((node->run_words >> i & 1) == 0 || run == NULL)
            continue;
        rows_each = run->row_count / deal->slices + (run->row_count % deal->slices != 0);
        begin = deal->slice * rows_each;
        end = begin + rows_each;
        if (begin > run->row_count)
            begin = run->row_count;
        if (end > run->row_count)
            end = run->row_count;
        words[i] = run_word(run_slice(run, begin, end - begin));
    }
}

static void
write_slice(const struct deal_split *deal, const struct plan_node *node, uint64_t *words)
{
    if (!node->cuts_content) {
        cut_runs(deal, node, words);
        return;
    }
    memcpy(words, deal->batch, (node->width - 1) * sizeof *words);
    run_words_retain(words, 1, node->width, node->run_words);
    words[node->width - 1] = deal->slice;
}

/* Has each slice a row? A batch whose rows only content knows is taken to have enough. */
static bool
fills_slices(const struct deal_split *deal, const struct plan_node *node)
{
    for (uint32_t i = 0; i < node->width && !node->cuts_content; i++) {
        const struct run *run = run_of_word(deal->batch[i]);

        if ((node->run_words >> i & 1) != 0 && run != NULL &&
            !slices_are_filled(run->row_count, deal->slices))
            return false;
    }
    return true;
}

/* Are the rows of both batches elements of the same stages, beside the same words? Numbers by which
 * stages after the batch draw may differ. */
static bool
are_alike(const struct plan_node *input, const uint64_t *one, const uint64_t *other)
{
    uint64_t compared = UINT64_MAX;

    for (const struct plan_node *node = input; node->source == NULL; node = node->inputs[0]) {
        if (node->order == &order_ordinal)
            compared &= ~(UINT64_C(1) << (node->width - 1));
        if (node->order != NULL && node->order->form != ORDER_PASSES)
            break;
    }
    for (uint32_t i = 0; i < input->width; i++) {
        bool is_run = (input->run_words >> i & 1) != 0;

        if (is_run ? (one[i] == 0) != (other[i] == 0)
                   : (compared >> i & 1) != 0 && one[i] != other[i])
            return false;
    }
    return true;
}

/* Fill the batch up until all slices have equally many rows: with rows of the first one, or with
 * its own where those would not be of the same kind. */
static tundish_status
make_even(struct order_iterator *iterator)
{
    const struct plan_node *node = iterator->node;
    struct deal_split *deal = state_of(iterator);
    const uint64_t *from = deal->batch;
    uint64_t rows, missing;

    if (!run_words_rows(deal->batch, node->width, node->run_words, &rows))
        return order_fail(iterator, TUNDISH_E_DATA,
                          "even: repeat: the columns of a batch differ in their number of rows");
    if (!deal->has_first && rows > 0) {
        memcpy(deal->first, deal->batch, sizeof deal->first);
        run_words_retain(deal->first, 1, node->width, node->run_words);
        deal->has_first = true;
    }
    missing = (deal->slices - rows % deal->slices) % deal->slices;
    if (missing > 0 && are_alike(node->inputs[0], deal->first, deal->batch))
        from = deal->first;
    for (uint32_t i = 0; missing > 0 && i < node->width; i++) {
        struct run *run = run_of_word(deal->batch[i]);

        if ((node->run_words >> i & 1) == 0 || run == NULL)
            continue;
        deal->batch[i] = run_word(run_fill(run, run_of_word(from[i]), missing));
        run_release(run);
    }
    return TUNDISH_OK;
}

/* Pull the next batch that is to be cut. */
static enum order_result
pull_batch(struct order_iterator *iterator)
{
    const struct slices_arguments *arguments = iterator->node->arguments;
    const struct plan_node *node = iterator->node;
    struct deal_split *deal = state_of(iterator);

    for (;;) {
        size_t count;
        enum order_result result = order_next(deal->input, deal->batch, 1, &count);

        if (result != ORDER_OK)
            return result;
        if (!arguments->whole_only || fills_slices(deal, node))
            break;
        run_words_release(deal->batch, 1, node->width, node->run_words);
    }
    if (arguments->even && make_even(iterator) != TUNDISH_OK) {
        run_words_release(deal->batch, 1, node->width, node->run_words);
        return ORDER_FAILED;
    }
    deal->slice = 0;
    return ORDER_OK;
}

static enum order_result
deal_split_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct deal_split *deal = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (*ret_count < max) {
        if (deal->slice == deal->slices) {
            enum order_result result = pull_batch(iterator);

            if (result != ORDER_OK)
                return result;
        }
        write_slice(deal, node, words + *ret_count * node->width);
        ++*ret_count;
        if (++deal->slice == deal->slices)
            run_words_release(deal->batch, 1, node->width, node->run_words);
    }
    return ORDER_OK;
}

/* Pass over slices of the batch at hand, which is released after its last one. */
static uint64_t
pass_over_slices(struct deal_split *deal, const struct plan_node *node, uint64_t count)
{
    uint64_t left = deal->slices - deal->slice;

    if (left == 0)
        return 0;
    if (count > left)
        count = left;
    deal->slice += count;
    if (deal->slice == deal->slices)
        run_words_release(deal->batch, 1, node->width, node->run_words);
    return count;
}

/* Is the last batch of the input the only one that may be short? */
static bool
ends_with_the_short_one(const struct plan_node *node)
{
    do
        node = node->inputs[0];
    while (node->order == NULL);
    return node->order->form == ORDER_BATCHES && node->order->selection == ORDER_KEEPS;
}

/* Pass over whole batches in the input. Only the batch that holds the last slice is pulled. */
static enum order_result
deal_split_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    const struct slices_arguments *arguments = iterator->node->arguments;
    struct deal_split *deal = state_of(iterator);
    uint64_t passed, batches = 0;
    enum order_result result = ORDER_OK;

    while (arguments->even && !deal->has_first && deal->slice == deal->slices && result == ORDER_OK)
        result = pull_batch(iterator);
    *ret_passed = passed = pass_over_slices(deal, iterator->node, count);
    if (result != ORDER_OK)
        return result;
    if (arguments->whole_only && !ends_with_the_short_one(iterator->node))
        return ORDER_OK; /* each batch is looked at */
    if (count - passed >= deal->slices)
        result = order_pass_over(deal->input, (count - passed) / deal->slices, &batches);
    passed += batches * deal->slices;
    *ret_passed = passed;
    if (result == ORDER_OK && passed < count) {
        result = pull_batch(iterator);
        if (result == ORDER_OK) {
            *ret_passed += pass_over_slices(deal, iterator->node, count - passed);
        }
    }
    return result;
}

static void
deal_split_close(struct order_iterator *iterator)
{
    struct deal_split *deal = state_of(iterator);

    if (deal->slice < deal->slices)
        run_words_release(deal->batch, 1, iterator->node->width, iterator->node->run_words);
    if (deal->has_first)
        run_words_release(deal->first, 1, iterator->node->width, iterator->node->run_words);
    order_close(deal->input);
}

static void
deal_split_print(const struct plan_node *node, FILE *file)
{
    const struct slices_arguments *arguments = node->arguments;

    fprintf(file, "{slices: %" PRId64 "%s} (put in)", arguments->slices,
            arguments->even ? ", even: repeat" : "");
}

static tundish_status
deal_split_check_inputs(const struct order_planning *planning, const struct plan_node *node)
{
    const struct slices_arguments *arguments = node->arguments;

    if (!arguments->even || !arguments->rows_unknown)
        return TUNDISH_OK;
    while (node->stage == NULL)
        node = node->inputs[0];
    return order_complain(planning->errors, node,
                          "even: repeat: how many rows a batch of %s has is known only once it is "
                          "made: add `unbatch` and `batch: G` after it",
                          node->name);
}

const struct order_ops order_deal_split = {
    .name = "deal_split",
    .form = ORDER_SLICES,
    .arguments_bytes = sizeof(struct slices_arguments),
    .search = ORDER_SEARCH_INPUT,
    .state_bytes = sizeof(struct deal_split),
    .open = deal_split_open,
    .next = deal_split_next,
    .close = deal_split_close,
    .pass_over = deal_split_pass_over,
    .check_inputs = deal_split_check_inputs,
    .print = deal_split_print,
};
