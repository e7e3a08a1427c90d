/* evaluate_kept.c - elements of which some are kept from a look of the order (kept_rows.h): these
 * are taken, the others made, and all put together as they were wanted. */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/kept_rows.h"
#include "column/words.h"
#include "core/must.h"

/* Make those that are missing. */
static tundish_status
make_missing(struct evaluation *evaluation, const struct plan_node *node,
             const struct evaluate_request *request, const int64_t *missing, int64_t count,
             struct frame *ret_frame)
{
    uint64_t *words = evaluate_take(evaluation, (size_t)count * node->width, sizeof *words);
    struct evaluate_request inner = { .words = words, .stride = node->width, .count = count };
    tundish_status status;

    must_in_debug(count > 0 && request->outer == NULL);
    for (int64_t i = 0; i < count; i++)
        memcpy(words + (size_t)i * node->width,
               request->words + (size_t)missing[i] * request->stride, node->width * sizeof *words);
    status = evaluate_anew(evaluation, node, &inner, ret_frame);
    /* Notes about texts do not go with them where they are put together. */
    for (uint32_t i = 0; status == TUNDISH_OK && i < ret_frame->column_count; i++)
        if (node->schema.columns[i].dtype == TUNDISH_STRING)
            words_fill(evaluation->scratch, ret_frame->columns[i].values,
                       ret_frame->columns[i].value_count, 1);
    return status;
}

static void
frame_of_piece(struct evaluation *evaluation, const struct plan_node *node,
               const struct kept_piece *piece, struct frame *ret_frame)
{
    must_in_debug(piece->count > 0);
    evaluate_ready(evaluation, &node->schema, piece->count, NULL, ret_frame);
    for (uint32_t i = 0; i < ret_frame->column_count; i++)
        kept_piece_column(piece, i, node->schema.columns[i].dtype, evaluation->scratch,
                          &ret_frame->columns[i]);
}

/* Columns of unknown rank may differ. Whether that is an error is seen where all are made. */
static bool
are_alike(const struct frame *parts, uint32_t part_count)
{
    for (uint32_t p = 1; p < part_count; p++)
        for (uint32_t i = 0; i < parts->column_count; i++)
            if (parts[p].columns[i].level_count != parts->columns[i].level_count)
                return false;
    return true;
}

bool
evaluate_kept(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame,
              tundish_status *ret_status)
{
    const struct kept_want want = {
        .node = node,
        .words = request->words,
        .stride = request->stride,
        .count = request->count,
        .scratch = evaluation->scratch,
    };
    size_t count = (size_t)request->count;
    struct kept_piece *pieces = evaluate_take(evaluation, count, sizeof *pieces);
    int64_t *origin = evaluate_take(evaluation, count, sizeof *origin);
    int64_t *missing = evaluate_take(evaluation, count, sizeof *missing);
    uint64_t skipped = evaluation->skipped;
    int64_t missing_count, total = 0;
    struct frame *parts;
    uint32_t part_count =
        kept_rows_take(evaluation->kept, &want, pieces, origin, missing, &missing_count);

    if (part_count == 0)
        return false;
    parts = evaluate_take(evaluation, part_count + 1, sizeof *parts);
    for (uint32_t p = 0; p < part_count; p++) {
        frame_of_piece(evaluation, node, &pieces[p], &parts[p]);
        total += pieces[p].count;
    }
    must_in_debug(total + missing_count == request->count);
    if (missing_count > 0) {
        struct frame *made = &parts[part_count];

        *ret_status = make_missing(evaluation, node, request, missing, missing_count, made);
        if (*ret_status != TUNDISH_OK)
            return true;
        for (int64_t i = 0; i < made->count; i++)
            origin[total++] = missing[made->kept != NULL ? made->kept[i] : i];
        part_count += made->count > 0;
    }
    if (!are_alike(parts, part_count)) {
        evaluation->skipped = skipped;
        return false;
    }
    *ret_status =
        evaluate_join(evaluation, node, request, parts, part_count, origin, total, ret_frame);
    return true;
}
