/* evaluate.c - references to content, along the plan's tree. */
#include "batch/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/combine.h"
#include "batch/pad.h"
#include "content/flush.h"
#include "core/must.h"
#include "source/source.h"

/* --- frames ------------------------------------------------------------------------------------
 */

static void *
take(struct evaluation *evaluation, size_t count, size_t bytes)
{
    return scratch_array(evaluation->scratch, count, bytes);
}

/* A frame for `count` elements of `schema`, columns zeroed. */
static void
frame_ready(struct evaluation *evaluation, const struct schema *schema, int64_t count,
            const struct frame *outer, struct frame *frame)
{
    struct frame_errors *errors = take(evaluation, 1, sizeof *errors);

    *errors = (struct frame_errors){ 0 };
    *frame = (struct frame){
        .count = count,
        .column_count = schema->count,
        .columns = take(evaluation, schema->count, sizeof(struct column)),
        .schema = schema,
        .scratch = evaluation->scratch,
        .errors = errors,
        .outer = outer,
    };
    memset(frame->columns, 0, schema->count * sizeof(struct column));
}

static void
gather_columns(struct evaluation *evaluation, struct frame *frame, const int64_t *index,
               int64_t count)
{
    for (uint32_t i = 0; i < frame->column_count; i++)
        column_gather(&frame->columns[i], frame->schema->columns[i].dtype, index, count,
                      evaluation->scratch, &frame->columns[i]);
    frame->count = count;
}

/* Leave out the elements that are bad, and remember which are left. */
static void
drop_bad(struct evaluation *evaluation, struct frame *frame)
{
    const uint8_t *bad = frame->errors->bad;
    int64_t left = 0;
    int64_t *index = take(evaluation, (size_t)frame->count, sizeof *index);
    int64_t *kept = take(evaluation, (size_t)frame->count, sizeof *kept);

    for (int64_t i = 0; i < frame->count; i++)
        if (!bad[i]) {
            kept[left] = frame->kept != NULL ? frame->kept[i] : i;
            index[left++] = i;
        }
    evaluation->skipped += (uint64_t)frame->errors->bad_count;
    memcpy(evaluation->skipped_text, frame->errors->text, sizeof evaluation->skipped_text);
    gather_columns(evaluation, frame, index, left);
    frame->kept = kept;
    *frame->errors = (struct frame_errors){ 0 };
}

/* After a stage has run: bad elements are left out, or end it. */
static tundish_status
settle_errors(struct evaluation *evaluation, struct frame *frame)
{
    if (frame->errors->bad_count == 0)
        return TUNDISH_OK;
    if (!evaluation->skip_bad)
        return tnd_fail(frame->errors->status, "%s", frame->errors->text);
    drop_bad(evaluation, frame);
    return TUNDISH_OK;
}

/* The outer elements of those that are left. */
static const struct frame *
outer_of_kept(struct evaluation *evaluation, const struct frame *outer, const int64_t *kept,
              int64_t count)
{
    struct frame *left;

    if (outer == NULL || kept == NULL)
        return outer;
    left = take(evaluation, 1, sizeof *left);
    *left = *outer;
    left->columns = take(evaluation, outer->column_count, sizeof *left->columns);
    memcpy(left->columns, outer->columns, outer->column_count * sizeof *left->columns);
    gather_columns(evaluation, left, kept, count);
    return left;
}

/* --- where destinations go ---------------------------------------------------------------------
 */

/* Destinations of an input's columns, from those of the columns that pass through. */
static void
pass_destinations(struct evaluation *evaluation, const struct plan_node *node,
                  const struct plan_node *input, const struct evaluate_request *outer_request,
                  struct evaluate_request *inner)
{
    void **destinations;
    size_t *bytes;

    inner->destinations = NULL;
    inner->destination_bytes = NULL;
    if (outer_request->destinations == NULL)
        return;
    destinations = take(evaluation, input->schema.count, sizeof *destinations);
    bytes = take(evaluation, input->schema.count, sizeof *bytes);
    memset(destinations, 0, input->schema.count * sizeof *destinations);
    memset(bytes, 0, input->schema.count * sizeof *bytes);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        int32_t from = node->schema.columns[i].passed_from;

