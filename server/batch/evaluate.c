/* evaluate.c - makes content from references, down the tree of the plan and up again.
 *
 * A request (words of some elements) goes down to the sources. Each form of node rewrites the words
 * into those of its inputs, and turns the frames that come back into its own. A frame may have
 * fewer elements than the request, since bad ones are left out; `kept` then says which are there.
 * Everything lives in scratch until the next reset.
 */
#include "batch/evaluate.h"

#include <string.h>

#include "batch/evaluate_private.h"
#include "batch/kept_rows.h"
#include "column/flush.h"
#include "column/words.h"
#include "content/content.h"
#include "core/clock.h"
#include "core/dtype.h"
#include "core/mapped.h"
#include "core/must.h"
#include "order/arguments.h"
#include "order/run.h"
#include "source/source.h"

/* A cache in a file that keeps batches reads whole ones. All rows of its runs refer to the same
 * record, so the first is enough. */
static void
read_runs(struct evaluation *evaluation, struct source_read *read)
{
    uint64_t *words = evaluate_take(evaluation, (size_t)read->count * SOURCE_WIDTH, sizeof *words);

    for (int64_t i = 0; i < read->count; i++) {
        const struct run *run = run_of_word(read->words[(size_t)i * read->stride]);

        must(run->width == SOURCE_WIDTH && run->element_count > 0);
        memcpy(words + SOURCE_WIDTH * (size_t)i, run->words, SOURCE_WIDTH * sizeof *words);
    }
    read->words = words;
    read->stride = SOURCE_WIDTH;
}

static tundish_status
evaluate_source(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *ret_frame)
{
    struct source_read read = {
        .node = node,
        .files = evaluation->files,
        .words = request->words,
        .stride = request->stride,
        .count = request->count,
        .output = ret_frame,
        .skips_bad = evaluation->skip_bad,
    };
    tundish_status status;

    evaluate_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    ret_frame->destinations = request->destinations;
    ret_frame->destination_bytes = request->destination_bytes;
    if (node->run_words != 0)
        read_runs(evaluation, &read);
    status = node->source->read(node->state, &read);
    must_in_debug(ret_frame->count == request->count);
    if (ret_frame->errors->bad_count > 0)
        evaluate_say_stage(node, ret_frame->errors);
    return status != TUNDISH_OK ? status : evaluate_settle(evaluation, NULL, 0, ret_frame);
}

/* A stage that draws stands after an `ordinal`, whose number is a word of an element. */
static const uint64_t *
ordinals_of(struct evaluation *evaluation, const struct plan_node *node,
            const struct evaluate_request *request, const struct frame *input)
{
    uint64_t *ordinals;

    if (node->stage == NULL || !content_draws(node->content, node->stage))
        return NULL;
    must_in_debug(node->draw_word < node->width && input->count <= request->count);
    ordinals = evaluate_take(evaluation, (size_t)input->count, sizeof *ordinals);
    for (int64_t i = 0; i < input->count; i++) {
        size_t element = (size_t)(input->kept != NULL ? input->kept[i] : i);

        ordinals[i] = request->words[element * request->stride + node->draw_word];
    }
    return ordinals;
}

/* Count the rows of stages fused with `last`. Their time is counted as that of `last`. */
static void
count_rows_between(struct evaluation *evaluation, const struct plan_node *before,
                   const struct plan_node *last, int64_t rows)
{
    if (evaluation->counters == NULL || last->first == NULL)
        return;
    for (const struct plan_node *node = last->inputs[0]; node != before; node = node->inputs[0]) {
        struct tnd_stats_stage *values = evaluation->counters->stages[node->index].values;

        if (values == NULL)
            continue;
        tnd_stats_add(&values->rows, (uint64_t)rows);
        tnd_stats_add(&values->calls, 1);
    }
}

const struct plan_node *
evaluate_before(const struct plan_node *node)
{
    return (node->first != NULL ? node->first : node)->inputs[0];
}

