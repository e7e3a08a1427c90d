/* element_layout.c - lays out the words of an element after each stage (order/run.h), and decides
 * which stages cut content by number. */
#include "plan/build.h"

#include <string.h>

#include "order/arguments.h"
#include "order/planning.h"
#include "source/source.h"

static bool
value_uses_outer(const struct spec_value *value)
{
    if (value == NULL)
        return false;
    if (value->kind == SPEC_VARIABLE)
        return true;
    if (value->kind == SPEC_TEXT)
        return strchr(value->text, '$') != NULL;
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count;
         i++)
        if (value_uses_outer(&value->items[i]))
            return true;
    return false;
}

/* True if content is made from `$name` here. References to files and ranges already hold what they
 * need. */
static bool
node_captures(const struct plan_node *node)
{
    bool in_memory =
        node->source != NULL && !node->source->reads_files && !node->source->words_are_values;

    if (node->stage == NULL || (node->content == NULL && !in_memory))
        return false;
    for (uint32_t i = 0; i < node->stage->info->parameter_count; i++)
        if (value_uses_outer(node->stage->arguments[i]))
            return true;
    return false;
}

static uint64_t
shifted(uint64_t run_words, uint32_t by)
{
    return by < 64 ? run_words << by : 0;
}

/* Number of inputs whose elements the node passes on: all but the one that decides. */
static uint32_t
branch_count(const struct plan_node *node)
{
    return node->input_count - (node->order != NULL && node->order->decides != NULL);
}

static bool
has_form(const struct plan_node *node, enum order_form form)
{
    return node->order != NULL && node->order->form == form;
}

/* Branches share their words if none owns runs. Otherwise they lie side by side: the words of the
 * other branches are then zero, which is not a run, and releasing all run words stays correct. */
static void
branch_layout(struct plan_node *node)
{
    uint32_t count = branch_count(node);
    bool any_runs = false;

    for (uint32_t i = 0; i < count; i++)
        any_runs |= node->inputs[i]->run_words != 0;
    node->width = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct plan_node *input = node->inputs[i];
        uint32_t end;

        input->first_word = any_runs ? node->width : 1;
        end = input->first_word + input->width;
        if (end > node->width)
            node->width = end;
        node->run_words |= shifted(input->run_words, input->first_word);
    }
}

static void
zip_layout(struct plan_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        node->inputs[i]->first_word = node->width;
        node->run_words |= shifted(node->inputs[i]->run_words, node->width);
        node->width += node->inputs[i]->width;
    }
}

static void
body_layout(struct plan_node *node)
{
    const struct plan_node *outer = node->inputs[0];

    node->width = node->body->root->width;
    node->run_words = node->body->root->run_words;
    if (node->body->captures) {
        node->run_words |= shifted(outer->run_words, node->width);
        node->width += outer->width;
    }
}

/* True if content here combines rows or changes their number. After an unbatch (taken_off), any
 * content stage does: its rows are those of the batch taken off, not those of the element. */
static bool
mixes_rows(const struct plan_node *node, uint32_t taken_off)
{
    return node->content != NULL && node->order == NULL && (node->batch_wide || taken_off > 0);
}

/* Walk back to the batch that made the elements, or past as many more as were taken off. True if a
 * stage on the way must see whole batches. */
static bool
is_wide(const struct plan_node *node, uint32_t taken_off)
{
    for (;; node = node->inputs[0]) {
        if (node->batch_wide || mixes_rows(node, taken_off))
            return true;
        if (node->source != NULL) /* also a cache in a file, whose rows are complete */
            return false;
        if (node->body != NULL)
            return is_wide(node->body->root, taken_off);
        if ((has_form(node, ORDER_BATCHES) && taken_off-- == 0) || node->input_count == 0)
            return false;
        taken_off += has_form(node, ORDER_UNBATCHES);
        for (uint32_t i = 1; i < branch_count(node); i++)
            if (is_wide(node->inputs[i], taken_off))
                return true;
    }
}

bool
build_is_wide(const struct plan_node *node)
{
    return is_wide(node, 0);
}

/* Run words of a row that `unbatch` makes of word `word` (order_row_width). */
static uint64_t
row_run_words(const struct plan_node *node, uint32_t word)
{
    struct order_gathered gathered;
    uint64_t run_words = 0;
    uint32_t at = 0;

    if ((node->run_words >> word & 1) == 0)
        return 0;
    gathered = order_gathered(node, word);
    if (!gathered.in_pieces)
        return gathered.elements->run_words;
    for (uint32_t i = 0; i < gathered.elements->width; i++) {
        run_words |= shifted(row_run_words(gathered.elements, i), at);
        at += order_row_width(gathered.elements, i);
    }
    return run_words;
}

/* True if an element carries the batch that its function was given. Its own rows are others:
 * slicing all runs of the element would also cut the rows that `$name` refers to. */
static bool
carries_outer_runs(const struct plan_node *node)
{
    uint32_t own = node->body->root->width;

    return own < 64 && node->run_words >> own != 0;
}

static bool keeps_batches(const struct plan_node *node);

/* True if only content has the rows of an element, so that the order has no references to them. */
static bool
rows_are_content(const struct plan_node *node, uint32_t taken_off)
{
    for (;; node = node->inputs[0]) {
        if (mixes_rows(node, taken_off))
            return true;
        if (node->source != NULL)
            return !keeps_batches(node) || taken_off > 0;
        if (node->body != NULL)
            return carries_outer_runs(node) || rows_are_content(node->body->root, taken_off);
        if (taken_off == 0 && has_form(node, ORDER_REBATCHES))
            return false;
        if (has_form(node, ORDER_BATCHES) && taken_off-- == 0)
            return false;
        if (has_form(node, ORDER_UNBATCHES) && node->cuts_content)
            return true;
        taken_off += has_form(node, ORDER_UNBATCHES);
        for (uint32_t i = 1; i < branch_count(node); i++)
            if (rows_are_content(node->inputs[i], taken_off))
                return true;
    }
}

