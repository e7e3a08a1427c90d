/* evaluate_where.c - adds the file and position of a row to an error message: stages that look at
 * content do not know them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "batch/evaluate_parts.h"
#include "content/content.h"
#include "order/order.h"
#include "source/files/fetch.h"
#include "source/files/whereabouts.h"

#include "core/redact.h"

/* The source of an element and its words there. NULL if the element has more than one row. */
static const uint64_t *
origin_of(const struct plan_node *node, const uint64_t *words, const struct plan_node **ret_source)
{
    while (node->source == NULL) {
        switch (node->order != NULL ? node->order->form : ORDER_PASSES) {
        case ORDER_FUNCTION:
            node = node->body->root;
            break;
        case ORDER_BRANCHES:
            if (words[0] >= node->input_count)
                return NULL;
            node = node->inputs[words[0]];
            words += node->first_word;
            break;
        case ORDER_PASSES:
        case ORDER_NUMBERS:
        case ORDER_SLICES:
            node = node->inputs[0];
            break;
        case ORDER_READS:
        case ORDER_BATCHES:
        case ORDER_REBATCHES:
        case ORDER_UNBATCHES:
        case ORDER_ZIPS:
            return NULL;
        }
    }
    *ret_source = node;
    return words;
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

/* The only column that `node` wrote; -1 if there are several. */
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

/* The stage that read the file whose bytes the element is: read_file, or a source of whole files.
 */
static const struct plan_node *
file_reader_of(const struct plan_node *node)
{
    while (node->source == NULL && (node->content == NULL || !node->content->whole_files)) {
        if (node->content == NULL || node->body != NULL)
            return NULL;
        node = node->inputs[0];
    }
    return node;
}

/* If the row is a whole file: name its path, which read_file was given or the source provides. */
static void
say_file(const struct evaluation *evaluation, const struct plan_node *node,
         const struct evaluate_request *element, struct frame_errors *errors)
{
    const struct plan_node *reader = file_reader_of(node->inputs[0]), *paths = reader;
    struct byte_view path;
    int32_t column;

    if (reader == NULL || evaluation->files == NULL)
        return;
    if (reader->source == NULL) {
        column = written_column(reader);
        paths = reader->inputs[0];
        column = column < 0 ? -1 : schema_find(&paths->schema, reader->schema.columns[column].name);
    } else {
        column = reader->source->path_column != NULL
                     ? schema_find(&paths->schema, reader->source->path_column)
                     : -1;
    }
    if (column >= 0 && find_path(evaluation, paths, (uint32_t)column, element, &path))
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

static void
say_record(const struct evaluation *evaluation, const struct plan_node *node,
           const struct evaluate_request *element, struct frame_errors *errors)
{
    const struct plan_node *source = NULL;
    const uint64_t *words = origin_of(node->inputs[0], element->words, &source);
    struct source_read read = { .files = evaluation->files, .words = words, .count = 1 };

    if (words == NULL || evaluation->files == NULL)
        return;
    if (source->source->refers_to_records)
        prepend(errors, "%s, at byte %llu", fetch_file_name(&read, 0),
                (unsigned long long)words[0]);
    else if (source->source->tells_records)
        say_told(evaluation, source, words, errors);
    else
        say_file(evaluation, node, element, errors);
}

void
evaluate_say_where(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *frame)
{
    int64_t index = frame->errors->first_bad;
    struct evaluate_request element = { .count = 1 };

    if (frame->kept != NULL)
        index = frame->kept[index];
    element.words = request->words + (size_t)index * request->stride;
    if (request->outer != NULL)
        element.outer = evaluate_outer_kept(evaluation, request->outer, &index, 1);
    say_record(evaluation, node, &element, frame->errors);
    evaluate_say_stage(node, frame->errors);
}
