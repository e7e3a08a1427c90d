/* help_json.c - the tables of the pipeline language for programs. */

#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"
#include "spec/describe.h"
#include "spec/expression_help.h"
#include "spec/stage_help.h"

/* NULL is null. */
static void
key_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    if (text != NULL)
        json_text(json, text);
    else
        json_null(json);
}

/* Text that is printed a piece at a time. */
struct printed {
    char *text;
    size_t bytes;
    FILE *out;
};

static FILE *
printed_open(struct printed *printed)
{
    printed->out = open_memstream(&printed->text, &printed->bytes);
    tnd_must_have(printed->out != NULL);
    return printed->out;
}

static void
key_printed(struct json *json, const char *key, struct printed *printed)
{
    tnd_must_have(fclose(printed->out) == 0);
    json_key_text(json, key, printed->text);
    free(printed->text);
}

static void
print_parameter(struct json *json, const struct parameter_info *parameter)
{
    struct printed types = { 0 };
    FILE *out = printed_open(&types);

    if (parameter->types & TYPE_ANY)
        fputs("any value", out);
    else
        describe_parameter(parameter, out);
    json_object(json);
    json_key_text(json, "name", parameter->name);
    key_printed(json, "type", &types);
    json_key_bool(json, "needed", parameter->required);
    json_key_bool(json, "varying", (parameter->types & TYPE_VARYING) != 0);
    key_text(json, "default", parameter->default_value);
    json_key_text(json, "help", parameter->help);
    json_object_end(json);
}

static void
print_stage(struct json *json, const struct stage_info *stage)
{
    struct printed written = { 0 };

    stage_print_written(stage, printed_open(&written));
    json_object(json);
    json_key_text(json, "name", stage->name);
    json_key_text(json, "group", stage->group);
    key_text(json, "namesake", stage->namesake);
    json_key_text(json, "help", stage->help);
    json_key_bool(json, "stands_first", stage->stands_first);
    key_printed(json, "written", &written);
    json_key_text(json, "example", stage_example(stage));
    json_key(json, "parameters");
    json_array(json);
    for (uint32_t i = 0; i < stage->parameter_count; i++)
        print_parameter(json, &stage->parameters[i]);
    json_array_end(json);
    json_object_end(json);
}

static void
print_expressions(struct json *json)
{
    const char *group = NULL;

    json_key_text(json, "row", expression_row);
    json_key(json, "rules");
    json_array(json);
    for (uint32_t i = 0; i < expression_rule_count; i++) {
        json_object(json);
        json_key_text(json, "title", expression_rules[i].title);
        json_key_text(json, "text", expression_rules[i].text);
        json_object_end(json);
    }
    json_array_end(json);
    json_key(json, "entries");
    json_array(json);
    for (uint32_t i = 0; i < expression_entry_count; i++) {
        const struct expression_entry *entry = &expression_entries[i];

        group = entry->group != NULL ? entry->group : group;
        if (entry->form == NULL)
            continue;
        json_object(json);
        json_key_text(json, "group", group);
        key_text(json, "name", entry->name);
        json_key_text(json, "form", entry->form);
        json_key_text(json, "takes", entry->takes);
        json_key_text(json, "gives", entry->gives);
        json_key_text(json, "help", entry->help);
        json_key_text(json, "example", entry->example);
        json_key_text(json, "result", entry->result);
        json_object_end(json);
    }
    json_array_end(json);
}

void
help_json(struct json *json)
{
    json_key(json, "stages");
    json_array(json);
    for (uint32_t i = 0; i < stage_topic_count(); i++)
        print_stage(json, stage_topic(i));
    json_array_end(json);
    json_key(json, "expressions");
    json_object(json);
    print_expressions(json);
    json_object_end(json);
}
