/* evaluate_batch.c - makes batches of rows, rows of batches, and batches from pieces of others. */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/column_combine.h"
#include "batch/pad.h"
#include "core/must.h"
#include "order/arguments.h"

static void
split_at_runs(const struct evaluate_request *request, int64_t *splits)
{
    splits[0] = 0;
    for (int64_t i = 0; i < request->count; i++)
        splits[i + 1] = splits[i] + (int64_t)evaluate_run_at(request, i)->element_count;
}

/* Request the rows of all runs at once, so that stages before the batch work on many rows. The rows
 * of a single run need no copy. */
static void
rows_of_runs(struct evaluation *evaluation, const struct evaluate_request *request, uint32_t width,
             struct evaluate_request *rows, const int64_t *splits)
{
    uint64_t *words;

    *rows = (struct evaluate_request){
        .stride = width,
        .count = splits[request->count],
        .destinations = request->destinations,
        .destination_bytes = request->destination_bytes,
    };
    if (request->count == 1) {
        rows->words = evaluate_run_at(request, 0)->words;
        return;
    }
    words = evaluate_take(evaluation, (size_t)rows->count * width, sizeof *words);
    for (int64_t i = 0; i < request->count; i++) {
        const struct run *run = evaluate_run_at(request, i);

        must_in_debug(run->width == width);
        if (run->element_count > 0)
            memcpy(words + (size_t)splits[i] * width, run->words,
                   run->element_count * width * sizeof *words);
    }
    rows->words = words;
}

/* The outer element of each row: that of its batch. */
static const struct frame *
outer_of_rows(struct evaluation *evaluation, const struct frame *outer, const int64_t *splits,
              int64_t batch_count)
{
    int64_t *index;

    if (outer == NULL)
        return NULL;
    must_in_debug(outer->count == batch_count);
    index = evaluate_take(evaluation, (size_t)splits[batch_count], sizeof *index);
    for (int64_t b = 0; b < batch_count; b++)
        for (int64_t row = splits[b]; row < splits[b + 1]; row++)
            index[row] = b;
    return evaluate_outer_kept(evaluation, outer, index, splits[batch_count]);
}

/* Rows to be made batches. `splits` are their boundaries as requested, `rows` lacks those that were
 * left out. */
struct batching {
    const struct plan_node *node;
    const struct evaluate_request *batches;
    const struct evaluate_request *rows_request; /* NULL for rows of pieces, which have no words */
    const int64_t *splits;
    struct frame rows;
};

/* The boundaries of the batches without the rows that were left out. */
static const int64_t *
splits_left(struct evaluation *evaluation, const struct batching *batching)
{
    const struct frame *rows = &batching->rows;
    int64_t batch_count = batching->batches->count, at = 0;
    int64_t *left;

    if (rows->kept == NULL)
        return batching->splits;
    left = evaluate_take(evaluation, (size_t)batch_count + 1, sizeof *left);
    left[0] = 0;
    for (int64_t b = 0; b < batch_count; b++) {
        while (at < rows->count && rows->kept[at] < batching->splits[b + 1])
            at++;
        left[b + 1] = at;
    }
    must_in_debug(left[batch_count] == rows->count);
    return left;
}

static bool
pads(const struct plan_node *node)
{
    const struct batch_arguments *arguments = node->arguments;

    return node->order->form == ORDER_BATCHES && arguments->rows == ORDER_ROWS_PADDED;
}

/* Leave out rows that do not fit their batch. If the plan does not know a rank, a batch may also
 * exceed RANK_MAX dimensions. */