tundish_status
evaluate_apply(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, struct frame *input, struct frame *ret_frame)
{
    const struct plan_node *before = evaluate_before(node);
    tundish_status status = TUNDISH_OK;
    uint64_t mode;

    must_in_debug(input->column_count == before->schema.count);
    evaluate_ready(evaluation, &node->schema, input->count,
                   evaluate_outer_kept(evaluation, request->outer, input->kept, input->count),
                   ret_frame);
    input->outer = ret_frame->outer;
    input->errors = ret_frame->errors;
    ret_frame->kept = input->kept;
    ret_frame->ordinals = ordinals_of(evaluation, node, request, input);
    if (evaluation->counters != NULL)
        ret_frame->vocabularies = evaluation->counters->stages[node->index].vocabularies;
    /* Columns may be written directly into their slot, but not if elements are missing: positions
     * would not match. */
    ret_frame->destinations = input->kept == NULL ? request->destinations : NULL;
    ret_frame->destination_bytes = request->destination_bytes;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        int32_t from = node->schema.columns[i].passed_from;

        if (from >= 0 && node->inputs[0] != before)
            from = evaluate_passed_from(node, before, i);
        if (from >= 0)
            column_copy(&ret_frame->columns[i], &input->columns[from]);
    }
    mode = flush_begin();
    if (node->fused != NULL)
        status = node->fused->apply(node->fused_state, input, ret_frame);
    else
        status = node->content->apply(node->state, input, ret_frame);
    flush_end(mode);
    return status;
}

static tundish_status
evaluate_content(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *before = evaluate_before(node);
    struct evaluate_request inner = *request;
    struct frame input;
    bool again = false;
    tundish_status status;

    evaluate_pass_destinations(evaluation, node, before, request, &inner);
    status = evaluate(evaluation, before, &inner, &input);
    if (status != TUNDISH_OK)
        return status;
    status = evaluate_apply(evaluation, node, request, &input, ret_frame);
    count_rows_between(evaluation, before, node, input.count);
    if (status == TUNDISH_OK && ret_frame->errors->bad_count > 0 && evaluation->skip_bad)
        status = evaluate_leave_out_rows(evaluation, node, request, &input, &again);
    if (status == TUNDISH_OK && again)
        status = evaluate_apply(evaluation, node, request, &input, ret_frame);
    if (ret_frame->errors->bad_count > 0)
        evaluate_say_where(evaluation, node, request, &input, ret_frame);
    return status != TUNDISH_OK ? status
                                : evaluate_settle(evaluation, &input, before->depth, ret_frame);
}

static tundish_status
evaluate_enumerate(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluate_request inner = *request;
    struct frame input;
    int64_t *index;
    tundish_status status;

    evaluate_pass_destinations(evaluation, node, node->inputs[0], request, &inner);
    status = evaluate(evaluation, node->inputs[0], &inner, &input);
    if (status != TUNDISH_OK)
        return status;
    must_in_debug(node->schema.count == input.column_count + 1);
    evaluate_ready(evaluation, &node->schema, input.count, request->outer, ret_frame);
    ret_frame->kept = input.kept;
    index = evaluate_take(evaluation, (size_t)input.count, sizeof *index);
    for (int64_t i = 0; i < input.count; i++) {
        size_t element = (size_t)(input.kept != NULL ? input.kept[i] : i);

        index[i] = (int64_t)request->words[element * request->stride + node->width - 1];
    }
    column_set_scalars(&ret_frame->columns[0], input.count, index);
    memcpy(&ret_frame->columns[1], input.columns, input.column_count * sizeof *input.columns);
    return TUNDISH_OK;
}

/* A stage that only moves elements: its content is that of its input. */
static tundish_status
evaluate_input(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, struct frame *ret_frame)
{
    tundish_status status = evaluate(evaluation, node->inputs[0], request, ret_frame);

    must_in_debug(node->schema.count >= node->inputs[0]->schema.count);
    if (status == TUNDISH_OK)
        ret_frame->schema = &node->schema;
    return status;
}