        if (from >= 0 && destinations[from] == NULL) {
            destinations[from] = outer_request->destinations[i];
            bytes[from] = outer_request->destination_bytes[i];
        }
    }
    inner->destinations = destinations;
    inner->destination_bytes = bytes;
}

/* --- the kinds of node -------------------------------------------------------------------------
 */

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
    };
    tundish_status status;

    frame_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    ret_frame->destinations = request->destinations;
    ret_frame->destination_bytes = request->destination_bytes;
    status = node->source->read(node->state, &read);
    return status != TUNDISH_OK ? status : settle_errors(evaluation, ret_frame);
}

static tundish_status
evaluate_content(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluate_request inner = *request;
    struct frame input;
    uint64_t mode;
    tundish_status status;

    pass_destinations(evaluation, node, node->inputs[0], request, &inner);
    status = evaluate(evaluation, node->inputs[0], &inner, &input);
    if (status != TUNDISH_OK)
        return status;
    frame_ready(evaluation, &node->schema, input.count,
                outer_of_kept(evaluation, request->outer, input.kept, input.count), ret_frame);
    input.outer = ret_frame->outer;
    input.errors = ret_frame->errors;
    ret_frame->kept = input.kept;
    ret_frame->destinations = input.kept == NULL ? request->destinations : NULL;
    ret_frame->destination_bytes = request->destination_bytes;
    for (uint32_t i = 0; i < node->schema.count; i++) {
        int32_t from = node->schema.columns[i].passed_from;

        if (from >= 0)
            ret_frame->columns[i] = input.columns[from];
    }
    mode = flush_begin();
    status = node->content->apply(node->state, &input, ret_frame);
    flush_end(mode);
    return status != TUNDISH_OK ? status : settle_errors(evaluation, ret_frame);
}

static tundish_status
evaluate_enumerate(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluate_request inner = *request;
    struct frame input;
    int64_t *index;
    tundish_status status;

    pass_destinations(evaluation, node, node->inputs[0], request, &inner);
    status = evaluate(evaluation, node->inputs[0], &inner, &input);
    if (status != TUNDISH_OK)
        return status;
    frame_ready(evaluation, &node->schema, input.count, request->outer, ret_frame);
    ret_frame->kept = input.kept;
    index = take(evaluation, (size_t)input.count, sizeof *index);
    for (int64_t i = 0; i < input.count; i++) {
        size_t element = (size_t)(input.kept != NULL ? input.kept[i] : i);

        index[i] = (int64_t)request->words[element * request->stride + node->width - 1];
    }
    column_set_scalars(&ret_frame->columns[0], input.count, index);
    memcpy(&ret_frame->columns[1], input.columns, input.column_count * sizeof *input.columns);
    return TUNDISH_OK;
}

/* Elements that every part still has, for each part: which of its own they are. */
static void
intersect(struct evaluation *evaluation, struct frame *parts, uint32_t part_count, int64_t count)
{
    uint8_t *left = take(evaluation, (size_t)count, 1);
    int64_t *kept = take(evaluation, (size_t)count, sizeof *kept);
    int64_t kept_count = 0;
    bool all = true;

    for (uint32_t p = 0; p < part_count; p++)
        all &= parts[p].kept == NULL;
    if (all)
        return;
    memset(left, 0, (size_t)count);
    for (uint32_t p = 0; p < part_count; p++)
        for (int64_t i = 0; i < parts[p].count; i++)
            left[parts[p].kept != NULL ? parts[p].kept[i] : i]++;
    for (int64_t i = 0; i < count; i++)
        if (left[i] == part_count)
            kept[kept_count++] = i;
    for (uint32_t p = 0; p < part_count; p++) {
        int64_t *index = take(evaluation, (size_t)kept_count, sizeof *index);

        for (int64_t i = 0, at = 0; i < kept_count; at++)
            if ((parts[p].kept != NULL ? parts[p].kept[at] : at) == kept[i])
                index[i++] = at;
        gather_columns(evaluation, &parts[p], index, kept_count);
        parts[p].kept = kept;
    }
}