static tundish_status
leave_out_unfit(struct evaluation *evaluation, struct batching *batching)
{
    const struct plan_node *node = batching->node;
    struct frame *rows = &batching->rows;

    must_in_debug(rows->column_count == node->schema.count);
    for (uint32_t i = 0; i < rows->column_count; i++) {
        if (rows->columns[i].level_count == RANK_MAX)
            return tnd_fail(TUNDISH_E_DATA, "%s makes column '%s' more than %d-dimensional",
                            node->name, node->schema.columns[i].name, RANK_MAX);
        if (node->schema.columns[i].kind != TUNDISH_DENSE || rows->columns[i].level_count == 0)
            continue;
        if (pads(node))
            pad_check_rows(node, i, rows);
        else
            evaluate_check_shapes(node, i, splits_left(evaluation, batching),
                                  batching->batches->count, rows);
    }
    if (rows->errors->bad_count > 0 && batching->rows_request != NULL)
        evaluate_say_where(evaluation, node, batching->rows_request, NULL, rows);
    /* 0: of elements that no stage has batched, such as those of a program. */
    return evaluate_settle(evaluation, rows, node->depth > 0 ? node->depth - 1 : 0, rows);
}

/* True for one scalar per row: the rows of a batch are then a single list. Most columns are like
 * this, and for small batches the cost per column dominates. */
static bool
is_plain(const struct column *rows)
{
    return rows->level_count == 0 && rows->indices == NULL && rows->dense_shape == NULL;
}

static void
batch_plain(const struct column *rows, struct column *batch)
{
    must_in_debug(is_plain(rows));
    column_set_scalars(batch, 1, rows->values);
    batch->value_count = rows->value_count;
    batch->level_count = 1;
    batch->levels[0] = (struct level){ .uniform = rows->value_count };
}

static bool
is_settled(const struct column *column)
{
    return column->level_count == 1 && column->levels[0].uniform >= 0;
}

static tundish_status
finish_batches(struct evaluation *evaluation, const struct plan_node *node, struct frame *frame)
{
    bool pad = pads(node);
    /* Taken before padding, which also changes the column that gives the lengths. */
    const int64_t *bucket_lengths = pad ? pad_bucket_lengths(node, frame) : NULL;

    must_in_debug(frame->schema == &node->schema);
    for (uint32_t i = 0; i < frame->column_count; i++) {
        const struct column_spec *spec = &frame->schema->columns[i];
        tundish_status status = TUNDISH_OK;

        if (spec->kind == TUNDISH_SPARSE)
            column_state_shape(&frame->columns[i], evaluation->scratch);
        if (spec->kind != TUNDISH_DENSE || (!pad && is_settled(&frame->columns[i])))
            continue;
        if (pad)
            status = pad_column(node, i, bucket_lengths, frame);
        if (status != TUNDISH_OK)
            return status;
        column_settle(&frame->columns[i]);
    }
    return TUNDISH_OK;
}

static tundish_status
put_together(struct evaluation *evaluation, struct batching *batching, struct frame *ret_frame)
{
    const struct plan_node *node = batching->node;
    const struct evaluate_request *batches = batching->batches;
    const struct frame *rows = &batching->rows;
    tundish_status status = leave_out_unfit(evaluation, batching);
    const int64_t *splits;

    if (status != TUNDISH_OK)
        return status;
    splits = splits_left(evaluation, batching);
    evaluate_ready(evaluation, &node->schema, batches->count, batches->outer, ret_frame);
    for (uint32_t i = 0; i < rows->column_count; i++)
        if (batches->count == 1 && is_plain(&rows->columns[i]))
            batch_plain(&rows->columns[i], &ret_frame->columns[i]);
        else
            column_batch(&rows->columns[i], splits, batches->count, evaluation->scratch,
                         &ret_frame->columns[i]);
    return finish_batches(evaluation, node, ret_frame);
}

tundish_status
evaluate_batch(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    int64_t *splits = evaluate_take(evaluation, (size_t)request->count + 1, sizeof *splits);
    struct evaluate_request rows_request;
    struct batching batching = {
        .node = node, .batches = request, .rows_request = &rows_request, .splits = splits
    };
    tundish_status status;

    split_at_runs(request, splits);
    if (!pads(node) &&
        evaluate_overlapping(evaluation, node, request, splits, &batching.rows, &status)) {
        batching.rows_request = NULL;
        return status == TUNDISH_OK ? put_together(evaluation, &batching, ret_frame) : status;
    }
    rows_of_runs(evaluation, request, input->width, &rows_request, splits);
    rows_request.outer = outer_of_rows(evaluation, request->outer, splits, request->count);
    status = evaluate(evaluation, input, &rows_request, &batching.rows);
    return status == TUNDISH_OK ? put_together(evaluation, &batching, ret_frame) : status;
}

