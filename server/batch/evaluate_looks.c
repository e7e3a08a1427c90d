/* evaluate_looks.c - content for stages that decide the order by it: on the dealing thread, or as
 * looks that it hands to others (order/look.h).
 *
 * Filters that follow each other ask about the same rows. These are made once: the questions of the
 * later ones are answered about those rows that the earlier ones let through. About a row that is
 * bad for its question nothing is said: that filter looks for itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/evaluate_private.h"
#include "batch/kept_rows.h"
#include "content/content.h"
#include "core/clock.h"
#include "core/mapped.h"
#include "core/memory.h"
#include "core/must.h"

/* True if the element is one row of content, although its words may be those of a whole batch
 * (plan_node.cuts_content). */
static bool
is_row_of_content(const struct plan_node *node)
{
    for (node = order_node(node); node->input_count == 1; node = order_node(node->inputs[0]))
        if (node->order->form == ORDER_UNBATCHES)
            return node->cuts_content;
    return false;
}

/* Rows in an element of `node`: those of a batch, including the batches in it; otherwise one. */
static uint64_t
count_rows(const struct plan_node *node, const uint64_t *element)
{
    for (uint32_t w = 0; w < node->width && node->depth > 0 && !is_row_of_content(node); w++) {
        const struct run *run = run_of_word(element[w]);
        const struct plan_node *elements;
        uint64_t rows = 0;

        if ((node->run_words >> w & 1) == 0 || run == NULL) /* NULL: of another branch */
            continue;
        elements = order_gathered(node, w).elements;
        for (uint64_t i = 0; i < run->element_count; i++)
            rows += count_rows(elements, run->words + i * run->width);
        return rows;
    }
    return 1;
}

/* Elements without an answer never appear again, so count their rows as skipped here. Bad rows
 * inside the others are counted when those are delivered. */
static void
count_left_out(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *wanted, const struct frame *input, const uint8_t *bad)
{
    uint8_t *left = evaluate_take(evaluation, (size_t)wanted->count, 1);

    must_in_debug(input->count <= wanted->count);
    memset(left, 0, (size_t)wanted->count);
    for (int64_t i = 0; i < input->count; i++)
        left[input->kept != NULL ? input->kept[i] : i] = bad == NULL || !bad[i];
    for (int64_t i = 0; i < wanted->count; i++)
        if (!left[i])
            evaluation->skipped += count_rows(node, wanted->words + (size_t)i * wanted->stride);
}

/* Leave out elements with a bad answer. */
static void
leave_out_bad(struct evaluation *evaluation, const struct frame_errors *errors,
              struct frame *answers)
{
    int64_t *index = evaluate_take(evaluation, (size_t)answers->count, sizeof *index);
    int64_t *kept = evaluate_take(evaluation, (size_t)answers->count, sizeof *kept);
    int64_t left = 0;

    for (int64_t i = 0; i < answers->count; i++)
        if (!errors->bad[i]) {
            kept[left] = answers->kept != NULL ? answers->kept[i] : i;
            index[left++] = i;
        }
    must_in_debug(left + errors->bad_count == answers->count);
    evaluate_gather(evaluation, answers, index, left);
    answers->kept = kept;
    memcpy(evaluation->skipped_text, errors->text, sizeof evaluation->skipped_text);
}

/* Rows that all filters so far let through, with the elements of the look that they are of. */
struct passing {
    struct frame rows;
    uint64_t *elements;
};

/* Leave those of them for which `holds`. */
static void
pass(struct evaluation *evaluation, struct passing *passing, const int64_t *index, int64_t count)
{
    struct column *columns = evaluate_take(evaluation, passing->rows.column_count, sizeof *columns);

    must_in_debug(count <= passing->rows.count);
    for (int64_t i = 0; i < count; i++)
        passing->elements[i] = passing->elements[index[i]];
    if (count == passing->rows.count)
        return;
    memcpy(columns, passing->rows.columns, passing->rows.column_count * sizeof *columns);
    passing->rows.columns = columns;
    passing->rows.outer = evaluate_outer_kept(evaluation, passing->rows.outer, index, count);
    evaluate_gather(evaluation, &passing->rows, index, count);
}

/* Begin with those that the filter which is asked lets through. */
static void
begin_passing(struct evaluation *evaluation, const struct frame *input, const struct frame *answers,
              struct passing *ret_passing)
{
    const bool *holds = answers->columns[0].values;
    int64_t *index = evaluate_take(evaluation, (size_t)input->count, sizeof *index);
    int64_t count = 0;

