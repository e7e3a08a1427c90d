/* evaluate_batch.c - rows to batches, batches to rows, and slices cut from them. */
#include "batch/evaluate_parts.h"

#include <stdio.h>
#include <string.h>

#include "batch/combine.h"
#include "batch/pad.h"

/* --- batches -----------------------------------------------------------------------------------
 */

static const struct run *
run_at(const struct evaluate_request *request, int64_t element)
{
    return run_of_word(request->words[(size_t)element * request->stride]);
}

/* The rows of all runs as one request. */
static void
rows_of_runs(struct evaluation *evaluation, const struct evaluate_request *request, uint32_t width,
             struct evaluate_request *rows, int64_t *splits)
{
    uint64_t *words;

    splits[0] = 0;
    for (int64_t i = 0; i < request->count; i++)
        splits[i + 1] = splits[i] + (int64_t)run_at(request, i)->element_count;
    *rows = (struct evaluate_request){ .stride = width, .count = splits[request->count] };
    if (request->count == 1) {
        rows->words = run_at(request, 0)->words;
        rows->destinations = request->destinations;
        rows->destination_bytes = request->destination_bytes;
        return;
    }
    words = evaluate_take(evaluation, (size_t)rows->count * width, sizeof *words);
    for (int64_t i = 0; i < request->count; i++) {
        const struct run *run = run_at(request, i);

        if (run->element_count > 0)
            memcpy(words + (size_t)splits[i] * width, run->words,
                   run->element_count * width * sizeof *words);
    }
    rows->words = words;
}

/* For each row, its batch's outer element. */
static const struct frame *
outer_of_rows(struct evaluation *evaluation, const struct frame *outer, const int64_t *splits,
              int64_t batch_count)
{
    int64_t *index;

    if (outer == NULL)
        return NULL;
    index = evaluate_take(evaluation, (size_t)splits[batch_count], sizeof *index);
    for (int64_t b = 0; b < batch_count; b++)
        for (int64_t row = splits[b]; row < splits[b + 1]; row++)
            index[row] = b;
    return evaluate_outer_kept(evaluation, outer, index, splits[batch_count]);
}

/* Rows that were left out make their batches shorter. */
static int64_t *
splits_of_kept(struct evaluation *evaluation, const int64_t *splits, int64_t batch_count,
               const struct frame *rows)
{
    int64_t *left = evaluate_take(evaluation, (size_t)batch_count + 1, sizeof *left);
    int64_t at = 0;

    left[0] = 0;
    for (int64_t b = 0; b < batch_count; b++) {
        while (at < rows->count && rows->kept[at] < splits[b + 1])
            at++;
        left[b + 1] = at;
    }
    return left;
}

/* "[2,3]": the shape of list `index` below level k. */
static void
row_shape(const struct column *column, uint32_t k, int64_t index, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");

    for (bool first = true; k < column->level_count && used < bytes; k++, first = false) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", first ? "" : ",",
                                 (long long)level_length(&column->levels[k], index));
        index = level_begin(&column->levels[k], index);
    }
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

/* Dense rows of one batch must be equally large. */
static void
check_rows(const struct plan_node *node, uint32_t column_index, struct frame *frame)
{
    const struct column_spec *spec = &node->schema.columns[column_index];
    const struct column *column = &frame->columns[column_index];

    if (spec->kind != TUNDISH_DENSE || column->level_count < 2)
        return;
    for (int64_t b = 0; b < column->count; b++) {
        int64_t begin = b, end = b + 1;

        for (uint32_t k = 0; k < column->level_count; k++) {
            const struct level *level = &column->levels[k];

            for (int64_t i = begin + 1; k > 0 && level->uniform < 0 && i < end; i++)
                if (level_length(level, i) != level_length(level, begin)) {
                    char one[128], other[128];

                    row_shape(column, k, begin, one, sizeof one);
                    row_shape(column, k, i, other, sizeof other);
                    frame_reject(frame, b,
                                 "%s: the rows of a batch must have the same shape, but in column "
                                 "'%s' one is %s and another %s; pad them (padded_batch) or use "
                                 "ragged_batch",
                                 node->name, spec->name, one, other);
                    return;
                }
            begin = level_begin(level, begin);
            end = level_begin(level, end);
        }
    }
}