uint64_t *
evaluate_element_of_row(struct evaluation *evaluation, const struct plan_node *node,
                        const uint64_t *row)
{
    uint64_t *element = evaluate_take(evaluation, node->width, sizeof *element);

    for (uint32_t i = 0; i < node->width; i++) {
        struct order_gathered gathered;
        struct run *run;

        if ((node->run_words >> i & 1) == 0) {
            element[i] = *row++;
            continue;
        }
        gathered = order_gathered(node, i);
        must_in_debug(gathered.elements != NULL);
        run = evaluate_take(evaluation, 1, sizeof *run);
        *run = (struct run){
            .count_of_owners = 1,
            .width = gathered.elements->width,
            .run_words = gathered.elements->run_words,
            .element_count = 1,
            .row_count = 1,
            .in_pieces = gathered.in_pieces,
            .words = gathered.in_pieces
                         ? evaluate_element_of_row(evaluation, gathered.elements, row)
                         : row,
        };
        row += order_row_width(node, i);
        element[i] = run_word(run);
    }
    return element;
}

static void
take_off_batches(struct evaluation *evaluation, const struct plan_node *node,
                 const struct frame *batches, const struct frame *outer, struct frame *ret_frame)
{
    must_in_debug(batches->column_count == node->schema.count);
    evaluate_ready(evaluation, &node->schema, batches->count, outer, ret_frame);
    for (uint32_t i = 0; i < batches->column_count; i++) {
        struct column column;

        column_copy(&column, &batches->columns[i]);
        if (batches->schema->columns[i].kind == TUNDISH_SPARSE)
            column_state_shape(&column, evaluation->scratch);
        column_unbatch(&column, evaluation->scratch, &ret_frame->columns[i]);
    }
    if (ret_frame->column_count > 0)
        ret_frame->count = ret_frame->columns[0].count;
}

/* Which of the single-row batches still have their row: one whose row was left out is empty. */
static const int64_t *
rows_kept(struct evaluation *evaluation, const struct frame *batches, int64_t row_count)
{
    int64_t *kept;
    int64_t left = 0;

    if (row_count == batches->count || batches->column_count == 0)
        return batches->kept;
    kept = evaluate_take(evaluation, (size_t)batches->count, sizeof *kept);
    for (int64_t i = 0; i < batches->count; i++)
        if (level_length(&batches->columns[0].levels[0], i) > 0)
            kept[left++] = batches->kept != NULL ? batches->kept[i] : i;
    must_in_debug(left == row_count); /* each had one row */
    return kept;
}

/* Evaluate each row as a batch of one, and unbatch those. This is exact, because batches whose
 * stages mix rows are unbatched by evaluate_content_rows instead. */
tundish_status
evaluate_unbatch(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *words =
        evaluate_take(evaluation, (size_t)request->count * input->width, sizeof *words);
    struct evaluate_request inner = {
        .words = words, .stride = input->width, .count = request->count, .outer = request->outer
    };
    struct frame batches;
    tundish_status status;

    for (int64_t i = 0; i < request->count; i++)
        memcpy(words + (size_t)i * input->width,
               evaluate_element_of_row(evaluation, input,
                                       request->words + (size_t)i * request->stride),
               input->width * sizeof *words);
    status = evaluate(evaluation, input, &inner, &batches);
    if (status != TUNDISH_OK)
        return status;
    take_off_batches(evaluation, node, &batches, request->outer, ret_frame);
    ret_frame->kept = rows_kept(evaluation, &batches, ret_frame->count);
    return TUNDISH_OK;
}

/* Rows that only content has: the last word is the number of the row in its element. Rows of one
 * element usually arrive together, so the element is evaluated once for all of them. */
