/* check_stage.c - one entry of a list of stages: its name, its form, its arguments. */
#include <string.h>

#include "spec/check.h"
#include "spec/describe.h"

/* Names that users of tf.data try first, and the answer to them. */
static const struct {
    const char *name, *answer;
} not_offered[] = {
    { "scan", "scan is not supported" },
    { "from_generator", "there is no from_generator; use `program`, which runs a child process" },
    { "apply", "there is no apply; write the stage directly" },
    { "options", "there are no options; see `distribute` and `deliver`" },
    { "with_options", "there is no with_options; see `distribute` and `deliver`" },
    { "parse_single_example", "parse_example does it, before batch as well as after it" },
};

static const struct stage_info *
find_stage(struct check *check, const struct spec_value *name)
{
    const struct stage_info *info = stage_find(name->text);
    const char *words[256];
    const char *nearest;

    if (info != NULL)
        return info;
    for (size_t i = 0; i < sizeof not_offered / sizeof not_offered[0]; i++) {
        if (strcmp(not_offered[i].name, name->text) == 0) {
            spec_complain(check->errors, name->line, name->column, "%s", not_offered[i].answer);
            return NULL;
        }
    }
    if (check_find_dataset(check, name->text) != NULL) {
        spec_complain(check->errors, name->line, name->column,
                      "\"%.60s\" is a dataset of this file, not a stage; `concatenate: [%.60s]` "
                      "begins with its elements",
                      name->text, name->text);
        return NULL;
    }
    for (uint32_t i = 0; i < stage_count && i < 256; i++)
        words[i] = stage_table[i].name;
    nearest = spec_nearest(name->text, words, stage_count);
    if (nearest != NULL)
        spec_complain(check->errors, name->line, name->column,
                      "there is no stage \"%.60s\"; did you mean %s?", name->text, nearest);
    else
        spec_complain(check->errors, name->line, name->column,
                      "there is no stage \"%.60s\"; `tundish help stages` lists them", name->text);
    return NULL;
}

/* `range: [start,] stop[, step]`, as the arguments of tf.data.Dataset.range. */
static void
take_bounds(struct check *check, const struct stage_info *info, const struct spec_value *list,
            const struct spec_value **arguments, uint64_t *given)
{
    static const char *const orders[3][3] = {
        { "stop" },
        { "start", "stop" },
        { "start", "stop", "step" },
    };

    if (list->count < 1 || list->count > 3) {
        spec_complain(check->errors, list->line, list->column,
                      "%s takes [stop], [start, stop] or [start, stop, step], not %u values",
                      info->name, list->count);
        /* Any value, so that a missing stop is not reported as well. */
        arguments[0] = list;
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        int index = stage_parameter(info, orders[list->count - 1][i]);

        arguments[index] = check_value(check, info, &info->parameters[index], &list->items[i]);
        *given |= (uint64_t)(arguments[index] != NULL) << index;
    }
}

static void
take_short_form(struct check *check, const struct stage_info *info, const struct spec_value *value,
                const struct spec_value **arguments, uint64_t *given)
{
    uint32_t index = info->short_parameter;
    char found[80];

    if (info->has_bounds_form && value->kind == SPEC_LIST) {
        take_bounds(check, info, value, arguments, given);
    } else if (info->has_short_form || info->is_whole) {
        arguments[index] = check_value(check, info, &info->parameters[index], value);
        *given |= (uint64_t)(arguments[index] != NULL) << index;
    } else if (value->kind != SPEC_BROKEN) {
        spec_complain(check->errors, value->line, value->column,
                      "%s has no short form: expected a mapping of its parameters%s%s%s, not %s",
                      info->name, info->parameter_count > 0 ? ", as {" : "",
                      info->parameter_count > 0 ? info->parameters[0].name : "",
                      info->parameter_count > 0 ? ": ...}" : "",
                      describe_value(value, found, sizeof found));
        /* All bits: nothing is to be filled in, and no default complained about. */
        *given = ~UINT64_C(0);
    }
}

static void
take_arguments(struct check *check, const struct spec_value *value, struct spec_stage *stage)
{
    const struct stage_info *info = stage->info;
    const struct spec_value **arguments;
    uint64_t given = 0;

    if (value->kind == SPEC_MAP && !info->is_whole) {
        stage->arguments = check_mapping(check, info, value, &stage->given);
        return;
    }
    arguments = spec_memory_take(check->memory, info->parameter_count, sizeof *arguments);
    if (value->kind != SPEC_NULL)
        take_short_form(check, info, value, arguments, &given);
    if (given != ~UINT64_C(0))
        check_fill(check, info, stage->line, stage->column, arguments);
    stage->arguments = arguments;
    stage->given = given;
}

/* Parameters on the level of the stage's name make it a mapping of several keys. This is a frequent
 * slip in YAML, so the message says how to indent. */
static void
refuse_keys(struct check *check, const struct spec_value *map)
{
    if (map->count == 0)
        spec_complain(check->errors, map->line, map->column,
                      "expected a stage, not an empty mapping");
    else if (map->items[0].kind == SPEC_NULL)
        spec_complain(check->errors, map->keys[1].line, map->keys[1].column,
                      "a stage has one key, but \"%s\" is next to \"%s\": indent parameters "
                      "further than the stage's name",
                      map->keys[1].text, map->keys[0].text);
    else
        spec_complain(
            check->errors, map->keys[1].line, map->keys[1].column,
            "a stage has one key, but \"%s\" is next to \"%s\": begin the next stage with `- `",
            map->keys[1].text, map->keys[0].text);
}

bool
check_stage(struct check *check, const struct spec_value *value, struct spec_stage *ret_stage)
{
    /* A stage without a value has all defaults. */
    static const struct spec_value nothing = { .kind = SPEC_NULL };
    const struct spec_value *name = value, *arguments = &nothing;
    char found[80];

    if (value->kind == SPEC_MAP && value->count == 1) {
        name = &value->keys[0];
        arguments = &value->items[0];
    } else if (value->kind == SPEC_MAP) {
        refuse_keys(check, value);
        return false;
    } else if (value->kind != SPEC_TEXT && value->kind != SPEC_BROKEN) {
        spec_complain(check->errors, value->line, value->column,
                      "expected a stage, as `- batch: 32`, not %s",
                      describe_value(value, found, sizeof found));
    }
    if (name->kind != SPEC_TEXT)
        return false;
    ret_stage->info = find_stage(check, name);
    if (ret_stage->info == NULL)
        return false;
    ret_stage->file = check->file;
    ret_stage->line = name->line;
    ret_stage->column = name->column;
    take_arguments(check, arguments, ret_stage);
    check_stage_rules(check, ret_stage);
    return true;
}