    must_in_debug(answers->count <= input->count);
    ret_passing->rows = *input;
    ret_passing->elements =
        evaluate_take(evaluation, (size_t)input->count, sizeof *ret_passing->elements);
    for (int64_t i = 0, at = 0; i < input->count && at < answers->count; i++) {
        int64_t element = input->kept != NULL ? input->kept[i] : i;

        ret_passing->elements[i] = (uint64_t)element;
        if ((answers->kept != NULL ? answers->kept[at] : at) == element && holds[at++])
            index[count++] = i;
    }
    pass(evaluation, ret_passing, index, count);
}

/* The stage that asks is not a filter: all of them go on. */
static void
let_all_pass(struct evaluation *evaluation, const struct frame *input, struct passing *ret_passing)
{
    ret_passing->rows = *input;
    ret_passing->elements =
        evaluate_take(evaluation, (size_t)input->count, sizeof *ret_passing->elements);
    for (int64_t i = 0; i < input->count; i++)
        ret_passing->elements[i] = (uint64_t)(input->kept != NULL ? input->kept[i] : i);
}

/* Ask the filter `node` about them. Bad ones are left to it. False: so are all. */
static bool
ask_later(struct evaluation *evaluation, const struct plan_node *node, struct passing *passing,
          uint16_t *foreseen)
{
    struct frame *rows = &passing->rows;
    int64_t *index = evaluate_take(evaluation, (size_t)rows->count, sizeof *index);
    int64_t count = 0;
    struct frame answers;
    const bool *holds;

    evaluate_ready(evaluation, &node->answers, rows->count, rows->outer, &answers);
    rows->errors = answers.errors;
    if (node->content->apply(node->state, rows, &answers) != TUNDISH_OK)
        return false;
    holds = answers.columns[0].values;
    for (int64_t i = 0; i < rows->count; i++) {
        uint16_t *seen = &foreseen[passing->elements[i]];

        if (answers.errors->bad_count > 0 && answers.errors->bad[i])
            continue;
        if (holds[i]) {
            *seen += FORESEEN_PASS;
            index[count++] = i;
        } else {
            *seen += FORESEEN_STOP;
        }
    }
    pass(evaluation, passing, index, count);
    return true;
}

static void
foresee(struct evaluation *evaluation, const struct order_look *look, struct passing *passing)
{
    memset(look->foreseen, 0, look->count * sizeof *look->foreseen);
    for (uint32_t i = 0; i < look->later_count && passing->rows.count > 0; i++)
        if (!ask_later(evaluation, look->later[i], passing, look->foreseen))
            return;
}

/* Can rows of `node` be kept from this look? The dealing thread keeps none: what it looks at itself
 * takes no time. */
static bool
may_keep(const struct evaluation *evaluation, const struct order_look *look,
         const struct plan_node *node)
{
    return evaluation->kept != NULL && look->scope == NULL && kept_rows_of(evaluation->kept, node);
}

/* Keep rows for their batch. The look began at `began_ns`. */
static void
keep(struct evaluation *evaluation, const struct order_look *look, const struct plan_node *node,
     const struct passing *passing, int64_t began_ns)
{
    const struct kept_offer offer = {
        .node = node,
        .words = look->words,
        .elements = passing->elements,
        .rows = &passing->rows,
        .took_ns = (tnd_clock_ns() - began_ns) / (int64_t)look->count * passing->rows.count,
    };

    must_in_debug(passing->rows.count <= (int64_t)look->count);
    kept_rows_offer(evaluation->kept, &offer);
}

/* Answer the order stage's questions about elements of its input. */
static tundish_status
evaluate_answers(struct evaluation *evaluation, const struct order_look *look,
                 const struct evaluate_request *wanted, struct frame *ret_frame)
{
    const struct plan_node *node = look->node;
    bool keeps = may_keep(evaluation, look, node->inputs[0]);
    int64_t began_ns = keeps ? tnd_clock_ns() : 0;
    uint64_t skipped = evaluation->skipped;
    struct frame input;
    tundish_status status = evaluate_anew(evaluation, node->inputs[0], wanted, &input);
    const struct frame_errors *errors;
    struct passing passing;

    if (status != TUNDISH_OK)
        return status;
    evaluate_ready(evaluation, &node->answers, input.count,
                   evaluate_outer_kept(evaluation, wanted->outer, input.kept, input.count),
                   ret_frame);
    ret_frame->kept = input.kept;
    input.outer = ret_frame->outer;
    input.errors = ret_frame->errors;
    errors = ret_frame->errors;
    status = node->content->apply(node->state, &input, ret_frame);
    if (status == TUNDISH_OK && errors->bad_count > 0 && !evaluation->skip_bad)
        status = tnd_fail(errors->status, "%s", errors->text);
    if (status != TUNDISH_OK)
        return status;
    /* Rows skipped on the way are evaluated and counted again at delivery. */
    evaluation->skipped = skipped;
    if (evaluation->skip_bad)
        count_left_out(evaluation, node->inputs[0], wanted, &input, errors->bad);
    if (errors->bad_count > 0)
        leave_out_bad(evaluation, errors, ret_frame);
    if (look->later_count == 0 && !keeps)
        return TUNDISH_OK;
    if (node->answers.columns[0].dtype == TUNDISH_BOOL)
        begin_passing(evaluation, &input, ret_frame, &passing);
    else
        let_all_pass(evaluation, &input, &passing);
    if (look->later_count > 0)
        foresee(evaluation, look, &passing);
    if (keeps)
        keep(evaluation, look, node->inputs[0], &passing, began_ns);
    return TUNDISH_OK;
}