static tundish_status
evaluate_zip(struct evaluation *evaluation, const struct plan_node *node,
             const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *parts = take(evaluation, node->input_count, sizeof *parts);
    uint32_t column = 0;

    for (uint32_t p = 0; p < node->input_count; p++) {
        const struct plan_node *input = node->inputs[p];
        struct evaluate_request inner = {
            .words = request->words + input->first_word,
            .stride = request->stride,
            .count = request->count,
            .outer = request->outer,
        };
        tundish_status status;

        if (request->destinations != NULL) {
            inner.destinations = request->destinations + column;
            inner.destination_bytes = request->destination_bytes + column;
        }
        status = evaluate(evaluation, input, &inner, &parts[p]);
        if (status != TUNDISH_OK)
            return status;
        column += input->schema.count;
    }
    intersect(evaluation, parts, node->input_count, request->count);
    frame_ready(evaluation, &node->schema, parts[0].count, request->outer, ret_frame);
    ret_frame->kept = parts[0].kept;
    column = 0;
    for (uint32_t p = 0; p < node->input_count; p++)
        for (uint32_t i = 0; i < parts[p].column_count; i++)
            ret_frame->columns[column++] = parts[p].columns[i];
    return TUNDISH_OK;
}

/* Whatever the ranks of the branches, joined columns need the same levels. Fails for columns of
 * unknown rank whose branches differ. */
static tundish_status
check_levels(const struct plan_node *node, const struct column *parts, uint32_t part_count,
             uint32_t column)
{
    for (uint32_t p = 1; p < part_count; p++)
        if (parts[p].level_count != parts[0].level_count)
            return tnd_fail(TUNDISH_E_DATA,
                            "%s: column '%s' has %u dimensions in one element and %u in another, "
                            "so they do not fit one batch",
                            node->name, node->schema.columns[column].name, parts[0].level_count,
                            parts[p].level_count);
    return TUNDISH_OK;
}

/* Join the frames of branches and bring their elements back into the order asked for. `origin`: for
 * each joined element its place in the request. */
static tundish_status
join_branches(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, const struct frame *parts,
              uint32_t part_count, const int64_t *origin, int64_t total, struct frame *ret_frame)
{
    int64_t *place = take(evaluation, (size_t)request->count, sizeof *place);
    int64_t *index = take(evaluation, (size_t)total, sizeof *index);
    int64_t *kept = take(evaluation, (size_t)total, sizeof *kept);
    struct column *columns = take(evaluation, part_count, sizeof *columns);
    int64_t left = 0;

    memset(place, -1, (size_t)request->count * sizeof *place);
    for (int64_t i = 0; i < total; i++)
        place[origin[i]] = i;
    for (int64_t i = 0; i < request->count; i++)
        if (place[i] >= 0) {
            kept[left] = i;
            index[left++] = place[i];
        }
    frame_ready(evaluation, &node->schema, total, request->outer, ret_frame);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        tundish_status status;

        for (uint32_t p = 0; p < part_count; p++)
            columns[p] = parts[p].columns[i];
        status = check_levels(node, columns, part_count, i);
        if (status != TUNDISH_OK)
            return status;
        column_join(columns, part_count, node->schema.columns[i].dtype, evaluation->scratch,
                    &ret_frame->columns[i]);
    }
    gather_columns(evaluation, ret_frame, index, left);
    ret_frame->kept = left == request->count ? NULL : kept;
    return TUNDISH_OK;
}

/* The elements of one branch, put together. Returns how many. */
static int64_t
select_branch(const struct evaluate_request *request, const struct plan_node *input,
              uint32_t branch, uint64_t *words, int64_t *origin)
{
    int64_t count = 0;

    for (int64_t i = 0; i < request->count; i++) {
        const uint64_t *element = request->words + (size_t)i * request->stride;

        if (element[0] != branch)
            continue;
        memcpy(words + (size_t)count * input->width, element + input->first_word,
               input->width * sizeof *words);
        origin[count++] = i;
    }
    return count;
}

