/* stage_help.c - the table of stages as text. */
#include "pipeline/stage_help.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "pipeline/describe.h"
#include "pipeline/errors.h"

/* A terminal has 80 columns. */
enum { SECTIONS = 5, TEXT_COLUMNS = 78 };

static const struct stage_info *const sections[SECTIONS] = {
    &section_stream, &section_distribute, &section_deliver, &section_remote, &section_widen,
};

static uint32_t
topic_count(void)
{
    return stage_count + SECTIONS + feature_count;
}

static const struct stage_info *
topic(uint32_t index)
{
    if (index < stage_count)
        return &stage_table[index];
    index -= stage_count;
    return index < SECTIONS ? sections[index] : &feature_table[index - SECTIONS];
}

tundish_status
stage_help_for(const char *name, const struct stage_info **ret_stage)
{
    const char **words = calloc(topic_count(), sizeof *words);
    const char *nearest;

    tnd_must_have(words != NULL);
    for (uint32_t i = 0; i < topic_count(); i++) {
        words[i] = topic(i)->name;
        if (strcmp(words[i], name) == 0) {
            *ret_stage = topic(i);
            free(words);
            return TUNDISH_OK;
        }
    }
    nearest = spec_nearest(name, words, topic_count());
    free(words);
    if (nearest != NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there is no stage \"%s\"; did you mean %s?", name,
                        nearest);
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "there is no stage \"%s\"; `tundish help stages` lists them", name);
}

/* Print text in indented lines of at most TEXT_COLUMNS. */
static void
print_wrapped(const char *text, int indent, FILE *out)
{
    int column = 0;

    while (*text != '\0') {
        int bytes = (int)strcspn(text, " ");

        if (column > 0 && column + 1 + bytes > TEXT_COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column = fprintf(out, "%*s%.*s", indent, "", bytes, text);
        else
            column += fprintf(out, " %.*s", bytes, text);
        text += bytes;
        text += *text == ' ';
    }
    fputc('\n', out);
}

/* The length of the first sentence without its full stop. A stop inside a name such as tf.Example
 * does not end it. */
static int
first_sentence_bytes(const char *text)
{
    size_t bytes = 0;

    while (text[bytes] != '\0' &&
           !(text[bytes] == '.' && (text[bytes + 1] == ' ' || text[bytes + 1] == '\0')))
        bytes++;
    return (int)bytes;
}

void
stage_print_list(FILE *out)
{
    const char *group = "";

    for (uint32_t i = 0; i < topic_count(); i++) {
        const struct stage_info *stage = topic(i);

        if (strcmp(stage->group, group) != 0)
            fprintf(out, "%s%s\n", i > 0 ? "\n" : "", stage->group);
        group = stage->group;
        fprintf(out, "  %-30s %.*s\n", stage->name, first_sentence_bytes(stage->help), stage->help);
    }
    fputs("\n"
          "`tundish help STAGE` lists a stage's parameters.\n",
          out);
}

void
stage_print_names(FILE *out)
{
    for (uint32_t i = 0; i < topic_count(); i++)
        fprintf(out, "%s\n", topic(i)->name);
}

/* "an integer of at least 1, needed" */
static void
print_type(const struct parameter_info *parameter, FILE *out)
{
    if (parameter->types & TYPE_ANY)
        fputs("any value", out);
    else
        describe_parameter(parameter, out);
    if (parameter->required)
        fputs("; needed", out);
    else if (parameter->default_value != NULL)
        fprintf(out, "; default %s", parameter->default_value);
    if (parameter->types & TYPE_VARYING)
        fputs("; may be $name", out);
}

static void
print_form(const struct stage_info *stage, FILE *out)
{
    const struct parameter_info *first = stage->parameters;
    bool needs_more = false;

    /* Sections and features are mappings inside others, so they have no form of their own. Groups
     * are compared by address: each has one literal. */
    if (stage->group == sections[0]->group || stage->group == feature_table[0].group)
        return;
    fputs("  Written  ", out);
    /* A short form gives one parameter, so it is no use where a second one is needed. */
    for (uint32_t i = 1; i < stage->parameter_count; i++)
        needs_more = needs_more || first[i].required;
    if (stage->is_whole)
        fprintf(out, "- %s: {...}, where the mapping is %s", stage->name, first->name);
    else if (stage->parameter_count == 0)
        fprintf(out, "- %s", stage->name);
    else
        fprintf(out, "- %s: {%s: ...}", stage->name, first->name);
    if (stage->has_short_form && !needs_more)
        fprintf(out, ", in short - %s: %s", stage->name, first->name);
    if (stage->stands_first)
        fputs("; must be the first stage", out);
    fputc('\n', out);
}

void
stage_print_help(const struct stage_info *stage, FILE *out)
{
    fprintf(out, "%s\n\n", stage->name);
    print_wrapped(stage->help, 2, out);
    if (stage->namesake != NULL)
        fprintf(out, "  As       %s\n", stage->namesake);
    print_form(stage, out);
    for (uint32_t i = 0; i < stage->parameter_count; i++) {
        const struct parameter_info *parameter = &stage->parameters[i];

        fprintf(out, "\n  %s: ", parameter->name);
        print_type(parameter, out);
        fputc('\n', out);
        print_wrapped(parameter->help, 6, out);
    }
}
