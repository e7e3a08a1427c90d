/* evaluate_slices.c - cuts slices from the content of elements, each column by its own row count.
 */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/column_combine.h"
#include "core/must.h"
#include "order/arguments.h"

/* Cut slice `slice` of `slices` from the one element in `column`: ceil(rows / slices) rows each
 * until none are left, as deal_split cuts runs. */
static void
cut_column(const struct evaluation *evaluation, tundish_dtype dtype, int64_t slice, int64_t slices,
           struct column *column)
{
    int64_t rows = column_rows(column);
    int64_t rows_each = rows / slices + (rows % slices != 0);
    int64_t begin = slice * rows_each < rows ? slice * rows_each : rows;
    int64_t end = begin + rows_each < rows ? begin + rows_each : rows;

    must_in_debug(0 <= slice && slice < slices);
    column_slice(column, dtype, begin, end, evaluation->scratch, column);
}

/* Make the element to be cut, or take the one that the slice before was cut from. */
static tundish_status
evaluate_uncut(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *element, struct frame *ret_frame)
{
    struct evaluated_whole *whole = evaluation->whole;
    size_t words_bytes = node->inputs[0]->width * sizeof *element->words;
    tundish_status status = TUNDISH_OK;
    struct column *columns;

    if (whole == NULL || element->outer != NULL || element->destinations != NULL)
        return evaluate(evaluation, node->inputs[0], element, ret_frame);
    if (whole->node == node && memcmp(whole->words, element->words, words_bytes) == 0) {
        *ret_frame = whole->frame;
    } else {
        status = evaluate(evaluation, node->inputs[0], element, ret_frame);
        if (status != TUNDISH_OK)
            return status;
        *whole = (struct evaluated_whole){ node, element->words, *ret_frame };
    }
    columns = evaluate_take(evaluation, ret_frame->column_count, sizeof *columns);
    memcpy(columns, ret_frame->columns, ret_frame->column_count * sizeof *columns);
    ret_frame->columns = columns;
    return TUNDISH_OK;
}

static tundish_status
evaluate_slice(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *element, struct frame *ret_frame)
{
    const struct slices_arguments *arguments = node->arguments;
    int64_t slice = (int64_t)element->words[node->width - 1];
    uint64_t skipped = evaluation->skipped;
    tundish_status status = evaluate_uncut(evaluation, node, element, ret_frame);

    if (status != TUNDISH_OK)
        return status;
    if (slice > 0) /* counted with the first slice */
        evaluation->skipped = skipped;
    for (uint32_t i = 0; ret_frame->count > 0 && i < ret_frame->column_count; i++) {
        const struct column_spec *spec = &node->schema.columns[i];
        struct column *column = &ret_frame->columns[i];

        if (column->level_count == 0)
            return tnd_fail(TUNDISH_E_DATA,
                            "column '%s' is a scalar here, so it cannot be divided among replicas",
                            spec->name);
        if (spec->kind == TUNDISH_SPARSE)
            column_state_shape(column, evaluation->scratch);
        cut_column(evaluation, spec->dtype, slice, arguments->slices, column);
    }
    return TUNDISH_OK;
}

tundish_status
evaluate_slices(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *slices = evaluate_take(evaluation, (size_t)request->count, sizeof *slices);
    struct column *columns = evaluate_take(evaluation, (size_t)request->count, sizeof *columns);
    const struct slices_arguments *arguments = node->arguments;
    bool is_whole = request->count == 1 && arguments->slices == 1;

    for (int64_t i = 0; i < request->count; i++) {
        struct evaluate_request element = {
            .words = request->words + (size_t)i * request->stride,
            .stride = node->width,
            .count = 1,
            .outer = request->outer,
            .destinations = is_whole ? request->destinations : NULL,
            .destination_bytes = request->destination_bytes,
        };
        tundish_status status = evaluate_slice(evaluation, node, &element, &slices[i]);

        if (status != TUNDISH_OK)
            return status;
    }
    if (request->count == 0) {
        evaluate_none(evaluation, node, request, ret_frame);
        return TUNDISH_OK;
    }
    if (request->count == 1) {
        *ret_frame = slices[0];
        ret_frame->schema = &node->schema;
        return TUNDISH_OK;
    }
    evaluate_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    for (uint32_t c = 0; c < node->inputs[0]->schema.count; c++) {
        for (int64_t i = 0; i < request->count; i++)
            columns[i] = slices[i].columns[c];
        column_join(columns, (uint32_t)request->count, node->schema.columns[c].dtype,
                    evaluation->scratch, &ret_frame->columns[c]);
    }
    return TUNDISH_OK;
}