/* concatenate, choose, sample: word 0 says which branch an element is of. */
static tundish_status
evaluate_branches(struct evaluation *evaluation, const struct plan_node *node,
                  const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *parts = take(evaluation, node->input_count, sizeof *parts);
    int64_t *origin = take(evaluation, (size_t)request->count, sizeof *origin);
    uint32_t part_count = 0;
    int64_t total = 0;

    for (uint32_t branch = 0; branch < node->input_count; branch++) {
        const struct plan_node *input = node->inputs[branch];
        uint64_t *words = take(evaluation, (size_t)request->count * input->width, sizeof *words);
        int64_t *here = take(evaluation, (size_t)request->count, sizeof *here);
        int64_t count = select_branch(request, input, branch, words, here);
        struct evaluate_request inner = {
            .words = words,
            .stride = input->width,
            .count = count,
            .outer = outer_of_kept(evaluation, request->outer, here, count),
        };
        struct frame *part = &parts[part_count];
        tundish_status status;

        if (count == 0 && !(request->count == 0 && branch == 0))
            continue;
        status = evaluate(evaluation, input, &inner, part);
        if (status != TUNDISH_OK)
            return status;
        for (int64_t i = 0; i < part->count; i++)
            origin[total++] = here[part->kept != NULL ? part->kept[i] : i];
        part_count++;
    }
    return join_branches(evaluation, node, request, parts, part_count, origin, total, ret_frame);
}

/* The outer element of each inner one: the columns that $name means in a body. */
static tundish_status
evaluate_outer(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, const struct frame **ret_outer)
{
    const struct plan_graph *body = node->body;
    struct evaluate_request outer_request = {
        .words = request->words + body->root->width,
        .stride = request->stride,
        .count = request->count,
        .outer = request->outer,
    };
    struct frame *outer = take(evaluation, 1, sizeof *outer);
    struct frame nearest;
    tundish_status status = evaluate(evaluation, node->inputs[0], &outer_request, &nearest);

    if (status != TUNDISH_OK)
        return status;
    if (nearest.kept != NULL)
        return tnd_fail(TUNDISH_E_DATA, "%s: an outer element is bad", node->name);
    frame_ready(evaluation, &body->outer_schema, request->count, NULL, outer);
    for (uint32_t i = 0; i < body->outer_schema.count; i++) {
        const char *name = body->outer_schema.columns[i].name;

        outer->columns[i] =
            i < nearest.column_count
                ? nearest.columns[i]
                : request->outer->columns[schema_find(request->outer->schema, name)];
    }
    *ret_outer = outer;
    return TUNDISH_OK;
}

static tundish_status
evaluate_body(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluate_request inner = *request;
    tundish_status status = TUNDISH_OK;

    inner.outer = NULL;
    if (node->body->captures)
        status = evaluate_outer(evaluation, node, request, &inner.outer);
    if (status == TUNDISH_OK)
        status = evaluate(evaluation, node->body->root, &inner, ret_frame);
    if (status == TUNDISH_OK) {
        ret_frame->schema = &node->schema;
        ret_frame->outer = request->outer;
    }
    return status;
}

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
    words = take(evaluation, (size_t)rows->count * width, sizeof *words);
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
    index = take(evaluation, (size_t)splits[batch_count], sizeof *index);
    for (int64_t b = 0; b < batch_count; b++)
        for (int64_t row = splits[b]; row < splits[b + 1]; row++)
            index[row] = b;
    return outer_of_kept(evaluation, outer, index, splits[batch_count]);
}

