/* evaluate_empty.c - slices without rows. tf.distribute gives them the dimensions of the other
 * slices, so one row of the batch is evaluated and cut to none. */
#include "batch/column_combine.h"
#include "batch/evaluate_private.h"
#include "core/must.h"

bool
evaluate_is_empty_slice(const struct plan_node *node, const struct evaluate_request *request)
{
    bool any = false;

    for (uint32_t w = 0; w < node->width; w++) {
        const struct run *run = run_of_word(request->words[w]);

        if ((node->run_words >> w & 1) == 0 || run == NULL) /* NULL: of another branch */
            continue;
        if (run->row_count > 0 || run->parent == NULL || run->parent->row_count == 0)
            return false;
        any = true;
    }
    return any && request->count == 1;
}

/* Slice row `row` (or the last one) out of the batch of each run. */
static void
take_row(const struct plan_node *node, const uint64_t *element, uint64_t row, uint64_t *ret_words)
{
    for (uint32_t w = 0; w < node->width; w++) {
        struct run *run = run_of_word(element[w]);

        ret_words[w] = element[w];
        if ((node->run_words >> w & 1) != 0 && run != NULL) {
            uint64_t last = run->parent->row_count - 1;

            must_in_debug(run->parent->row_count > 0);
            ret_words[w] = run_word(run_slice(run->parent, row < last ? row : last, 1));
        }
    }
}

static uint64_t
most_rows(const struct plan_node *node, const uint64_t *element)
{
    uint64_t most = 0;

    for (uint32_t w = 0; w < node->width; w++) {
        const struct run *run = run_of_word(element[w]);

        if ((node->run_words >> w & 1) != 0 && run != NULL && run->parent->row_count > most)
            most = run->parent->row_count;
    }
    return most;
}

tundish_status
evaluate_empty_slice(struct evaluation *evaluation, const struct plan_node *node,
                     const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluation_counters *counters = evaluation->counters;
    uint64_t *words = evaluate_take(evaluation, node->width, sizeof *words);
    uint64_t skipped = evaluation->skipped, rows = most_rows(node, request->words);
    struct evaluate_request inner = *request;
    tundish_status status = TUNDISH_OK;
    bool is_left_out = true;

    must_in_debug(request->count == 1 && rows > 0);
    inner.words = words;
    inner.destinations = NULL;
    evaluation->counters = NULL; /* counted where the row is delivered */
    /* A bad row has no dimensions: try the next one. */
    for (uint64_t row = 0; status == TUNDISH_OK && is_left_out && row < rows; row++) {
        take_row(node, request->words, row, words);
        status = evaluate(evaluation, node->inputs[0], &inner, ret_frame);
        run_words_release(words, 1, node->width, node->run_words);
        is_left_out = evaluation->skipped > skipped;
        evaluation->skipped = skipped;
    }
    evaluation->counters = counters;
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < ret_frame->column_count; i++) {
        struct column *column = &ret_frame->columns[i];

        if (ret_frame->count == 0 || column->level_count == 0)
            continue;
        if (ret_frame->schema->columns[i].kind == TUNDISH_SPARSE)
            column_state_shape(column, evaluation->scratch);
        column_slice(column, ret_frame->schema->columns[i].dtype, 0, 0, evaluation->scratch,
                     column);
    }
    ret_frame->schema = &node->schema;
    return TUNDISH_OK;
}
