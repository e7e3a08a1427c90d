/* order_unbatch.c - the rows of each batch, one by one.
 *
 * The rows of a batch that the order made are in its runs: the words of a row (order_row_width)
 * replace each run word, other words are repeated. If only content has the rows
 * (plan_node.cuts_content), a row is the element followed by the row's number.
 */
#include "order/cardinality.h"
#include "order/columns.h"
#include "order/noting.h"
#include "order/peek.h"

#include <string.h>

#include "core/must.h"

struct unbatch {
    struct order_iterator *input;
    uint64_t batch[PLAN_WIDTH_MAX];
    uint64_t row, rows; /* equal: no batch is held */
    uint64_t taken;     /* batches */
    struct order_noting noting;
};

static struct unbatch *
state_of(struct order_iterator *iterator)
{
    return (struct unbatch *)iterator->state;
}

static tundish_status
unbatch_open(struct order_iterator *iterator)
{
    struct unbatch *unbatch = state_of(iterator);

    order_noting_begin(&unbatch->noting, iterator, true);
    return order_open(iterator->node->inputs[0], iterator->instance, &unbatch->input);
}

/* Where to write rows: the first one at `words`, each next one `stride` words later. One word of
 * the batch fills a few words of each row. */
struct rows_out {
    uint64_t *words;
    uint32_t stride;
};

static uint32_t write_rows(const struct plan_node *node, const uint64_t *element, uint64_t begin,
                           uint64_t count, struct rows_out out);

static void
write_plain_run(const struct run *run, uint64_t begin, uint64_t count, struct rows_out out)
{
    const uint64_t *from = run->words + begin * run->width;

    run_words_retain(from, count, run->width, run->run_words);
    for (uint64_t i = 0; i < count; i++)
        memcpy(out.words + i * out.stride, from + i * run->width, run->width * sizeof *from);
}

/* Find the pieces that hold the rows. A piece is an element of an earlier stage and is taken apart
 * by that stage's layout, hence the recursion. */
static void
write_pieces(const struct plan_node *elements, const struct run *run, uint64_t begin,
             uint64_t count, struct rows_out out)
{
    for (uint64_t i = 0; i < run->element_count && count > 0; i++) {
        const uint64_t *piece = run->words + i * run->width;
        uint64_t rows, some;

        must(run_words_rows(piece, run->width, run->run_words, &rows));
        if (begin >= rows) {
            begin -= rows;
            continue;
        }
        some = rows - begin < count ? rows - begin : count;
        write_rows(elements, piece, begin, some, out);
        out.words += some * out.stride;
        count -= some;
        begin = 0;
    }
}

/* Write the rows of one run word. Without a run the word belongs to another branch of concatenate
 * than this element: write zeros. */
static void
write_run(const struct plan_node *node, uint32_t word, const struct run *run, uint64_t begin,
          uint64_t count, struct rows_out out)
{
    uint32_t width = order_row_width(node, word);

    if (run == NULL)
        for (uint64_t i = 0; i < count; i++)
            memset(out.words + i * out.stride, 0, width * sizeof *out.words);
    else if (run->in_pieces)
        write_pieces(order_gathered(node, word).elements, run, begin, count, out);
    else
        write_plain_run(run, begin, count, out);
}

/* Write rows [begin, begin + count) of an element. Returns the words of a row. */
static uint32_t
write_rows(const struct plan_node *node, const uint64_t *element, uint64_t begin, uint64_t count,
           struct rows_out out)
{
    uint32_t first_word = 0;

    for (uint32_t i = 0; i < node->width; i++) {
        struct rows_out there = { .words = out.words + first_word, .stride = out.stride };

        if ((node->run_words >> i & 1) != 0) {
            write_run(node, i, run_of_word(element[i]), begin, count, there);
            first_word += order_row_width(node, i);
            continue;
        }
        for (uint64_t k = 0; k < count; k++)
            there.words[k * out.stride] = element[i];
        first_word++;
    }
    return first_word;
}

static void
write_numbered(const struct plan_node *input, const uint64_t *element, uint64_t begin,
               uint64_t count, struct rows_out out)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(out.words, element, input->width * sizeof *element);
        run_words_retain(element, 1, input->width, input->run_words);
        out.words[input->width] = begin + i;
        out.words += out.stride;
    }
}

/* All rows of the batches taken have been given. */
static void
note(struct order_iterator *iterator)
{
    struct unbatch *unbatch = state_of(iterator);

    if (order_noting_wants(&unbatch->noting, iterator, unbatch->taken))
        order_noting_note(&unbatch->noting, iterator, unbatch->taken, NULL);
}

static tundish_status
count_rows(struct order_iterator *iterator, bool *ret_left_out)
{
    struct unbatch *unbatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    if (iterator->node->cuts_content)
        return order_peek_rows(iterator, unbatch->batch, &unbatch->rows, ret_left_out);
    if (!run_words_rows(unbatch->batch, input->width, input->run_words, &unbatch->rows))
        return order_fail(iterator, TUNDISH_E_DATA,
                          "the columns of a batch differ in their number of rows");
    return TUNDISH_OK;
}