/* Rows that were left out make their batches shorter. */
static int64_t *
splits_of_kept(struct evaluation *evaluation, const int64_t *splits, int64_t batch_count,
               const struct frame *rows)
{
    int64_t *left = take(evaluation, (size_t)batch_count + 1, sizeof *left);
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

    if (spec->kind != TUNDISH_DENSE)
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

static tundish_status
finish_batches(struct evaluation *evaluation, const struct plan_node *node, struct frame *frame)
{
    bool pads = strcmp(node->name, "padded_batch") == 0 ||
                (strcmp(node->name, "bucket_by_sequence_length") == 0 &&
                 !spec_bool(node->stage, "no_padding"));

    for (uint32_t i = 0; i < frame->column_count; i++) {
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
    return settle_errors(evaluation, frame);
}

static tundish_status
evaluate_batch(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    int64_t *splits = take(evaluation, (size_t)request->count + 1, sizeof *splits);
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
    frame_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    for (uint32_t i = 0; i < rows.column_count; i++)
        column_batch(&rows.columns[i], splits, request->count, evaluation->scratch,
                     &ret_frame->columns[i]);
    return finish_batches(evaluation, node, ret_frame);
}

/* The element of `node` that holds just this row, in temporary runs. */
static uint64_t *
element_of_row(struct evaluation *evaluation, const struct plan_node *node, const uint64_t *row)
{
    uint64_t *element = take(evaluation, node->width, sizeof *element);

    for (uint32_t i = 0; i < node->width; i++) {
        struct order_gathered gathered;
        struct run *run;

        if ((node->run_words >> i & 1) == 0) {
            element[i] = *row++;
            continue;
        }
        gathered = order_gathered(node, i);
        run = take(evaluation, 1, sizeof *run);
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
    frame_ready(evaluation, &node->schema, batches->count, outer, ret_frame);
    for (uint32_t i = 0; i < batches->column_count; i++)
        column_unbatch(&batches->columns[i], &ret_frame->columns[i]);
    if (ret_frame->column_count > 0)
        ret_frame->count = ret_frame->columns[0].count;
}

/* Rows back out of a batch: each is evaluated as a batch of its own, which its stages - that mind
 * their own rows - cannot tell from the batch it was in. */
static tundish_status
evaluate_unbatch(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *words = take(evaluation, (size_t)request->count * input->width, sizeof *words);
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
static tundish_status
evaluate_content_rows(struct evaluation *evaluation, const struct plan_node *node,
                      const struct evaluate_request *request, struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *words = take(evaluation, (size_t)request->count * input->width, sizeof *words);
    int64_t *element = take(evaluation, (size_t)request->count, sizeof *element);
    int64_t *origin = take(evaluation, (size_t)request->count, sizeof *origin);
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
    inner.outer = outer_of_kept(evaluation, request->outer, origin, inner.count);
    status = evaluate(evaluation, input, &inner, &batches);
    if (status == TUNDISH_OK && batches.kept != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "%s: the element that a row is of is bad", node->name);
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < request->count && batches.column_count > 0; i++)
        element[i] = level_begin(&batches.columns[0].levels[0], element[i]) +
                     (int64_t)request->words[(size_t)i * request->stride + input->width];
    take_off_batches(evaluation, node, &batches, request->outer, ret_frame);
    gather_columns(evaluation, ret_frame, element, request->count);
    return TUNDISH_OK;
}

/* One batch, whole, and a range of its rows cut from it. */
static tundish_status
evaluate_cut(struct evaluation *evaluation, const struct plan_node *node,
             const struct evaluate_request *request, const uint64_t *element,
             struct frame *ret_frame)
{
    const struct plan_node *input = node->inputs[0];
    uint64_t *whole = take(evaluation, input->width, sizeof *whole);
    struct evaluate_request inner = {
        .words = whole, .stride = input->width, .count = 1, .outer = request->outer
    };
    uint64_t begin = 0, count = 0;
    bool seen = false;
    tundish_status status;

    memcpy(whole, element, input->width * sizeof *whole);
    for (uint32_t w = 0; w < input->width; w++) {
        const struct run *run = run_of_word(element[w]);

        if (!(input->run_words >> w & 1))
            continue;
        if (seen && (run->begin != begin || run->element_count != count))
            return tnd_fail(TUNDISH_E_PIPELINE,
                            "%s: batches of different sizes were zipped and a stage looks at them "
                            "as a whole; batch behind zip instead",
                            node->name);
        seen = true;
        begin = run->parent != NULL ? run->begin : 0;
        count = run->element_count;
        if (run->parent != NULL)
            whole[w] = run_word(run->parent);
    }
    status = evaluate(evaluation, input, &inner, ret_frame);
    for (uint32_t i = 0; status == TUNDISH_OK && i < ret_frame->column_count; i++)
        column_slice(&ret_frame->columns[i], ret_frame->schema->columns[i].dtype, (int64_t)begin,
                     (int64_t)(begin + count), evaluation->scratch, &ret_frame->columns[i]);
    return status;
}

/* Rows of several batches become one for each element; `splits` says which. */
static tundish_status
join_rows(struct evaluation *evaluation, const struct plan_node *node, struct column *columns,
          uint32_t part_count, uint32_t index, const int64_t *splits, struct frame *frame)
{
    struct column *column = &frame->columns[index];
    tundish_status status = check_levels(node, columns, part_count, index);

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
        const struct frame *outer = outer_of_kept(evaluation, request->outer, &i, 1);

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

/* rebatch and deal_carry: batches put together from pieces of others (joined runs). */
static tundish_status
evaluate_joined(struct evaluation *evaluation, const struct plan_node *node,
                const struct evaluate_request *request, struct frame *ret_frame)
{
    int64_t *splits = take(evaluation, (size_t)request->count + 1, sizeof *splits);
    struct frame *pieces;
    struct column *columns;
    uint32_t piece_count = 0;
    tundish_status status;

    for (int64_t i = 0; i < request->count; i++)
        piece_count += (uint32_t)run_at(request, i)->element_count;
    pieces = take(evaluation, piece_count, sizeof *pieces);
    columns = take(evaluation, piece_count, sizeof *columns);
    status = evaluate_pieces(evaluation, node, request, pieces, splits);
    if (status != TUNDISH_OK)
        return status;
    frame_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    if (piece_count == 0) { /* slices of no rows at all: nothing says how large a row is */
        frame_ready(evaluation, &node->schema, 0, request->outer, ret_frame);
        return TUNDISH_OK;
    }
    for (uint32_t c = 0; c < node->schema.count; c++) {
        for (uint32_t p = 0; p < piece_count; p++)
            column_unbatch(&pieces[p].columns[c], &columns[p]);
        status = join_rows(evaluation, node, columns, piece_count, c, splits, ret_frame);
        if (status != TUNDISH_OK)
            return status;
    }
    return settle_errors(evaluation, ret_frame);
}

/* deal_split where rows are made together: each slice is cut from its whole batch. */
static tundish_status
evaluate_cuts(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *slices = take(evaluation, (size_t)request->count, sizeof *slices);
    struct column *columns = take(evaluation, (size_t)request->count, sizeof *columns);

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
    frame_ready(evaluation, &node->schema, request->count, request->outer, ret_frame);
    for (uint32_t c = 0; request->count > 0 && c < node->schema.count; c++) {
        for (int64_t i = 0; i < request->count; i++)
            columns[i] = slices[i].columns[c];
        column_join(columns, (uint32_t)request->count, node->schema.columns[c].dtype,
                    evaluation->scratch, &ret_frame->columns[c]);
    }
    return TUNDISH_OK;
}

/* --- the tree ----------------------------------------------------------------------------------
 */

tundish_status
evaluate(struct evaluation *evaluation, const struct plan_node *node,
         const struct evaluate_request *request, struct frame *ret_frame)
{
    static const char *const batching[] = { "batch", "padded_batch", "ragged_batch", "window",
                                            "bucket_by_sequence_length" };
    static const char *const branching[] = { "concatenate", "choose_from_datasets",
                                             "sample_from_datasets" };
    tundish_status status;

    if (node->source != NULL)
        return evaluate_source(evaluation, node, request, ret_frame);
    if (node->content != NULL && node->order == NULL)
        return evaluate_content(evaluation, node, request, ret_frame);
    if (node->body != NULL)
        return evaluate_body(evaluation, node, request, ret_frame);
    for (size_t i = 0; i < sizeof batching / sizeof *batching; i++)
        if (strcmp(node->name, batching[i]) == 0)
            return evaluate_batch(evaluation, node, request, ret_frame);
    for (size_t i = 0; i < sizeof branching / sizeof *branching; i++)
        if (strcmp(node->name, branching[i]) == 0)
            return evaluate_branches(evaluation, node, request, ret_frame);
    if (strcmp(node->name, "zip") == 0)
        return evaluate_zip(evaluation, node, request, ret_frame);
    if (strcmp(node->name, "enumerate") == 0)
        return evaluate_enumerate(evaluation, node, request, ret_frame);
    if (strcmp(node->name, "unbatch") == 0)
        return node->numbers[0] != 0 ? evaluate_content_rows(evaluation, node, request, ret_frame)
                                     : evaluate_unbatch(evaluation, node, request, ret_frame);
    if (strcmp(node->name, "rebatch") == 0 || strcmp(node->name, "deal_carry") == 0)
        return evaluate_joined(evaluation, node, request, ret_frame);
    if (strcmp(node->name, "deal_split") == 0 && node->batch_wide)
        return evaluate_cuts(evaluation, node, request, ret_frame);
    /* The rest moves elements and leaves them as they are. */
    status = evaluate(evaluation, node->inputs[0], request, ret_frame);
    if (status == TUNDISH_OK)
        ret_frame->schema = &node->schema;
    return status;
}

/* filter's answer about elements of its input, one for each; no about those that are left out. */
static tundish_status
evaluate_predicate(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *wanted, struct frame *ret_frame)
{
    static const struct schema unnamed = { 0 };
    struct column answer = { 0 };
    struct frame input;
    uint8_t *yes = take(evaluation, (size_t)wanted->count, 1);
    tundish_status status = evaluate(evaluation, node->inputs[0], wanted, &input);

    if (status != TUNDISH_OK)
        return status;
    frame_ready(evaluation, &unnamed, input.count, wanted->outer, ret_frame);
    ret_frame->column_count = 1;
    ret_frame->columns = &answer;
    input.outer = wanted->outer;
    input.errors = ret_frame->errors;
    status = node->content->apply(node->state, &input, ret_frame);
    if (status == TUNDISH_OK && ret_frame->errors->bad_count > 0 && !evaluation->skip_bad)
        status = tnd_fail(ret_frame->errors->status, "%s", ret_frame->errors->text);
    if (status != TUNDISH_OK)
        return status;
    memset(yes, 0, (size_t)wanted->count);
    for (int64_t i = 0; i < input.count; i++)
        if (ret_frame->errors->bad == NULL || !ret_frame->errors->bad[i])
            yes[input.kept != NULL ? input.kept[i] : i] = ((const uint8_t *)answer.values)[i];
    evaluation->skipped += (uint64_t)ret_frame->errors->bad_count;
    ret_frame->columns = take(evaluation, 1, sizeof *ret_frame->columns);
    column_set_scalars(&ret_frame->columns[0], wanted->count, yes);
    ret_frame->count = wanted->count;
    return TUNDISH_OK;
}

tundish_status
evaluate_for_order(struct order_services *services, const struct plan_node *node,
                   const struct order_scope *scope, const uint64_t *words, uint64_t count,
                   const struct frame **ret_frame)
{
    struct evaluation *evaluation = services->evaluator;
    struct evaluate_request wanted = { .words = words,
                                       .stride = node->width,
                                       .count = (int64_t)count };
    struct frame *frame;
    tundish_status status;

    scratch_reset(evaluation->scratch);
    if (scope != NULL) {
        int64_t *index = take(evaluation, count, sizeof *index);

        memset(index, 0, count * sizeof *index);
        wanted.outer = outer_of_kept(evaluation, scope->values, index, (int64_t)count);
    }
    frame = take(evaluation, 1, sizeof *frame);
    if (node->order != NULL && node->content != NULL) {
        status = evaluate_predicate(evaluation, node, &wanted, frame);
    } else {
        status = evaluate(evaluation, node, &wanted, frame);
    }
    if (status == TUNDISH_OK)
        *ret_frame = frame;
    return status;
}
