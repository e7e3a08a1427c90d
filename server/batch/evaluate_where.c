/* evaluate_where.c - adds the file and position of a row to an error message: stages that look at
 * content do not know them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "batch/evaluate_private.h"
#include "content/content.h"
#include "order/order.h"
#include "source/files/fetch.h"
#include "source/files/whereabouts.h"

#include "core/must.h"
#include "core/redact.h"

/* An element on its way down to what it was made of; a batch with that row of it. */
struct trail {
    const struct plan_node *node;
    const uint64_t *words;
    int64_t row; /* -1: not known */
};

/* The row of a batch made of pieces. */
static bool
enter_piece(struct trail *trail)
{
    const struct plan_node *node = trail->node;
    const struct run *run = run_of_word(trail->words[0]);
    uint64_t rows;

    for (uint64_t i = 0; trail->row >= 0 && !node->cuts_content && i < run->element_count; i++) {
        trail->words = run->words + i * run->width;
        if (!run_words_rows(trail->words, run->width, run->run_words, &rows))
            return false;
        if (trail->row < (int64_t)rows) {
            trail->node = node->inputs[0];
            return true;
        }
        trail->row -= (int64_t)rows;
    }
    return false;
}

static bool
enter_batch(struct trail *trail)
{
    const struct run *run = run_of_word(trail->words[0]);

    if (trail->row < 0 || run == NULL || (uint64_t)trail->row >= run->element_count)
        return false;
    trail->words = run->words + (uint64_t)trail->row * run->width;
    trail->node = trail->node->inputs[0];
    trail->row = -1;
    return true;
}

/* To the input that the element is of. False: to several, or it is not known of which rows. */
static bool
step_down(struct trail *trail)
{
    const struct plan_node *node = trail->node;

    switch (node->order != NULL ? node->order->form : ORDER_PASSES) {
    case ORDER_FUNCTION:
        trail->node = node->body->root;
        return true;
    case ORDER_BRANCHES:
        if (trail->words[0] >= node->input_count)
            return false;
        trail->node = node->inputs[trail->words[0]];
        trail->words += trail->node->first_word;
        return true;
    case ORDER_PASSES:
    case ORDER_NUMBERS:
    case ORDER_SLICES:
        trail->node = node->inputs[0];
        return true;
    case ORDER_BATCHES:
        return enter_batch(trail);
    case ORDER_REBATCHES:
        return enter_piece(trail);
    case ORDER_UNBATCHES:
        if (node->cuts_content || node->inputs[0]->width != 1 ||
            order_gathered(node->inputs[0], 0).in_pieces)
            return false;
        trail->node = order_gathered(node->inputs[0], 0).elements;
        return true;
    case ORDER_READS:
    case ORDER_ZIPS:
        break;
    }
    return false;
}

/* Append the stage to the message: several stages of a pipeline may report the same. */
void
evaluate_say_stage(const struct plan_node *node, struct frame_errors *errors)
{
    const struct spec_stage *stage = node->first != NULL ? node->first->stage : node->stage;
    size_t used = strlen(errors->text);

    if (stage != NULL)
        snprintf(errors->text + used, sizeof errors->text - used, " (%s, line %u of %s)",
                 stage->info->name, stage->line, stage->file->path);
}

