/* origin.c - the origin of an element, down the tree of the plan as evaluate goes. */
#include "batch/origin.h"

#include <string.h>

#include "batch/evaluate_private.h"
#include "batch/origin_private.h"
#include "content/content.h"
#include "core/must.h"
#include "order/arguments.h"
#include "order/run.h"
#include "source/source.h"

struct origin *
origin_new(struct origin_walk *walk, enum origin_kind kind, size_t count)
{
    struct origin *origin = scratch_alloc(walk->origins->scratch, sizeof *origin);

    *origin = (struct origin){ .kind = kind, .row = -1, .count = count };
    if (count > 0)
        origin->parts = scratch_array(walk->origins->scratch, count, sizeof *origin->parts);
    return origin;
}

static void
add_mark(struct origin_walk *walk, struct origin *origin, const struct plan_node *node,
         uint64_t number)
{
    struct origin_marked *marked = scratch_alloc(walk->origins->scratch, sizeof *marked);

    *marked = (struct origin_marked){ { node, number, 0, 1 }, origin->marks };
    origin->marks = marked;
}

/* A cache in a file that keeps batches: each element of its run refers to the record of the batch.
 */
static struct origin *
of_kept_batch(struct origin_walk *walk, const struct plan_node *node, const struct run *run)
{
    struct origin *origin = origin_new(walk, ORIGIN_BATCH, run == NULL ? 0 : run->element_count);

    for (size_t i = 0; i < origin->count; i++) {
        struct origin *row = origin_new(walk, ORIGIN_SOURCE, 0);

        row->node = node;
        row->words = run->words + i * run->width;
        row->row = (int64_t)i;
        origin->parts[i] = row;
    }
    return origin;
}

static struct origin *
of_source(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    struct origin *origin;

    if (node->run_words != 0)
        return of_kept_batch(walk, node, run_of_word(words[0]));
    origin = origin_new(walk, ORIGIN_SOURCE, 0);
    origin->node = node;
    origin->words = words;
    return origin;
}

static struct origin *
of_batch(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct run *run = run_of_word(words[0]);
    struct origin *origin = origin_new(walk, ORIGIN_BATCH, run == NULL ? 0 : run->element_count);

    for (size_t i = 0; i < origin->count; i++)
        origin->parts[i] = origin_of(walk, node->inputs[0], run->words + i * run->width);
    return origin;
}

/* The rows of a piece (run.h). */
static struct origin *
of_piece(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *input = node->inputs[0];
    const struct origin *whole = origin_of(walk, input, words);
    struct origin_rows rows;

    if (!node->cuts_content) {
        if (!origin_rows_told(walk, whole, &rows))
            rows.count = 0;
        return origin_cut(walk, &rows, 0, rows.count);
    }
    origin_rows_of(walk, input, words, whole, &rows);
    return origin_cut(walk, &rows, words[input->width],
                      words[input->width] + words[input->width + 1]);
}

static struct origin *
of_pieces(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct run *run = run_of_word(words[0]);
    size_t piece_count = run == NULL ? 0 : run->element_count, count = 0;
    struct origin *pieces = origin_new(walk, ORIGIN_BATCH, piece_count), *origin;

    for (size_t i = 0; i < piece_count; i++) {
        pieces->parts[i] = of_piece(walk, node, run->words + i * run->width);
        count += pieces->parts[i]->count;
    }
    origin = origin_new(walk, ORIGIN_BATCH, count);
    count = 0;
    for (size_t i = 0; i < piece_count; i++)
        for (size_t k = 0; k < pieces->parts[i]->count; k++)
            origin->parts[count++] = pieces->parts[i]->parts[k];
    must_in_debug(count == origin->count);
    return origin;
}

static struct origin *
piece_of(struct origin_walk *walk, struct origin *whole, int64_t row)
{
    struct origin *piece = origin_new(walk, ORIGIN_PIECE, 1);

    piece->parts[0] = whole;
    piece->row = row;
    return piece;
}

static struct origin *
of_unbatched(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *input = node->inputs[0];
    struct evaluation own = { .scratch = walk->origins->scratch };
    uint64_t row = node->cuts_content ? words[input->width] : 0;
    const uint64_t *element =
        node->cuts_content ? words : evaluate_element_of_row(&own, input, words);
    struct origin *whole = origin_of(walk, input, element);
    struct origin_rows rows;

    if (node->cuts_content)
        origin_rows_of(walk, input, element, whole, &rows);
    else if (!origin_rows_told(walk, whole, &rows))
        return whole;
    return row < rows.count ? rows.list[row] : piece_of(walk, whole, (int64_t)row);
}

