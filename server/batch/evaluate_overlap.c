/* evaluate_overlap.c - batches of which each begins within the one before, as windows of a series
 * do: each row is made once, and copied into those that have it.
 */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/column_combine.h"
#include "column/words.h"
#include "core/must.h"

/* The rows of all batches, each once: batch i is those from begins[i] on. */
struct tape {
    uint64_t *words;
    uint32_t width;
    int64_t count;
    int64_t *begins;
};

/* Where a batch that begins at or after `from` goes on with what is on the tape: `shift` is tried
 * first. The tape's end: nowhere. */
static int64_t
find_begin(const struct tape *tape, int64_t from, int64_t shift, const struct run *run)
{
    size_t element_bytes = tape->width * sizeof *tape->words;
    int64_t rows = (int64_t)run->element_count;

    must_in_debug(from >= 0 && shift >= 0 && run->width == tape->width);
    for (int64_t at = from + shift, tries = 0; at < tape->count; at = from + tries++) {
        int64_t there = tape->count - at < rows ? tape->count - at : rows;

        if (memcmp(tape->words + (size_t)at * tape->width, run->words,
                   (size_t)there * element_bytes) == 0)
            return at;
    }
    return tape->count;
}

/* The same where both are views of one run, and what is on the tape ends with the batch before. */
static bool
goes_on(const struct tape *tape, int64_t from, const struct run *before, const struct run *run,
        int64_t *ret_begin)
{
    int64_t rows = (int64_t)before->element_count, offset;

    if (run->parent == NULL || run->parent != before->parent || run->in_pieces ||
        run->words < before->words || from + rows != tape->count)
        return false;
    offset = (run->words - before->words) / tape->width;
    *ret_begin = from + (offset < rows ? offset : rows);
    return true;
}

/* False: too few rows are in several batches. */
static bool
lay_out(struct evaluation *evaluation, const struct evaluate_request *request, uint32_t width,
        const int64_t *splits, struct tape *ret_tape)
{
    int64_t total = splits[request->count], shift = 0;
    const struct run *first = evaluate_run_at(request, 0), *second = evaluate_run_at(request, 1);
    struct tape tape = {
        .words = (uint64_t *)(uintptr_t)first->words,
        .width = width,
        .count = (int64_t)first->element_count,
    };

    if (first->element_count == 0 || second->element_count == 0 ||
        find_begin(&tape, 0, 0, second) == tape.count)
        return false;
    tape.words = evaluate_take(evaluation, (size_t)total * width, sizeof *tape.words);
    tape.begins = evaluate_take(evaluation, (size_t)request->count, sizeof *tape.begins);
    tape.count = 0;
    for (int64_t i = 0; i < request->count; i++) {
        const struct run *run = evaluate_run_at(request, i);
        int64_t from = i > 0 ? tape.begins[i - 1] : 0, begin = tape.count, there;

        if (run->element_count > 0 &&
            (i == 0 || !goes_on(&tape, from, evaluate_run_at(request, i - 1), run, &begin)))
            begin = find_begin(&tape, from, shift, run);
        there = tape.count - begin;
        shift = begin - from;
        tape.begins[i] = begin;
        if (there >= (int64_t)run->element_count)
            continue;
        memcpy(tape.words + (size_t)tape.count * width, run->words + (size_t)there * width,
               ((size_t)run->element_count - (size_t)there) * width * sizeof *tape.words);
        tape.count = begin + (int64_t)run->element_count;
    }
    must_in_debug(tape.count <= total);
    *ret_tape = tape;
    return tape.count <= total / 2;
}

/* Rows of one shape fit one batch, whichever they are. */
static bool
have_one_shape(const struct frame *rows)
{
    for (uint32_t i = 0; i < rows->column_count; i++) {
        const struct column *column = &rows->columns[i];

        if (column->indices != NULL || column->dense_shape != NULL)
            return false;
        for (uint32_t k = 0; k < column->level_count; k++)
            if (column->levels[k].uniform < 0)
                return false;
    }
    return true;
}

static void
copy_out(const struct tape *tape, const int64_t *splits, const struct column *column,
         size_t row_bytes, uint8_t *to, int64_t batch_count)
{
    for (int64_t i = 0; i < batch_count; i++) {
        size_t bytes = (size_t)(splits[i + 1] - splits[i]) * row_bytes;

        if (bytes > 0)
            memcpy(to, (const uint8_t *)column->values + (size_t)tape->begins[i] * row_bytes,
                   bytes);
        to += bytes;
    }
}

/* All rows, from those on the tape. */
static void
repeat_rows(struct evaluation *evaluation, const struct evaluate_request *request,
            const struct tape *tape, const int64_t *splits, struct frame *rows)
{
    rows->destinations = request->destinations;
    rows->destination_bytes = request->destination_bytes;
    must_in_debug(rows->count == tape->count);
    rows->count = splits[request->count];
    for (uint32_t i = 0; i < rows->column_count; i++) {
        struct column *column = &rows->columns[i];
        tundish_dtype dtype = rows->schema->columns[i].dtype;
        int64_t values_each = column->value_count / tape->count;
        size_t row_bytes = (size_t)values_each * column_value_bytes(dtype);
        uint8_t *values;

        must_in_debug(column->count == tape->count && column->value_count % tape->count == 0);
        if (dtype == TUNDISH_STRING)
            words_fill(evaluation->scratch, column->values, column->value_count, 1);
        values = dtype == TUNDISH_STRING
                     ? scratch_alloc(evaluation->scratch, (size_t)rows->count * row_bytes)
                     : frame_values(rows, i, (size_t)rows->count * row_bytes);
        copy_out(tape, splits, column, row_bytes, values, request->count);
        column->values = values;
        column->count = rows->count;
        column->value_count = rows->count * values_each;
    }
}

bool
evaluate_overlapping(struct evaluation *evaluation, const struct plan_node *node,
                     const struct evaluate_request *request, const int64_t *splits,
                     struct frame *ret_rows, tundish_status *ret_status)
{
    const struct plan_node *input = node->inputs[0];
    struct evaluate_request once = { .stride = input->width };
    uint64_t skipped = evaluation->skipped;
    tundish_status status;
    struct tape tape;

    if (request->count < 2 || request->outer != NULL || evaluation->observations != NULL ||
        !lay_out(evaluation, request, input->width, splits, &tape))
        return false;
    once.words = tape.words;
    once.count = tape.count;
    status = evaluate(evaluation, input, &once, ret_rows);
    /* A row that is left out counts once for each batch that has it. */
    if (status == TUNDISH_OK && (ret_rows->kept != NULL || !have_one_shape(ret_rows))) {
        evaluation->skipped = skipped;
        return false;
    }
    if (status == TUNDISH_OK)
        repeat_rows(evaluation, request, &tape, splits, ret_rows);
    *ret_status = status;
    return true;
}