/* How many rows the slice has, and how many of them, at its end, are repeated. */
static int64_t
count_even(const struct plan_node *node, const uint64_t *words, int64_t *ret_repeated)
{
    const struct slices_arguments *arguments = node->arguments;
    const struct run *run = NULL;
    uint64_t rows, begin = 0;

    for (uint32_t i = 0; i < node->width && run == NULL; i++)
        if ((node->run_words >> i & 1) != 0)
            run = run_of_word(words[i]);
    if (run == NULL)
        return *ret_repeated = 0;
    rows = run->row_count;
    if (node->cuts_content) {
        rows /= (uint64_t)arguments->slices;
        begin = words[node->width - 1] * rows;
    }
    *ret_repeated = (int64_t)run_repeated(run, begin, rows);
    must_in_debug(*ret_repeated <= (int64_t)rows);
    return (int64_t)rows;
}

static tundish_status
check_even(const struct plan_node *node, const struct frame *frame, int64_t index, int64_t rows)
{
    for (uint32_t i = 0; i < frame->column_count; i++) {
        const struct column *column = &frame->columns[i];

        if (column->level_count > 0 && node->schema.columns[i].kind != TUNDISH_SPARSE &&
            level_length(&column->levels[0], index) != rows)
            return tnd_fail(TUNDISH_E_DATA,
                            "even: repeat: column '%s' has %lld rows in a slice of %lld: a stage "
                            "after `batch` changes their number",
                            node->schema.columns[i].name,
                            (long long)level_length(&column->levels[0], index), (long long)rows);
    }
    return TUNDISH_OK;
}

tundish_status
evaluate_mask(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame input = *ret_frame;
    uint32_t last = node->schema.count - 1;
    int64_t *splits = evaluate_take(evaluation, (size_t)input.count + 1, sizeof *splits);
    int64_t *repeated = evaluate_take(evaluation, (size_t)input.count, sizeof *repeated);
    struct column *mask;
    uint8_t *values;

    must_in_debug(node->schema.count > 0 && input.count <= request->count);
    splits[0] = 0;
    for (int64_t i = 0; i < input.count; i++) {
        int64_t element = input.kept != NULL ? input.kept[i] : i;
        int64_t rows =
            count_even(node, request->words + (size_t)element * request->stride, &repeated[i]);
        tundish_status status = check_even(node, &input, i, rows);

        if (status != TUNDISH_OK)
            return status;
        splits[i + 1] = splits[i] + rows;
    }
    evaluate_ready(evaluation, &node->schema, input.count, request->outer, ret_frame);
    ret_frame->kept = input.kept;
    memcpy(ret_frame->columns, input.columns, last * sizeof *input.columns);
    values = request->destinations != NULL && request->destinations[last] != NULL &&
                     request->destination_bytes[last] == (size_t)splits[input.count]
                 ? request->destinations[last]
                 : evaluate_take(evaluation, (size_t)splits[input.count], 1);
    for (int64_t i = 0; i < input.count; i++) {
        int64_t own = splits[i + 1] - splits[i] - repeated[i];

        memset(values + splits[i], true, (size_t)own);
        memset(values + splits[i] + own, false, (size_t)repeated[i]);
    }
    mask = &ret_frame->columns[last];
    mask->count = input.count;
    mask->level_count = 1;
    mask->levels[0] = (struct level){ .uniform = -1, .splits = splits };
    mask->value_count = splits[input.count];
    mask->values = values;
    return TUNDISH_OK;
}