tundish_status
evaluate_content_rows(struct evaluation *evaluation, const struct plan_node *node,
                      const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *words =
        evaluate_take(evaluation, (size_t)request->count * input->width, sizeof *words);
    int64_t *element = evaluate_take(evaluation, (size_t)request->count, sizeof *element);
    int64_t *origin = evaluate_take(evaluation, (size_t)request->count, sizeof *origin);
    struct evaluate_request inner = { .words = words, .stride = input->width };
    uint64_t skipped = evaluation->skipped;
    struct frame batches;
    tundish_status status;

    for (int64_t i = 0; i < request->count; i++) {
        const uint64_t *row = request->words + (size_t)i * request->stride;
        uint64_t *next = words + (size_t)inner.count * input->width;

        if (inner.count == 0 || memcmp(next - input->width, row, input->width * sizeof *row) != 0) {
            memcpy(next, row, input->width * sizeof *row);
            origin[inner.count++] = i;
        }
        element[i] = inner.count - 1;
    }
    inner.outer = evaluate_outer_kept(evaluation, request->outer, origin, inner.count);
    status = evaluate(evaluation, input, &inner, &batches);
    evaluation->skipped = skipped; /* the order has counted them when it counted the rows */
    if (status == TUNDISH_OK && batches.kept != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "%s: the element of this row is bad", node->name);
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < request->count && batches.column_count > 0; i++)
        element[i] = level_begin(&batches.columns[0].levels[0], element[i]) +
                     (int64_t)request->words[(size_t)i * request->stride + input->width];
    take_off_batches(evaluation, node, &batches, request->outer, ret_frame);
    evaluate_gather(evaluation, ret_frame, element, request->count);
    return TUNDISH_OK;
}

/* Concatenate the rows of several batches. */
static tundish_status
join_rows(struct evaluation *evaluation, const struct plan_node *node, const struct frame *pieces,
          uint32_t piece_count, struct frame *rows)
{
    struct column *columns = evaluate_take(evaluation, piece_count, sizeof *columns);

    must_in_debug(piece_count > 0);
    for (uint32_t c = 0; c < node->schema.count; c++) {
        tundish_status status;

        for (uint32_t p = 0; p < piece_count; p++)
            column_unbatch(&pieces[p].columns[c], evaluation->scratch, &columns[p]);
        status = evaluate_check_levels(node, columns, piece_count, c);
        if (status != TUNDISH_OK)
            return status;
        column_join(columns, piece_count, node->schema.columns[c].dtype, evaluation->scratch,
                    &rows->columns[c]);
        if (rows->columns[c].count != rows->count)
            return tnd_fail(TUNDISH_E_DATA,
                            "%s: columns '%s' and '%s' do not have the same number of rows",
                            node->name, node->schema.columns[0].name, node->schema.columns[c].name);
    }
    return TUNDISH_OK;
}

/* Rows of the element of a piece, as the order counted them; -1: content decides. */
static int64_t
counted_rows(const struct plan_node *node, const uint64_t *piece)
{
    const struct plan_node *input = node->inputs[0];
    const struct rebatch_arguments *arguments = node->arguments;
    uint64_t rows;

    if (arguments->rows != 0)
        return arguments->rows;
    must(run_words_rows(piece, input->width, input->run_words, &rows));
    return (int64_t)rows;
}

/* Cut the rows of a piece from column `index` of its element. The column must have `counted` rows
 * (-1: any), or rows would be lost or cut where there are none. */
static tundish_status
cut_piece(struct evaluation *evaluation, const struct plan_node *node, const uint64_t *piece,
          int64_t counted, uint32_t index, struct frame *frame)
{
    const struct column_spec *spec = &node->schema.columns[index];
    struct column *column = &frame->columns[index];
    int64_t begin = (int64_t)piece[node->inputs[0]->width];
    int64_t end = begin + (int64_t)piece[node->inputs[0]->width + 1], rows;

    must_in_debug(column->count == 1);
    if (column->level_count == 0)
        return tnd_fail(TUNDISH_E_DATA, "%s: column '%s' is a scalar: it has no rows", node->name,
                        spec->name);
    if (spec->kind == TUNDISH_SPARSE)
        column_state_shape(column, evaluation->scratch);
    rows = column_rows(column);
    if (counted >= 0 && rows != counted)
        return tnd_fail(TUNDISH_E_DATA, "%s: column '%s' has %lld rows in a batch of %lld",
                        node->name, spec->name, (long long)rows, (long long)counted);
    end = end < rows ? end : rows;
    column_slice(column, spec->dtype, begin < end ? begin : end, end, evaluation->scratch, column);
    return TUNDISH_OK;
}

