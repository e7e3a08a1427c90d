/* evaluate_where.c - where in which file a row comes from, for the sentence about what is wrong
 * with it: stages that look at content do not know. */
#include <stdio.h>
#include <string.h>

#include "batch/evaluate_parts.h"
#include "order/order.h"
#include "source/fetch.h"

static bool
is_branching(const struct plan_node *node)
{
    return strcmp(node->name, "concatenate") == 0 ||
           strcmp(node->name, "choose_from_datasets") == 0 ||
           strcmp(node->name, "sample_from_datasets") == 0;
}

/* The source of an element and what it knows it by; NULL if there is more than one row behind it.
 */
static const uint64_t *
origin_of(const struct plan_node *node, const uint64_t *words, const struct plan_node **ret_source)
{
    while (node->source == NULL) {
        if (node->body != NULL) {
            node = node->body->root;
        } else if (is_branching(node)) {
            if (words[0] >= node->input_count)
                return NULL;
            node = node->inputs[words[0]];
            words += node->first_word;
        } else if (node->content != NULL ||
                   (node->input_count == 1 && strcmp(node->name, "unbatch") != 0 &&
                    node->run_words == node->inputs[0]->run_words &&
                    node->width >= node->inputs[0]->width)) {
            node = node->inputs[0];
        } else {
            return NULL;
        }
    }
    *ret_source = node;
    return words;
}

/* Behind the sentence, which stage it is about: many of a pipeline may say the same. */
void
evaluate_say_stage(const struct plan_node *node, struct frame_errors *errors)
{
    const struct spec_stage *stage = node->first != NULL ? node->first->stage : node->stage;
    size_t used = strlen(errors->text);

    if (stage != NULL)
        snprintf(errors->text + used, sizeof errors->text - used, " (%s, line %u of %s)",
                 stage->info->name, stage->line, stage->file->path);
}

/* Before it, where the row lies, if one row of a file is behind it. */
static void
say_record(const struct evaluation *evaluation, const struct plan_node *node,
           const uint64_t *element, struct frame_errors *errors)
{
    const struct plan_node *source = NULL;
    const uint64_t *words = origin_of(node->inputs[0], element, &source);
    struct source_read read = { .files = evaluation->files, .words = words, .count = 1 };
    char text[sizeof errors->text];

    if (words == NULL || !source->source->refers_to_records || evaluation->files == NULL)
        return;
    memcpy(text, errors->text, sizeof text);
    snprintf(errors->text, sizeof errors->text, "%s, at byte %llu: %.*s", fetch_file_name(&read, 0),
             (unsigned long long)words[0], (int)sizeof text / 2, text);
}

void
evaluate_say_where(const struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *frame)
{
    int64_t element = frame->errors->first_bad;

    if (frame->kept != NULL)
        element = frame->kept[element];
    say_record(evaluation, node, request->words + (size_t)element * request->stride, frame->errors);
    evaluate_say_stage(node, frame->errors);
}