/* A scalar a row: all rows together are one list. Most columns are so, and where a batch is a row
 * what is done for each column is what it takes. */
static bool
is_plain(const struct column *rows)
{
    return rows->level_count == 0 && rows->indices == NULL && rows->dense_shape == NULL;
}

static void
batch_plain(const struct column *rows, struct column *batch)
{
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
    bool pads = strcmp(node->name, "padded_batch") == 0 ||
                (strcmp(node->name, "bucket_by_sequence_length") == 0 &&
                 !spec_bool(node->stage, "no_padding"));

    for (uint32_t i = 0; i < frame->column_count; i++) {
        if (!pads && frame->schema->columns[i].kind == TUNDISH_DENSE &&
            is_settled(&frame->columns[i]))
            continue;
        if (pads && frame->schema->columns[i].kind == TUNDISH_DENSE) {
            tundish_status status = pad_column(node, i, frame);

            if (status != TUNDISH_OK)
                return status;
        } else if (!pads) {
            check_rows(node, i, frame);
        }
        if (frame->errors->bad_count == 0 && frame->schema->columns[i].kind == TUNDISH_DENSE)
            column_settle(&frame->columns[i]);
        if (frame->schema->columns[i].kind == TUNDISH_SPARSE)
            column_state_shape(&frame->columns[i], evaluation->scratch);
    }
    return evaluate_settle(evaluation, frame);
}

tundish_status
evaluate_batch(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    int64_t *splits = evaluate_take(evaluation, (size_t)request->count + 1, sizeof *splits);
    struct evaluate_request rows_request;
    struct frame rows;
    tundish_status status;

    rows_of_runs(evaluation, request, input->width, &rows_request, splits);
    rows_request.outer = outer_of_rows(evaluation, request->outer, splits, request->count);
    status = evaluate(evaluation, input, &rows_request, &rows);
    if (status != TUNDISH_OK)
        return status;
    if (rows.kept != NULL)
        splits = splits_of_kept(evaluation, splits, request->count, &rows);
    evaluate_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    for (uint32_t i = 0; i < rows.column_count; i++)
        if (request->count == 1 && is_plain(&rows.columns[i]))
            batch_plain(&rows.columns[i], &ret_frame->columns[i]);
        else
            column_batch(&rows.columns[i], splits, request->count, evaluation->scratch,
                         &ret_frame->columns[i]);
    return finish_batches(evaluation, node, ret_frame);
}

/* The element of `node` that holds just this row, in temporary runs. */
static uint64_t *
element_of_row(struct evaluation *evaluation, const struct plan_node *node, const uint64_t *row)
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
        run = evaluate_take(evaluation, 1, sizeof *run);
        *run = (struct run){
            .width = gathered.elements->width,
            .run_words = gathered.elements->run_words,
            .element_count = 1,
            .row_count = 1,
            .joined = gathered.joined,
            .words = gathered.joined ? element_of_row(evaluation, gathered.elements, row) : row,
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

/* Rows back out of a batch: each is evaluated as a batch of its own, which its stages - that mind
 * their own rows - cannot tell from the batch it was in. */
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
               element_of_row(evaluation, input, request->words + (size_t)i * request->stride),
               input->width * sizeof *words);
    status = evaluate(evaluation, input, &inner, &batches);
    if (status != TUNDISH_OK)
        return status;
    take_off_batches(evaluation, node, &batches, request->outer, ret_frame);
    /* A batch whose only row was left out is an empty one. */
    ret_frame->kept = batches.kept;
    return TUNDISH_OK;
}