/* True for a cache in a file that keeps batches whose rows the order knows. Its element is then a
 * run that refers to the batch's record in each row; otherwise it is one record. */
static bool
keeps_batches(const struct plan_node *node)
{
    const struct plan_node *input = plan_is_cache_in_file(node) ? node->inputs[0] : NULL;

    return input != NULL && input->depth > 0 && input->run_words != 0 &&
           (input->run_words & (input->run_words - 1)) == 0 && !rows_are_content(input, 0);
}

/* True if rows are cut from content by number. Rows that are references are passed on instead. */
static bool
are_rows_cut(const struct plan_node *node)
{
    return node->run_words == 0 || build_is_wide(node) || rows_are_content(node, 0);
}

/* The row count of every element, if the types of all columns agree on it; else -1. */
static int64_t
rows_of_types(const struct schema *schema)
{
    int64_t rows = schema->count > 0 ? schema->columns[0].shape[0] : -1;

    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->columns[i].rank < 1 || schema->columns[i].shape[0] != rows)
            return -1;
    return rows > 0 ? rows : -1;
}

static void
run_layout(struct plan_node *node)
{
    node->width = 1;
    node->run_words = 1;
}

/* The order must count rows, from the runs (0), from the types, or by looking at content (-1). */
static void
rebatch_layout(struct plan_node *node)
{
    const struct plan_node *input = node->inputs[0];
    struct rebatch_arguments *arguments = node->arguments;

    node->cuts_content = node->batch_wide = are_rows_cut(input);
    arguments->rows = rows_are_content(input, 0) ? rows_of_types(&input->schema) : 0;
    run_layout(node);
}

/* Whether content stages after the batch keep its rows is found out when they are made. */
static void
slices_layout(struct plan_node *node)
{
    const struct plan_node *input = node->inputs[0], *batch = input;
    struct slices_arguments *arguments = node->arguments;

    while (batch->order == NULL)
        batch = batch->inputs[0];
    arguments->rows_unknown = input->run_words == 0 || rows_are_content(batch, 0);
    node->cuts_content = node->batch_wide = are_rows_cut(input);
    node->width = input->width + node->cuts_content;
    node->run_words = input->run_words;
}

static void
unbatch_layout(struct plan_node *node)
{
    const struct plan_node *input = node->inputs[0];

    node->cuts_content = are_rows_cut(input);
    if (node->cuts_content) {
        node->width = input->width + 1;
        node->run_words = input->run_words;
        return;
    }
    for (uint32_t i = 0; i < input->width; i++) {
        node->run_words |= shifted(row_run_words(input, i), node->width);
        node->width += order_row_width(input, i);
    }
}

/* The words of the input, plus one that the stage may add. */
static void
passing_layout(struct plan_node *node)
{
    node->width = node->inputs[0]->width + (node->order != NULL && node->order->adds_word);
    node->run_words = node->inputs[0]->run_words;
}

static void
order_layout(struct plan_node *node)
{
    switch (node->order->form) {
    case ORDER_READS:
        node->width = SOURCE_WIDTH + node->source->tells_content;
        break;
    case ORDER_PASSES:
    case ORDER_NUMBERS:
        passing_layout(node);
        break;
    case ORDER_BATCHES:
        run_layout(node);
        break;
    case ORDER_REBATCHES:
        rebatch_layout(node);
        break;
    case ORDER_UNBATCHES:
        unbatch_layout(node);
        break;
    case ORDER_SLICES:
        slices_layout(node);
        break;
    case ORDER_ZIPS:
        zip_layout(node);
        break;
    case ORDER_BRANCHES:
        branch_layout(node);
        break;
    case ORDER_FUNCTION:
        body_layout(node);
        break;
    }
}

/* Complain if the stage cannot run with this layout. */
static tundish_status
check_layout(const struct plan_builder *builder, const struct plan_node *node)
{
    struct order_planning planning = { .errors = builder->errors };
    tundish_status status = build_check_end(builder, node);

    if (status == TUNDISH_OK && node->order != NULL && node->order->check_inputs != NULL)
        status = node->order->check_inputs(&planning, node);
    if (status == TUNDISH_OK && node->width > PLAN_WIDTH_MAX)
        status = order_complain(builder->errors, node,
                                "%s: an element would need %u references, more than %d: nest fewer "
                                "datasets or functions",
                                node->name, node->width, PLAN_WIDTH_MAX);
    return status;
}

static tundish_status
node_layout(struct plan_builder *builder, struct plan_graph *graph, struct plan_node *node)
{
    tundish_status status = TUNDISH_OK;

    if (node->body != NULL) {
        status = build_layout(builder, node->body);
        if (node->body->captures && graph->outside != NULL)
            graph->captures = true; /* the variable may come from a function further out */
    }
    if (keeps_batches(node))
        run_layout(node);
    else if (node->order != NULL)
        order_layout(node);
    else
        passing_layout(node);
    return status == TUNDISH_OK ? check_layout(builder, node) : status;
}

tundish_status
build_layout(struct plan_builder *builder, struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        tundish_status status;

        graph->nodes[i]->number = i;
        status = node_layout(builder, graph, graph->nodes[i]);
        if (status != TUNDISH_OK)
            return status;
        if (graph->outside != NULL && node_captures(graph->nodes[i]))
            graph->captures = true;
    }
    build_objects(graph);
    return TUNDISH_OK;
}
