/* evaluate_frame.c - what all forms need for frames: bad elements, outer elements, destinations. */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/column_combine.h"
#include "column/words.h"
#include "core/must.h"
#include "source/files/files.h"

void *
evaluate_take(struct evaluation *evaluation, size_t count, size_t bytes)
{
    return scratch_array(evaluation->scratch, count, bytes);
}

/* Make a frame for `count` elements of `schema`, with cleared columns. */
void
evaluate_ready(struct evaluation *evaluation, const struct schema *schema, int64_t count,
               const struct frame *outer, struct frame *frame)
{
    struct frame_errors *errors = evaluate_take(
        evaluation, 1, sizeof *errors + schema->count * sizeof(struct column)); /* after it */

    must_in_debug(count >= 0);
    frame_errors_clear(errors);
    *frame = (struct frame){
        .count = count,
        .column_count = schema->count,
        .columns = (struct column *)(void *)(errors + 1),
        .schema = schema,
        .scratch = evaluation->scratch,
        .errors = errors,
        .outer = outer,
        .other_files = evaluation->files != NULL ? source_other_files(evaluation->files) : NULL,
        .file_notes = evaluation->file_notes,
        .stop = evaluation->stop,
        .observations = evaluation->observations,
    };
    for (uint32_t i = 0; i < schema->count; i++)
        column_clear(&frame->columns[i]);
}

void
evaluate_gather(struct evaluation *evaluation, struct frame *frame, const int64_t *index,
                int64_t count)
{
    must_in_debug(count >= 0 && frame->column_count <= frame->schema->count);
    for (uint32_t i = 0; i < frame->column_count; i++) {
        struct column *column = &frame->columns[i];
        tundish_dtype dtype = frame->schema->columns[i].dtype;

        if (dtype == TUNDISH_STRING)
            words_fill(evaluation->scratch, column->values, column->value_count, 1);
        column_gather(column, dtype, index, count, evaluation->scratch, column);
    }
    frame->count = count;
}

/* Rows in element `index` of a frame whose elements have been batched `depth` times. */
static uint64_t
count_rows(const struct frame *frame, uint32_t depth, int64_t index)
{
    must_in_debug(index < frame->count);
    for (uint32_t i = 0; i < frame->column_count; i++) {
        const struct column *column = &frame->columns[i];
        int64_t begin = index, end = index + 1;

        if (frame->schema->columns[i].kind == TUNDISH_SPARSE || column->level_count < depth)
            continue;
        for (uint32_t k = 0; k < depth; k++) {
            begin = level_begin(&column->levels[k], begin);
            end = level_begin(&column->levels[k], end);
        }
        return (uint64_t)(end - begin);
    }
    return 1;
}

/* Leave out the bad elements, count their rows, and note which are left. The stage counts them
 * however often it meets them; evaluation->skipped is taken back where others count them. */
static void
drop_bad(struct evaluation *evaluation, const struct frame *before, uint32_t depth,
         struct frame *frame)
{
    const struct evaluation_counters *counters = evaluation->counters;
    const uint8_t *bad = frame->errors->bad;
    uint64_t skipped = 0;
    int64_t left = 0;
    int64_t *index = evaluate_take(evaluation, (size_t)frame->count, sizeof *index);
    int64_t *kept = evaluate_take(evaluation, (size_t)frame->count, sizeof *kept);

    for (int64_t i = 0; i < frame->count; i++) {
        if (bad[i]) {
            skipped += before == NULL ? 1 : count_rows(before, depth, i);
            continue;
        }
        kept[left] = frame->kept != NULL ? frame->kept[i] : i;
        index[left++] = i;
    }
    must_in_debug(left + frame->errors->bad_count == frame->count);
    evaluation->skipped += skipped;
    if (counters != NULL && counters->running != NULL)
        tnd_stats_add(&counters->running->skipped, skipped);
    memcpy(evaluation->skipped_text, frame->errors->text, sizeof evaluation->skipped_text);
    evaluate_gather(evaluation, frame, index, left);
    frame->kept = kept;
    frame_errors_clear(frame->errors);
}

/* After a stage has run: leave out bad elements, or fail because of them. */
tundish_status
evaluate_settle(struct evaluation *evaluation, const struct frame *before, uint32_t depth,
                struct frame *frame)
{
    if (frame->errors->bad_count == 0)
        return TUNDISH_OK;
    if (!evaluation->skip_bad)
        return tnd_fail(frame->errors->status, "%s", frame->errors->text);
    drop_bad(evaluation, before, depth, frame);
    return TUNDISH_OK;
}

/* The outer elements of the elements that are left. */
const struct frame *
evaluate_outer_kept(struct evaluation *evaluation, const struct frame *outer, const int64_t *kept,
                    int64_t count)
{
    struct frame *left;

    if (outer == NULL || kept == NULL)
        return outer;
    left = evaluate_take(evaluation, 1, sizeof *left);
    *left = *outer;
    left->columns = evaluate_take(evaluation, outer->column_count, sizeof *left->columns);
    memcpy(left->columns, outer->columns, outer->column_count * sizeof *left->columns);
    evaluate_gather(evaluation, left, kept, count);
    return left;
}

int32_t
evaluate_passed_from(const struct plan_node *node, const struct plan_node *input, uint32_t column)
{
    int32_t from = (int32_t)column;

    must_in_debug(column < node->schema.count);
    for (; node != input && from >= 0; node = node->inputs[0])
        from = node->schema.columns[from].passed_from;
    return from;
}

/* Pass destinations on to the columns of `input` that reach `node` unchanged, so that the stage
 * that makes a column can write it directly into the slot. */
void
evaluate_pass_destinations(struct evaluation *evaluation, const struct plan_node *node,
                           const struct plan_node *input,
                           const struct evaluate_request *outer_request,
                           struct evaluate_request *inner)
{
    void **destinations;
    size_t *bytes;

    inner->destinations = NULL;
    inner->destination_bytes = NULL;
    if (outer_request->destinations == NULL)
        return;
    destinations = evaluate_take(evaluation, input->schema.count, sizeof *destinations);
    bytes = evaluate_take(evaluation, input->schema.count, sizeof *bytes);
    memset(destinations, 0, input->schema.count * sizeof *destinations);
    memset(bytes, 0, input->schema.count * sizeof *bytes);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        int32_t from = evaluate_passed_from(node, input, i);

        if (from >= 0 && destinations[from] == NULL) {
            destinations[from] = outer_request->destinations[i];
            bytes[from] = outer_request->destination_bytes[i];
        }
    }
    inner->destinations = destinations;
    inner->destination_bytes = bytes;
}

/* Joined columns need equally many levels. Fails for columns of unknown rank that differ between
 * branches. */
tundish_status
evaluate_check_levels(const struct plan_node *node, const struct column *parts, uint32_t part_count,
                      uint32_t column)
{
    must_in_debug(part_count > 0 && column < node->schema.count);
    for (uint32_t p = 1; p < part_count; p++)
        if (parts[p].level_count != parts[0].level_count)
            return tnd_fail(TUNDISH_E_DATA,
                            "%s: column '%s' has %u dimensions in one element and %u in another, "
                            "so they do not fit one batch",
                            node->name, node->schema.columns[column].name, parts[0].level_count,
                            parts[p].level_count);
    return TUNDISH_OK;
}