/* The request for elements that an order stage looks at. All of them have the same outer element,
 * that of the scope. Resets the scratch: the last frame was lent only until this call. */
static struct evaluate_request
request_of_order(struct evaluation *evaluation, const struct plan_node *node,
                 const struct order_scope *scope, const uint64_t *words, uint64_t count)
{
    struct evaluate_request request = { .words = words,
                                        .stride = node->width,
                                        .count = (int64_t)count };
    int64_t *index;

    scratch_reset(evaluation->scratch);
    if (scope == NULL)
        return request;
    index = evaluate_take(evaluation, count, sizeof *index);
    memset(index, 0, count * sizeof *index);
    request.outer = evaluate_outer_kept(evaluation, scope->values, index, (int64_t)count);
    return request;
}

static tundish_status
columns_for_order(struct evaluation *evaluation, const struct order_look *look,
                  const struct frame **ret_frame)
{
    struct evaluate_request request =
        request_of_order(evaluation, look->node, look->scope, look->words, look->count);
    struct frame *frame = evaluate_take(evaluation, 1, sizeof *frame);
    bool keeps = may_keep(evaluation, look, look->node);
    int64_t began_ns = keeps ? tnd_clock_ns() : 0;
    tundish_status status = evaluate_anew(evaluation, look->node, &request, frame);
    struct passing passing;

    if (status != TUNDISH_OK)
        return status;
    if (keeps) {
        let_all_pass(evaluation, frame, &passing);
        keep(evaluation, look, look->node, &passing, began_ns);
    }
    *ret_frame = frame;
    return TUNDISH_OK;
}

static tundish_status
answers_for_order(struct evaluation *evaluation, const struct order_look *look,
                  const struct frame **ret_frame)
{
    struct evaluate_request request =
        request_of_order(evaluation, look->node->inputs[0], look->scope, look->words, look->count);
    struct frame *frame = evaluate_take(evaluation, 1, sizeof *frame);
    tundish_status status = evaluate_answers(evaluation, look, &request, frame);

    if (status == TUNDISH_OK)
        status = tnd_mapped_check();
    if (status == TUNDISH_OK)
        *ret_frame = frame;
    return status;
}

static tundish_status
serve_columns(struct order_services *services, const struct plan_node *node,
              const struct order_scope *scope, const uint64_t *words, uint64_t count,
              const struct frame **ret_frame)
{
    const struct order_look look = { .node = node, .scope = scope, .words = words, .count = count };

    return columns_for_order(services->evaluator, &look, ret_frame);
}

static tundish_status
serve_answers(struct order_services *services, const struct order_look *look,
              const struct frame **ret_frame)
{
    return answers_for_order(services->evaluator, look, ret_frame);
}

/* Rows count where the order meets them, not where they were looked at. */
static void
count_looked(struct order_services *services, struct order_look *look, bool counts)
{
    struct evaluation *evaluation = services->evaluator;

    must_in_debug((look->skipped > 0) == (look->skipped_text != NULL));
    if (counts && look->skipped > 0) {
        evaluation->skipped += look->skipped;
        snprintf(evaluation->skipped_text, sizeof evaluation->skipped_text, "%s",
                 look->skipped_text);
    }
    free(look->skipped_text);
    look->skipped_text = NULL;
}

void
evaluate_look(struct evaluation *evaluation, struct order_look *look)
{
    uint64_t skipped = evaluation->skipped;
    int64_t began_ns = tnd_clock_ns();
    const struct frame *frame;

    look->status = look->asks ? answers_for_order(evaluation, look, &frame)
                              : columns_for_order(evaluation, look, &frame);
    if (look->status == TUNDISH_OK)
        look->status = look->take(look, frame);
    must_in_debug(evaluation->skipped >= skipped && look->skipped_text == NULL);
    look->skipped = evaluation->skipped - skipped;
    if (look->skipped > 0)
        look->skipped_text = tnd_strdup(evaluation->skipped_text);
    evaluation->skipped = skipped;
    look->took_ns = tnd_clock_ns() - began_ns;
}

void
evaluate_serve_order(struct evaluation *evaluation, struct order_services *services)
{
    services->evaluator = evaluation;
    services->evaluate = serve_columns;
    services->evaluate_answers = serve_answers;
    services->looked = count_looked;
}