static struct origin *
of_slice(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct slices_arguments *arguments = node->arguments;
    struct origin *whole = origin_of(walk, node->inputs[0], words);
    uint64_t slices = (uint64_t)arguments->slices, slice, each;
    struct origin_rows rows;

    if (!node->cuts_content)
        return whole;
    origin_rows_of(walk, node->inputs[0], words, whole, &rows);
    slice = words[node->width - 1];
    each = rows.count / slices + (rows.count % slices != 0);
    return origin_cut(walk, &rows, slice * each, (slice + 1) * each);
}

static struct origin *
of_zipped(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    struct origin *origin = origin_new(walk, ORIGIN_BESIDE, node->input_count);

    for (uint32_t i = 0; i < node->input_count; i++)
        origin->parts[i] = origin_of(walk, node->inputs[i], words + node->inputs[i]->first_word);
    return origin;
}

static struct origin *
of_branch(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *input;
    struct origin *origin;

    if (words[0] >= node->input_count)
        return origin_new(walk, ORIGIN_BATCH, 0);
    input = node->inputs[words[0]];
    origin = origin_of(walk, input, words + input->first_word);
    add_mark(walk, origin, node, words[0]);
    return origin;
}

static struct origin *
of_function(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *root = node->body->root;
    struct origin *inner, *origin;

    walk->functions++;
    inner = origin_of(walk, root, words);
    walk->functions--;
    if (!node->body->captures)
        return inner;
    origin = origin_new(walk, ORIGIN_INSIDE, 2);
    origin->parts[0] = inner;
    origin->parts[1] = origin_of(walk, node->inputs[0], words + root->width);
    return origin;
}

static void
note_blender(struct origin_walk *walk, const struct plan_node *node)
{
    struct origins *origins = walk->origins;
    const struct plan_node **blenders;

    for (size_t i = 0; i < origins->blender_count; i++)
        if (origins->blenders[i] == node)
            return;
    blenders = scratch_array(origins->scratch, origins->blender_count + 1, sizeof *blenders);
    if (origins->blender_count > 0)
        memcpy(blenders, origins->blenders, origins->blender_count * sizeof *blenders);
    blenders[origins->blender_count++] = node;
    origins->blenders = blenders;
}

/* A stage that looks across the rows of a batch may give other rows than it was given. Those that
 * draw do not: their numbers are what depends on the batch. */
static struct origin *
of_content(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *input = node->inputs[0];
    struct origin *origin = origin_of(walk, input, words);
    bool draws = node->stage != NULL && content_draws(node->content, node->stage);
    struct origin_rows rows;

    if (draws)
        add_mark(walk, origin, node, words[node->draw_word]);
    if (!node->batch_wide || draws)
        return origin;
    note_blender(walk, node);
    if (!origin_rows_told(walk, origin, &rows))
        return origin;
    return origin_content_rows(walk, node, words) == (int64_t)rows.count
               ? origin
               : piece_of(walk, origin, -1);
}

struct origin *
origin_of(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    struct origin *origin;

    if (node->order == NULL)
        return of_content(walk, node, words);
    switch (node->order->form) {
    case ORDER_READS:
        return of_source(walk, node, words);
    case ORDER_PASSES:
        return origin_of(walk, node->inputs[0], words);
    case ORDER_NUMBERS:
        origin = origin_of(walk, node->inputs[0], words);
        add_mark(walk, origin, node, words[node->width - 1]);
        return origin;
    case ORDER_BATCHES:
        return of_batch(walk, node, words);
    case ORDER_REBATCHES:
        return of_pieces(walk, node, words);
    case ORDER_UNBATCHES:
        return of_unbatched(walk, node, words);
    case ORDER_SLICES:
        return of_slice(walk, node, words);
    case ORDER_ZIPS:
        return of_zipped(walk, node, words);
    case ORDER_BRANCHES:
        return of_branch(walk, node, words);
    case ORDER_FUNCTION:
        return of_function(walk, node, words);
    }
    return origin_new(walk, ORIGIN_BATCH, 0);
}