/* A slice of a batch that the order made is evaluated as a batch by itself. */
static tundish_status
evaluate_deal(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct slices_arguments *arguments = node->arguments;
    tundish_status status;

    if (node->cuts_content)
        status = evaluate_slices(evaluation, node, request, ret_frame);
    else if (evaluate_is_empty_slice(node, request))
        status = evaluate_empty_slice(evaluation, node, request, ret_frame);
    else
        status = evaluate_input(evaluation, node, request, ret_frame);
    return status == TUNDISH_OK && arguments->even
               ? evaluate_mask(evaluation, node, request, ret_frame)
               : status;
}

static tundish_status
evaluate_node(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    if (node->order == NULL)
        return evaluate_content(evaluation, node, request, ret_frame);
    switch (node->order->form) {
    case ORDER_READS:
        return evaluate_source(evaluation, node, request, ret_frame);
    case ORDER_PASSES:
        return evaluate_input(evaluation, node, request, ret_frame);
    case ORDER_NUMBERS:
        return evaluate_enumerate(evaluation, node, request, ret_frame);
    case ORDER_BATCHES:
        return evaluate_batch(evaluation, node, request, ret_frame);
    case ORDER_REBATCHES:
        return evaluate_rebatched(evaluation, node, request, ret_frame);
    case ORDER_UNBATCHES:
        return node->cuts_content ? evaluate_content_rows(evaluation, node, request, ret_frame)
                                  : evaluate_unbatch(evaluation, node, request, ret_frame);
    case ORDER_SLICES:
        return evaluate_deal(evaluation, node, request, ret_frame);
    case ORDER_ZIPS:
        return evaluate_zip(evaluation, node, request, ret_frame);
    case ORDER_BRANCHES:
        return evaluate_branches(evaluation, node, request, ret_frame);
    case ORDER_FUNCTION:
        return evaluate_body(evaluation, node, request, ret_frame);
    }
    must(false);
}

/* Bytes of the values of a column. For strings this is an estimate from a few: visiting all would
 * cost as much as some stages do. */
static uint64_t
bytes_of(const struct column *column, tundish_dtype dtype, struct scratch *scratch)
{
    enum { SAMPLED = 8 };
    const struct byte_view *strings = column->values;
    uint64_t count = (uint64_t)column->value_count, sampled = count < SAMPLED ? count : SAMPLED;
    uint64_t bytes = 0;

    if (count == 0 || strings == NULL)
        return 0;
    if (dtype != TUNDISH_STRING)
        return count * tnd_dtype_bytes(dtype);
    words_fill(scratch, strings, column->value_count, (int64_t)(count / sampled));
    for (uint64_t i = 0; i < sampled; i++)
        bytes += strings[i * (count / sampled)].size;
    return (uint64_t)((double)bytes / (double)sampled * (double)count);
}

/* Bytes that the node itself made, without columns that pass through it. */
static uint64_t
bytes_made(const struct plan_node *node, const struct frame *frame)
{
    const struct plan_node *before = NULL;
    uint64_t bytes = 0;

    if (node->content != NULL && node->order == NULL)
        before = (node->first != NULL ? node->first : node)->inputs[0];
    for (uint32_t i = 0; i < frame->column_count; i++)
        if (before == NULL || evaluate_passed_from(node, before, i) < 0)
            bytes += bytes_of(&frame->columns[i], node->schema.columns[i].dtype, frame->scratch);
    return bytes;
}

/* Note which stage this thread runs and with how many elements; called again when it returns to the
 * outer one. */
static void
enter_stage(struct evaluation_counters *counters, struct tnd_stats_stage *values, uint64_t count)
{
    if (counters->running != NULL)
        tnd_stats_set(&counters->running->queued, 0);
    if (values != NULL)
        tnd_stats_set(&values->queued, count);
    counters->running = values;
    counters->running_count = count;
}