/* Rows that only content has: the last word of each says which one of its element it is. Rows of
 * one element mostly come together, so it is made once for them. */
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
    if (status == TUNDISH_OK && batches.kept != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "%s: the element that a row is of is bad", node->name);
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < request->count && batches.column_count > 0; i++)
        element[i] = level_begin(&batches.columns[0].levels[0], element[i]) +
                     (int64_t)request->words[(size_t)i * request->stride + input->width];
    take_off_batches(evaluation, node, &batches, request->outer, ret_frame);
    evaluate_gather(evaluation, ret_frame, element, request->count);
    return TUNDISH_OK;
}

/* A batch should have `rows` rows: those that the order has counted, without the bad ones that were
 * left out. Stages that make more or fewer of them would have slices cut where nothing is. */
static tundish_status
check_row_count(const struct plan_node *node, const struct frame *batch, uint32_t index,
                uint64_t rows)
{
    const struct column *column = &batch->columns[index];
    int64_t made;

    if (batch->count == 0 || column->level_count == 0)
        return TUNDISH_OK;
    made =
        column->dense_shape != NULL ? column->dense_shape[0] : level_length(&column->levels[0], 0);
    if (made == (int64_t)rows)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA,
                    "%s: column '%s' has %lld rows in a batch of %llu, so that it cannot be cut "
                    "among others: let unbatch and batch follow the stage that changes how many "
                    "there are",
                    node->name, batch->schema->columns[index].name, (long long)made,
                    (unsigned long long)rows);
}

/* One batch, whole, and a range of its rows cut from it. */
static tundish_status
evaluate_cut(struct evaluation *evaluation, const struct plan_node *node,
             const struct evaluate_request *request, const uint64_t *element,
             struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *whole = evaluate_take(evaluation, input->width, sizeof *whole);
    struct evaluate_request inner = {
        .words = whole, .stride = input->width, .count = 1, .outer = request->outer
    };
    uint64_t begin = 0, count = 0, rows = 0, end;
    uint64_t skipped = evaluation->skipped;
    bool seen = false;
    tundish_status status;

    memcpy(whole, element, input->width * sizeof *whole);
    for (uint32_t w = 0; w < input->width; w++) {
        const struct run *run = run_of_word(element[w]);

        if (!(input->run_words >> w & 1) || run == NULL) /* NULL: of another branch */
            continue;
        if (seen && (run->begin != begin || run->row_count != count))
            return tnd_fail(TUNDISH_E_PIPELINE,
                            "%s: batches of different sizes were zipped and a stage looks at them "
                            "as a whole; batch behind zip instead",
                            node->name);
        seen = true;
        begin = run->begin;
        count = run->row_count;
        rows = run->parent != NULL ? run->parent->row_count : count;
        if (run->parent != NULL)
            whole[w] = run_word(run->parent);
    }
    status = evaluate(evaluation, input, &inner, ret_frame);
    skipped = evaluation->skipped - skipped;
    rows -= skipped < rows ? skipped : rows;
    end = begin + count < rows ? begin + count : rows;
    begin = begin < end ? begin : end;
    for (uint32_t i = 0; status == TUNDISH_OK && i < ret_frame->column_count; i++) {
        if (ret_frame->schema->columns[i].kind == TUNDISH_SPARSE)
            column_state_shape(&ret_frame->columns[i], evaluation->scratch);
        status = check_row_count(node, ret_frame, i, rows);
        if (status != TUNDISH_OK)
            break;
        column_slice(&ret_frame->columns[i], ret_frame->schema->columns[i].dtype, (int64_t)begin,
                     (int64_t)end, evaluation->scratch, &ret_frame->columns[i]);
    }
    return status;
}

/* Rows of several batches become one for each element; `splits` says which. */
static tundish_status
join_rows(struct evaluation *evaluation, const struct plan_node *node, struct column *columns,
          uint32_t part_count, uint32_t index, const int64_t *splits, struct frame *frame)
{
    struct column *column = &frame->columns[index];
    tundish_status status = evaluate_check_levels(node, columns, part_count, index);

    if (status != TUNDISH_OK)
        return status;
    column_join(columns, part_count, node->schema.columns[index].dtype, evaluation->scratch,
                column);
    column_batch(column, splits, frame->count, evaluation->scratch, column);
    check_rows(node, index, frame);
    if (frame->errors->bad_count == 0 && node->schema.columns[index].kind == TUNDISH_DENSE)
        column_settle(column);
    return TUNDISH_OK;
}

