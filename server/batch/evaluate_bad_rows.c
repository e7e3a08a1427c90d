/* evaluate_bad_rows.c - removes only the bad rows of a bad batch. Stages report whole elements; a
 * stage that treats rows independently is run again with each row as a batch by itself. */
#include "batch/column_combine.h"
#include "batch/evaluate_private.h"
#include "content/content.h"
#include "core/must.h"

/* True if each row of the stages in (before, node] is independent of the others. Stages that draw
 * are not: their draws follow the number of the batch. */
static bool
minds_its_rows(const struct plan_node *node, const struct plan_node *before)
{
    for (; node != before; node = node->inputs[0])
        if (node->batch_wide || (node->stage != NULL && content_draws(node->content, node->stage)))
            return false;
    return before->depth > 0;
}

/* Rows of element `index` in a column; -1: it cannot be split into rows. */
static int64_t
rows_in(const struct column_spec *spec, const struct column *column, int64_t index)
{
    bool is_sparse = spec->kind == TUNDISH_SPARSE;
    int64_t rows;

    if (column->level_count == 0 || (is_sparse && column->level_count == 1))
        return -1;
    rows = level_length(&column->levels[0], index);
    if (column->dense_shape != NULL && column->dense_shape[index * column->level_count] != rows)
        return -1;
    return rows;
}

/* Split all batches into rows; `splits` says which rows belong to which batch. False: the columns
 * of a batch disagree on the row count. */
static bool
collect_rows(struct evaluation *evaluation, const struct frame *batches, struct frame *ret_rows,
             int64_t *splits)
{
    splits[0] = 0;
    for (int64_t b = 0; b < batches->count; b++) {
        int64_t rows = batches->column_count == 0
                           ? -1
                           : rows_in(&batches->schema->columns[0], &batches->columns[0], b);

        for (uint32_t i = 0; i < batches->column_count; i++)
            if (rows < 0 || rows_in(&batches->schema->columns[i], &batches->columns[i], b) != rows)
                return false;
        splits[b + 1] = splits[b] + rows;
    }
    evaluate_ready(evaluation, batches->schema, splits[batches->count], NULL, ret_rows);
    for (uint32_t i = 0; i < batches->column_count; i++) {
        struct column column;

        column_copy(&column, &batches->columns[i]);
        if (batches->schema->columns[i].kind == TUNDISH_SPARSE)
            column_state_shape(&column, evaluation->scratch);
        column_unbatch(&column, evaluation->scratch, &ret_rows->columns[i]);
    }
    return ret_rows->count > 0;
}

static void
put_together(struct evaluation *evaluation, const struct frame *rows, const int64_t *splits,
             struct frame *batches)
{
    must_in_debug(batches->column_count == rows->column_count);
    for (uint32_t i = 0; i < rows->column_count; i++) {
        column_batch(&rows->columns[i], splits, batches->count, evaluation->scratch,
                     &batches->columns[i]);
        if (batches->schema->columns[i].kind == TUNDISH_DENSE)
            column_settle(&batches->columns[i]);
    }
}

/* Run the stage with each row as a batch, to learn which rows are bad. */
static tundish_status
ask_rows(struct evaluation *evaluation, const struct plan_node *node, const struct frame *batches,
         const int64_t *splits, struct frame *rows)
{
    struct evaluation_counters *counters = evaluation->counters;
    int64_t *batch_of = evaluate_take(evaluation, (size_t)rows->count, sizeof *batch_of);
    int64_t *each = evaluate_take(evaluation, (size_t)rows->count + 1, sizeof *each);
    struct evaluate_request request = { .count = rows->count };
    struct frame singles, made;
    tundish_status status;

    for (int64_t b = 0; b < batches->count; b++)
        for (int64_t row = splits[b]; row < splits[b + 1]; row++)
            batch_of[row] = b;
    for (int64_t row = 0; row <= rows->count; row++)
        each[row] = row;
    request.outer = evaluate_outer_kept(evaluation, batches->outer, batch_of, rows->count);
    evaluate_ready(evaluation, rows->schema, rows->count, request.outer, &singles);
    put_together(evaluation, rows, each, &singles);
    evaluation->counters = NULL; /* the rows are counted already */
    status = evaluate_apply(evaluation, node, &request, &singles, &made);
    evaluation->counters = counters;
    must_in_debug(made.count == rows->count);
    rows->errors = made.errors;
    return status;
}

int64_t
evaluate_bad_row(struct evaluation *evaluation, const struct plan_node *node,
                 const struct frame *batches, int64_t index)
{
    struct frame one = *batches, rows;
    int64_t splits[2];

    must_in_debug(index < batches->count);
    if (!minds_its_rows(node, evaluate_before(node)))
        return -1;
    one.columns = evaluate_take(evaluation, batches->column_count, sizeof *one.columns);
    for (uint32_t i = 0; i < batches->column_count; i++)
        column_copy(&one.columns[i], &batches->columns[i]);
    one.outer = evaluate_outer_kept(evaluation, batches->outer, &index, 1);
    evaluate_gather(evaluation, &one, &index, 1);
    if (!collect_rows(evaluation, &one, &rows, splits) ||
        ask_rows(evaluation, node, &one, splits, &rows) != TUNDISH_OK ||
        rows.errors->bad_count == 0)
        return -1;
    return rows.errors->first_bad;
}

/* Say where the first bad row is from. */
static void
say_bad_row(struct evaluation *evaluation, const struct plan_node *node,
            const struct evaluate_request *request, const struct frame *batches,
            const int64_t *splits, struct frame_errors *errors)
{
    int64_t batch = 0;

    must_in_debug(errors->first_bad < splits[batches->count]);
    while (splits[batch + 1] <= errors->first_bad)
        batch++;
    evaluate_say_row(evaluation, node, request,
                     batches->kept != NULL ? batches->kept[batch] : batch,
                     errors->first_bad - splits[batch], errors);
}

tundish_status
evaluate_leave_out_rows(struct evaluation *evaluation, const struct plan_node *node,
                        const struct evaluate_request *request, struct frame *batches,
                        bool *ret_done)
{
    const struct plan_node *before = evaluate_before(node);
    int64_t *splits = evaluate_take(evaluation, (size_t)batches->count + 1, sizeof *splits);
    int64_t at = 0, begin = 0;
    struct frame rows;
    tundish_status status;

    *ret_done = false;
    if (!minds_its_rows(node, before) || !collect_rows(evaluation, batches, &rows, splits))
        return TUNDISH_OK;
    status = ask_rows(evaluation, node, batches, splits, &rows);
    if (status != TUNDISH_OK || rows.errors->bad_count == 0)
        return status;
    say_bad_row(evaluation, node, request, batches, splits, rows.errors);
    status = evaluate_settle(evaluation, &rows, before->depth - 1, &rows);
    if (status != TUNDISH_OK)
        return status;
    for (int64_t b = 0; b < batches->count; b++) {
        int64_t end = splits[b + 1];

        splits[b] = begin;
        while (at < rows.count && rows.kept[at] < end)
            at++;
        begin = at;
    }
    must_in_debug(begin == rows.count);
    splits[batches->count] = begin;
    put_together(evaluation, &rows, splits, batches);
    *ret_done = true;
    return TUNDISH_OK;
}