/* Count the time of a call, without that of the stages before. Where that is not taken, it counts
 * as much as the last one that was. */
static void
count_time(struct evaluation_counters *counters, struct evaluation_stage *stage, int64_t began_ns,
           uint64_t count)
{
    if (!counters->is_untimed) {
        int64_t ended_ns = tnd_clock_ns();

        must_in_debug(counters->inner.ns <= ended_ns - began_ns);
        stage->own_ns = (uint64_t)(ended_ns - began_ns - counters->inner.ns);
        stats_event(counters->track, began_ns, ended_ns, stage->what, count);
        counters->inner.ns = ended_ns - began_ns;
        counters->now_ns = 0;
    }
    tnd_stats_add(&stage->values->busy, stage->own_ns);
    tnd_stats_observe(&stage->values->call, stage->own_ns);
}

/* Evaluate a node and count its time and errors, excluding those of the stages before it, as
 * drop_bad (evaluate_frame.c) counts the rows that the running stage leaves out. A stage asks its
 * input almost at once, so the input begins at the same reading of the clock: of a chain of stages
 * each costs one reading. */
static tundish_status
evaluate_counted(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, struct evaluation_stage *stage,
                 struct frame *ret_frame)
{
    struct evaluation_counters *counters = evaluation->counters;
    struct evaluation_inner outer = counters->inner;
    struct tnd_stats_stage *running = counters->running, *values = stage->values;
    uint64_t running_count = counters->running_count;
    int64_t began_ns;
    tundish_status status;

    enter_stage(counters, values, (uint64_t)request->count);
    counters->inner = (struct evaluation_inner){ 0 };
    if (counters->now_ns == 0 && !counters->is_untimed)
        counters->now_ns = tnd_clock_ns();
    began_ns = counters->now_ns;
    status = evaluate_node(evaluation, node, request, ret_frame);
    count_time(counters, stage, began_ns, (uint64_t)request->count);
    tnd_stats_add(&values->rows, (uint64_t)request->count);
    tnd_stats_add(&values->calls, 1);
    if (status == TUNDISH_OK)
        tnd_stats_add(&values->output, bytes_made(node, ret_frame));
    else if (!counters->inner.failed)
        tnd_stats_add(&values->errors, 1);
    enter_stage(counters, running, running_count);
    counters->inner.ns += outer.ns;
    counters->inner.failed = outer.failed || status != TUNDISH_OK;
    return status;
}

tundish_status
evaluate_anew(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct evaluation_counters *counters = evaluation->counters;
    struct evaluation_stage *stage = counters != NULL ? &counters->stages[node->index] : NULL;
    tundish_status status, cut;

    must_in_debug(request->count <= 1 || request->stride >= node->width);
    if (stage == NULL || stage->values == NULL)
        status = evaluate_node(evaluation, node, request, ret_frame);
    else
        status = evaluate_counted(evaluation, node, request, stage, ret_frame);
    must_in_debug(status != TUNDISH_OK || (ret_frame->schema == &node->schema &&
                                           ret_frame->column_count == node->schema.count &&
                                           ret_frame->count <= request->count));
    for (uint32_t i = 0; status == TUNDISH_OK && i < ret_frame->column_count; i++)
        must_in_debug(ret_frame->columns[i].count == ret_frame->count);
    /* Checked first: a file truncated while mapped reads as zeros, and may have caused the other
     * error. */
    cut = tnd_mapped_check();
    return cut != TUNDISH_OK ? cut : status;
}

tundish_status
evaluate(struct evaluation *evaluation, const struct plan_node *node,
         const struct evaluate_request *request, struct frame *ret_frame)
{
    tundish_status status;

    if (evaluation->kept != NULL && request->outer == NULL &&
        kept_rows_of(evaluation->kept, node) &&
        evaluate_kept(evaluation, node, request, ret_frame, &status))
        return status;
    return evaluate_anew(evaluation, node, request, ret_frame);
}