/* One piece of a joined run. */
static tundish_status
evaluate_piece(struct evaluation *evaluation, const struct plan_node *node, const uint64_t *words,
               const struct frame *outer, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    struct evaluate_request request = {
        .words = words, .stride = input->width, .count = 1, .outer = outer
    };

    return node->batch_wide ? evaluate_cut(evaluation, node, &request, words, ret_frame)
                            : evaluate(evaluation, input, &request, ret_frame);
}

/* The pieces of all elements, and where each element's rows begin. */
static tundish_status
evaluate_pieces(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *pieces, int64_t *splits)
{
    uint32_t at = 0;

    splits[0] = 0;
    for (int64_t i = 0; i < request->count; i++) {
        const struct run *run = run_at(request, i);
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

/* Nothing, of which the columns are known all the same. */
static void
evaluate_none(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    evaluate_ready(evaluation, &node->schema, 0, request->outer, ret_frame);
    for (uint32_t c = 0; c < node->schema.count; c++)
        ret_frame->columns[c] = column_of_none(&node->schema.columns[c]);
}

/* rebatch and deal_carry: batches put together from pieces of others (joined runs). */
tundish_status
evaluate_joined(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *ret_frame)
{
    int64_t *splits = evaluate_take(evaluation, (size_t)request->count + 1, sizeof *splits);
    struct frame *pieces;
    struct column *columns;
    uint32_t piece_count = 0;
    tundish_status status;

    for (int64_t i = 0; i < request->count; i++)
        piece_count += (uint32_t)run_at(request, i)->element_count;
    pieces = evaluate_take(evaluation, piece_count, sizeof *pieces);
    columns = evaluate_take(evaluation, piece_count, sizeof *columns);
    status = evaluate_pieces(evaluation, node, request, pieces, splits);
    if (status != TUNDISH_OK)
        return status;
    evaluate_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    if (piece_count == 0) { /* slices of no rows at all: nothing says how large a row is */
        evaluate_none(evaluation, node, request, ret_frame);
        return TUNDISH_OK;
    }
    for (uint32_t c = 0; c < node->schema.count; c++) {
        for (uint32_t p = 0; p < piece_count; p++)
            column_unbatch(&pieces[p].columns[c], evaluation->scratch, &columns[p]);
        status = join_rows(evaluation, node, columns, piece_count, c, splits, ret_frame);
        if (status != TUNDISH_OK)
            return status;
    }
    return evaluate_settle(evaluation, ret_frame);
}

/* deal_split where rows are made together: each slice is cut from its whole batch. */
tundish_status
evaluate_cuts(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *slices = evaluate_take(evaluation, (size_t)request->count, sizeof *slices);
    struct column *columns = evaluate_take(evaluation, (size_t)request->count, sizeof *columns);

    for (int64_t i = 0; i < request->count; i++) {
        const uint64_t *element = request->words + (size_t)i * request->stride;
        tundish_status status = evaluate_cut(evaluation, node, request, element, &slices[i]);

        if (status != TUNDISH_OK)
            return status;
    }
    if (request->count == 1) {
        *ret_frame = slices[0];
        ret_frame->schema = &node->schema;
        return TUNDISH_OK;
    }
    if (request->count == 0) {
        evaluate_none(evaluation, node, request, ret_frame);
        return TUNDISH_OK;
    }
    evaluate_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    for (uint32_t c = 0; c < node->schema.count; c++) {
        for (int64_t i = 0; i < request->count; i++)
            columns[i] = slices[i].columns[c];
        column_join(columns, (uint32_t)request->count, node->schema.columns[c].dtype,
                    evaluation->scratch, &ret_frame->columns[c]);
    }
    return TUNDISH_OK;
}