static enum order_result
fetch(struct order_iterator *iterator)
{
    struct unbatch *unbatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];
    tundish_status status;
    bool is_left_out = false;
    size_t count;
    enum order_result result;

    if (unbatch->taken == unbatch->noting.next)
        note(iterator);
    result = order_next(unbatch->input, unbatch->batch, 1, &count);
    if (result == ORDER_FAILED)
        order_noting_end(&unbatch->noting);
    if (result != ORDER_OK)
        return result;
    unbatch->row = unbatch->rows = 0;
    status = count_rows(iterator, &is_left_out);
    if (status != TUNDISH_OK || is_left_out)
        order_noting_end(&unbatch->noting);
    if (status != TUNDISH_OK || unbatch->rows == 0)
        run_words_release(unbatch->batch, 1, input->width, input->run_words);
    unbatch->taken++;
    return status == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
}

static enum order_result
unbatch_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct unbatch *unbatch = state_of(iterator);
    const struct plan_node *node = iterator->node;
    const struct plan_node *input = node->inputs[0];

    while (*ret_count < max) {
        struct rows_out out = { .words = words + *ret_count * node->width, .stride = node->width };
        uint64_t some;

        if (unbatch->row == unbatch->rows) {
            enum order_result result = fetch(iterator);

            if (result != ORDER_OK)
                return result;
        }
        some = unbatch->rows - unbatch->row;
        if (some > max - *ret_count)
            some = max - *ret_count;
        if (some == 0)
            continue;
        if (node->cuts_content)
            write_numbered(input, unbatch->batch, unbatch->row, some, out);
        else
            must(write_rows(input, unbatch->batch, unbatch->row, some, out) == node->width);
        *ret_count += (size_t)some;
        unbatch->row += some;
        unbatch->noting.passed += some;
        if (unbatch->row == unbatch->rows)
            run_words_release(unbatch->batch, 1, input->width, input->run_words);
    }
    return ORDER_OK;
}

static enum order_result
unbatch_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct unbatch *unbatch = state_of(iterator);
    struct order_landmark landmark;

    if (unbatch->taken > 0 || !order_noting_before(&unbatch->noting, count, &landmark))
        return ORDER_OK;
    if (order_noting_skip(iterator, unbatch->input, landmark.taken) != TUNDISH_OK)
        return ORDER_FAILED;
    unbatch->taken = landmark.taken;
    order_noting_stand_at(&unbatch->noting, iterator, &landmark, 0);
    *ret_passed = landmark.passed;
    return ORDER_OK;
}

static uint64_t
unbatch_surely(struct order_iterator *iterator)
{
    const struct unbatch *unbatch = state_of(iterator);

    return unbatch->taken == 0 ? order_noting_reach(&unbatch->noting) : 0;
}

/* Find what an unbatched word was: a word of which element. */
static struct order_gathered
row_gathered(const struct plan_node *node, uint32_t word)
{
    uint32_t i = 0;
    struct order_gathered gathered;

    while (word >= order_row_width(node, i)) {
        word -= order_row_width(node, i);
        i++;
        must(i < node->width);
    }
    gathered = order_gathered(node, i);
    return gathered.in_pieces ? row_gathered(gathered.elements, word)
                              : order_gathered(gathered.elements, word);
}

static struct order_gathered
unbatch_gathered(const struct plan_node *node, uint32_t word)
{
    if (node->cuts_content)
        return order_gathered(node->inputs[0], word);
    return row_gathered(node->inputs[0], word);
}

static void
unbatch_close(struct order_iterator *iterator)
{
    struct unbatch *unbatch = state_of(iterator);
    const struct plan_node *input = iterator->node->inputs[0];

    if (unbatch->row < unbatch->rows)
        run_words_release(unbatch->batch, 1, input->width, input->run_words);
    order_noting_end(&unbatch->noting);
    order_close(unbatch->input);
}

static tundish_status
unbatch_columns(const struct order_planning *planning, struct plan_node *node)
{
    order_pass_columns(node);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        struct column_spec *column = &node->schema.columns[i];
        tundish_status status = order_check_rows(planning, node, column);

        if (status != TUNDISH_OK)
            return status;
        if (column->rank == RANK_UNKNOWN)
            continue;
        column->rank--;
        memmove(&column->shape[0], &column->shape[1],
                (size_t)column->rank * sizeof column->shape[0]);
        if (column->kind == TUNDISH_RAGGED && --column->ragged_rank == 0) {
            column->kind = TUNDISH_DENSE;
            column->row_of_ragged = true;
        }
    }
    if (node->depth > 0)
        node->depth--;
    return TUNDISH_OK;
}

/* Known if a static shape says how many rows each batch has. */
static int64_t
unbatch_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    const struct schema *batches = &node->inputs[0]->schema;
    int64_t count = order_count(node->inputs[0], counting);

    for (uint32_t i = 0; count >= 0 && i < batches->count; i++)
        if (batches->columns[i].rank > 0 && batches->columns[i].shape[0] >= 0)
            return order_count_times(count, batches->columns[i].shape[0]);
    return count < 0 ? count : CARDINALITY_UNKNOWN;
}

const struct order_ops order_unbatch = {
    .name = "unbatch",
    .is_noted = true,
    .form = ORDER_UNBATCHES,
    .search = ORDER_SEARCH_INPUT,
    .content_use = ORDER_READS_CONTENT_FOR_ROWS,
    .state_bytes = sizeof(struct unbatch),
    .open = unbatch_open,
    .next = unbatch_next,
    .close = unbatch_close,
    .pass_over = unbatch_pass_over,
    .surely = unbatch_surely,
    .gathered = unbatch_gathered,
    .columns = unbatch_columns,
    .cardinality = unbatch_cardinality,
};
