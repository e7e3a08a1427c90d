/* stage_help.c - the table of stages as text. */
#include "spec/stage_help.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spec/describe.h"
#include "spec/errors.h"
#include "spec/help_text.h"

enum { SECTIONS = 5 };

static const struct stage_info *const sections[SECTIONS] = {
    &section_stream, &section_distribute, &section_deliver, &section_remote, &section_widen,
};

static const struct {
    const char *name, *text;
} examples[] = {
#define EXAMPLE(name, text) { #name, text },
#include "spec/examples.def"
};

const char *
stage_example(const struct stage_info *stage)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(examples[i].name, stage->name) == 0)
            return examples[i].text;
    return "";
}

uint32_t
stage_topic_count(void)
{
    return stage_count + SECTIONS + feature_count;
}

const struct stage_info *
stage_topic(uint32_t index)
{
    if (index < stage_count)
        return &stage_table[index];
    index -= stage_count;
    return index < SECTIONS ? sections[index] : &feature_table[index - SECTIONS];
}

tundish_status
stage_help_for(const char *name, const struct stage_info **ret_stage)
{
    const char **words = calloc(stage_topic_count(), sizeof *words);
    const char *nearest;

    tnd_must_have(words != NULL);
    for (uint32_t i = 0; i < stage_topic_count(); i++) {
        words[i] = stage_topic(i)->name;
        if (strcmp(words[i], name) == 0) {
            *ret_stage = stage_topic(i);
            free(words);
            return TUNDISH_OK;
        }
    }
    nearest = spec_nearest(name, words, stage_topic_count());
    free(words);
    if (nearest != NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there is no stage \"%s\"; did you mean %s?", name,
                        nearest);
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "there is no stage \"%s\"; `tundish help stages` lists them", name);
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

    for (uint32_t i = 0; i < stage_topic_count(); i++) {
        const struct stage_info *stage = stage_topic(i);

        if (strcmp(stage->group, group) != 0)
            fprintf(out, "%s%s\n", i > 0 ? "\n" : "", stage->group);
        group = stage->group;
        help_print_beside(stage->help, first_sentence_bytes(stage->help),
                          fprintf(out, "  %-30s ", stage->name), out);
    }
    fputs("\n"
          "`tundish help STAGE` lists a stage's parameters.\n",
          out);
}

void
stage_print_names(FILE *out)
{
    for (uint32_t i = 0; i < stage_topic_count(); i++)
        fprintf(out, "%s\n", stage_topic(i)->name);
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

/* How many of its parameters must be written. */
static uint32_t
stage_needs(const struct stage_info *stage)
{
    uint32_t needed = 0;

    for (uint32_t i = 0; i < stage->parameter_count; i++)
        needed += stage->parameters[i].required;
    return needed;
}

/* Print the needed parameters in braces; the dots say that there are others. */
static void
print_mapping(const struct stage_info *stage, FILE *out)
{
    const char *comma = "";

    fputc('{', out);
    for (uint32_t i = 0; i < stage->parameter_count; i++)
        if (stage->parameters[i].required) {
            fprintf(out, "%s%s: ...", comma, stage->parameters[i].name);
            comma = ", ";
        }
    if (stage_needs(stage) < stage->parameter_count)
        fprintf(out, "%s...", comma);
    fputc('}', out);
}

static bool
has_form(const struct stage_info *stage)
{
    /* Sections and features are mappings inside others, so they have no form of their own. Groups
     * are compared by address: each has one literal. */
    return stage->group != sections[0]->group && stage->group != feature_table[0].group;
}

void
stage_print_written(const struct stage_info *stage, FILE *out)
{
    const struct parameter_info *first = &stage->parameters[stage->short_parameter];
    uint32_t needed = stage_needs(stage);

    if (!has_form(stage))
        return;
    fprintf(out, "- %s", stage->name);
    if (stage->is_whole) {
        fprintf(out, ": {...}, where the mapping is %s", first->name);
    } else if (needed > 0) {
        fputs(": ", out);
        print_mapping(stage, out);
    } else if (stage->parameter_count > 0) {
        fprintf(out, ", or - %s: {...}", stage->name);
    }
    /* A short form gives one parameter, so it does not serve where a second one is needed. */
    if (stage->has_short_form && needed == first->required)
        fprintf(out, ", in short - %s: %s", stage->name, first->name);
    if (stage->stands_first)
        fputs("; must be the first stage", out);
}

/* Print each line of the example, indented. */
static void
print_example(const struct stage_info *stage, FILE *out)
{
    fputs("  Example\n", out);
    for (const char *line = stage_example(stage); *line != '\0'; line += strcspn(line, "\n") + 1)
        fprintf(out, "      %.*s\n", (int)strcspn(line, "\n"), line);
}

void
stage_print_help(const struct stage_info *stage, FILE *out)
{
    fprintf(out, "%s\n\n", stage->name);
    help_print_wrapped(stage->help, 2, out);
    if (stage->namesake != NULL)
        fprintf(out, "  As       %s\n", stage->namesake);
    if (has_form(stage)) {
        fputs("  Written  ", out);
        stage_print_written(stage, out);
        fputc('\n', out);
    }
    print_example(stage, out);
    for (uint32_t i = 0; i < stage->parameter_count; i++) {
        const struct parameter_info *parameter = &stage->parameters[i];

        fprintf(out, "\n  %s: ", parameter->name);
        print_type(parameter, out);
        fputc('\n', out);
        help_print_wrapped(parameter->help, 6, out);
    }
}