/* Put the location of the row in front of the message. */
static void prepend(struct frame_errors *errors, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
prepend(struct frame_errors *errors, const char *format, ...)
{
    char text[sizeof errors->text];
    size_t used;
    va_list arguments;

    memcpy(text, errors->text, sizeof text);
    va_start(arguments, format);
    vsnprintf(errors->text, sizeof errors->text / 2, format, arguments);
    va_end(arguments);
    tnd_redact(errors->text);
    used = strlen(errors->text);
    snprintf(errors->text + used, sizeof errors->text - used, ": %s", text);
}

/* Evaluate a path: the string in a column of one element of `node`. It is made again without being
 * counted. If that fails, the error is a different one and is not reported. */
static bool
find_path(const struct evaluation *evaluation, const struct plan_node *node, uint32_t column,
          const struct evaluate_request *element, struct byte_view *ret_path)
{
    struct evaluation aside = *evaluation;
    struct frame frame;

    aside.counters = NULL;
    aside.skip_bad = false;
    if (evaluate(&aside, node, element, &frame) != TUNDISH_OK || frame.count != 1 ||
        node->schema.columns[column].dtype != TUNDISH_STRING ||
        node->schema.columns[column].kind != TUNDISH_DENSE ||
        frame.columns[column].level_count != 0)
        return false;
    *ret_path = ((const struct byte_view *)frame.columns[column].values)[0];
    return true;
}

/* The only column that the stage reads, in its input; -1: there are several. */
static int32_t
read_column(const struct plan_node *node)
{
    const struct schema *input = &node->inputs[0]->schema;
    const struct spec_value *columns =
        node->stage != NULL && stage_parameter(node->stage->info, "columns") >= 0
            ? spec_get(node->stage, "columns")
            : NULL;

    if (columns != NULL && columns->kind == SPEC_LIST && columns->count == 1)
        columns = &columns->items[0];
    if (columns != NULL && columns->kind == SPEC_TEXT)
        return schema_find(input, columns->text);
    return input->count == 1 ? 0 : -1;
}

/* The only column that the stage writes; -1: there are several. */
static int32_t
written_column(const struct plan_node *node)
{
    int32_t found = -1;

    for (uint32_t i = 0; i < node->schema.count; i++) {
        if (node->schema.columns[i].passed_from >= 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int32_t)i;
    }
    return found;
}

/* One step down, to what the column was made from: -1 where that is not known. */
static bool
follow(struct trail *trail, int32_t *column)
{
    const struct plan_node *node = trail->node;
    int32_t from = *column >= 0 ? node->schema.columns[*column].passed_from : -1;

    if ((node->body != NULL && node->body->captures) ||
        (node->order != NULL && node->order->form == ORDER_UNBATCHES) || !step_down(trail))
        return false;
    if (node->order == NULL)
        *column = from >= 0 ? from : read_column(node);
    else if (from >= 0)
        *column = from;
    return true;
}

/* If the stage reads files: the column of its input with the paths of those that `column` holds. */
static int32_t
paths_of(const struct plan_node *node, int32_t column)
{
    if (node->content == NULL || node->content->paths_of == NULL)
        return -1;
    if (column < 0)
        column = written_column(node);
    return column >= 0 && node->schema.columns[column].passed_from < 0
               ? node->content->paths_of(node->state, (uint32_t)column)
               : -1;
}

/* Is the element, or what its column `column` was made from, a whole file? Then the trail leads to
 * the column with its path: of what read_file was given, or of a source of files. */
static bool
find_whole_file(struct trail *trail, int32_t column, int32_t *ret_path)
{
    int32_t path = -1;

    while (trail->node->source == NULL && path < 0) {
        path = paths_of(trail->node, column);
        if (path >= 0)
            trail->node = trail->node->inputs[0];
        else if (!follow(trail, &column))
            return false;
    }
    if (path < 0 && trail->node->source->path_column != NULL)
        path = schema_find(&trail->node->schema, trail->node->source->path_column);
    while (path >= 0 && trail->row >= 0 && trail->node->source == NULL)
        if (!follow(trail, &path))
            return false;
    *ret_path = path;
    return path >= 0 && trail->row < 0;
}

/* Name the file that the row is, or that its bytes are. */
static void
say_file(const struct evaluation *evaluation, const struct plan_node *node, struct trail trail,
         const struct frame *outer, struct frame_errors *errors)
{
    const struct plan_node *first = node->first != NULL ? node->first : node;
    struct byte_view path;
    int32_t column;

    if (!find_whole_file(&trail, read_column(first), &column))
        return;
    if (find_path(
            evaluation, trail.node, (uint32_t)column,
            &(struct evaluate_request){
                .words = trail.words, .stride = trail.node->width, .count = 1, .outer = outer },
            &path))
        prepend(errors, "%.*s", path.size < 500 ? (int)path.size : 500, (const char *)path.data);
}

/* If the source names the record: so does this. */
static void
say_told(const struct evaluation *evaluation, const struct plan_node *source, const uint64_t *words,
         struct frame_errors *errors)
{
    struct whereabouts where;

    whereabouts_of(source, evaluation->files, words, &where);
    prepend(errors, "%.*s, record %llu", where.file.size < 500 ? (int)where.file.size : 500,
            (const char *)where.file.data, (unsigned long long)where.record);
}

/* Name the record that the row is. */
static void
say_record(const struct evaluation *evaluation, struct trail trail, struct frame_errors *errors)
{
    char where[WHEREABOUTS_TEXT_BYTES];
    struct source_read read = { .files = evaluation->files, .count = 1 };

    while (trail.node->source == NULL)
        if (!step_down(&trail))
            return;
    read.words = trail.words;
    if (trail.node->source->refers_to_records) {
        whereabouts_say(evaluation->files, trail.words, evaluation->skip_bad, where);
        prepend(errors, "%s, %s", fetch_file_name(&read, 0), where);
    } else if (trail.node->source->tells_records) {
        say_told(evaluation, trail.node, trail.words, errors);
    }
}

void
evaluate_say_row(struct evaluation *evaluation, const struct plan_node *node,
                 const struct evaluate_request *request, int64_t index, int64_t row,
                 struct frame_errors *errors)
{
    struct trail trail = { evaluate_before(node), request->words + (size_t)index * request->stride,
                           row };
    const struct frame *outer = request->outer;

    must_in_debug(index < request->count);
    if (evaluation->files != NULL) {
        if (outer != NULL)
            outer = evaluate_outer_kept(evaluation, outer, &index, 1);
        say_file(evaluation, node, trail, outer, errors);
        say_record(evaluation, trail, errors);
    }
    evaluate_say_stage(node, errors);
}

void
evaluate_say_where(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, const struct frame *input,
                   struct frame *frame)
{
    int64_t index = frame->errors->first_bad;
    int64_t row = input != NULL ? evaluate_bad_row(evaluation, node, input, index) : -1;

    must_in_debug(frame->errors->bad_count > 0 && index < frame->count);
    if (frame->kept != NULL)
        index = frame->kept[index];
    evaluate_say_row(evaluation, node, request, index, row, frame->errors);
}