/* Evaluate one piece of a run. If bad rows were left out, its element has fewer rows than
 * counted. */
static tundish_status
evaluate_piece(struct evaluation *evaluation, const struct plan_node *node, const uint64_t *words,
               const struct frame *outer, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    struct evaluate_request request = {
        .words = words, .stride = input->width, .count = 1, .outer = outer
    };
    const struct rebatch_arguments *arguments = node->arguments;
    uint64_t skipped = evaluation->skipped;
    tundish_status status = evaluate(evaluation, input, &request, ret_frame);
    int64_t counted;

    if (status != TUNDISH_OK || !node->cuts_content)
        return status;
    counted = evaluation->skipped > skipped ? -1 : counted_rows(node, words);
    if (words[input->width] > 0 ||
        arguments->rows < 0) /* counted already, with the first piece or by the order */
        evaluation->skipped = skipped;
    for (uint32_t i = 0;
         status == TUNDISH_OK && ret_frame->count > 0 && i < ret_frame->column_count; i++)
        status = cut_piece(evaluation, node, words, counted, i, ret_frame);
    return status;
}

/* Evaluate the pieces of all elements. `splits`: where the rows of each element begin. */
static tundish_status
evaluate_pieces(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *pieces, int64_t *splits)
{
    uint32_t at = 0;

    splits[0] = 0;
    for (int64_t i = 0; i < request->count; i++) {
        const struct run *run = evaluate_run_at(request, i);
        const struct frame *outer = evaluate_outer_kept(evaluation, request->outer, &i, 1);

        splits[i + 1] = splits[i];
        for (uint64_t p = 0; p < run->element_count; p++, at++) {
            tundish_status status =
                evaluate_piece(evaluation, node, run->words + p * run->width, outer, &pieces[at]);

            if (status != TUNDISH_OK)
                return status;
            if (pieces[at].count > 0 && pieces[at].column_count > 0)
                splits[i + 1] += level_length(&pieces[at].columns[0].levels[0], 0);
        }
    }
    return TUNDISH_OK;
}

void
evaluate_none(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    evaluate_ready(evaluation, &node->schema, 0, request->outer, ret_frame);
    for (uint32_t c = 0; c < node->schema.count; c++)
        ret_frame->columns[c] = column_of_none(&node->schema.columns[c]);
}

/* rebatch and deal_carry: make batches from pieces of others. */
tundish_status
evaluate_rebatched(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *ret_frame)
{
    int64_t *splits = evaluate_take(evaluation, (size_t)request->count + 1, sizeof *splits);
    struct batching batching = { .node = node, .batches = request, .splits = splits };
    struct frame *pieces;
    uint32_t piece_count = 0;
    tundish_status status;

    for (int64_t i = 0; i < request->count; i++)
        piece_count += (uint32_t)evaluate_run_at(request, i)->element_count;
    pieces = evaluate_take(evaluation, piece_count, sizeof *pieces);
    status = evaluate_pieces(evaluation, node, request, pieces, splits);
    if (status != TUNDISH_OK)
        return status;
    if (piece_count == 0) { /* no piece at all, so the size of a row is unknown */
        evaluate_none(evaluation, node, request, ret_frame);
        return TUNDISH_OK;
    }
    evaluate_ready(evaluation, &node->schema, splits[request->count], NULL, &batching.rows);
    status = join_rows(evaluation, node, pieces, piece_count, &batching.rows);
    return status == TUNDISH_OK ? put_together(evaluation, &batching, ret_frame) : status;
}
