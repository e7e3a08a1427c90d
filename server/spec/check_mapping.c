/* check_mapping.c - the keys of a mapping against a list of parameters. */
#include <stdio.h>
#include <string.h>

#include "spec/check.h"
#include "spec/describe.h"

/* The key that corresponds to tf.data's name, or the word itself. Users know tf.data's names. */
static const char *
our_key(const char *word)
{
    static const struct {
        const char *elsewhere, *here;
    } keys[] = {
        { "options", "distribute" },
        { "with_options", "distribute" },
        { "experimental_distribute", "distribute" },
        { "auto_shard_policy", "auto_shard" },
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(word, keys[i].elsewhere) == 0)
            return keys[i].here;
    return word;
}

static bool
has_key(const struct stage_info *info, const char *key)
{
    return stage_parameter(info, key) >= 0;
}

/* The section of the pipeline file that has the key, or NULL. Keys are often written one level too
 * high or too low. */
static const struct stage_info *
section_with(const struct stage_info *info, const char *key)
{
    static const struct stage_info *const sections[] = { &section_file, &section_stream,
                                                         &section_distribute, &section_deliver,
                                                         &section_remote };
    const struct stage_info *found = NULL;
    bool is_section = false;

    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        is_section = is_section || sections[i] == info;
        if (found == NULL && has_key(sections[i], key))
            found = sections[i];
    }
    return is_section ? found : NULL;
}

/* Returns the number of the parameter that is meant, or -1. */
static int
refuse_key(struct check *check, const struct stage_info *info, const struct spec_value *key)
{
    const char *words[64] = { NULL };
    const char *ours = our_key(key->text), *nearest;
    const struct stage_info *section = section_with(info, ours);
    uint32_t count = info->parameter_count;

    for (uint32_t i = 0; i < count; i++)
        words[i] = info->parameters[i].name;
    nearest = has_key(info, ours) ? ours : spec_nearest(key->text, words, count);
    if (section != NULL && section != info) {
        spec_complain(check->errors, key->line, key->column, "%s has no \"%s\"; %s has %s",
                      info->name, key->text, section->name, ours);
    } else if (nearest != NULL) {
        spec_complain(check->errors, key->line, key->column, "%s has no \"%s\"; did you mean %s?",
                      info->name, key->text, nearest);
        return stage_parameter(info, nearest);
    } else {
        char list[1024];
        size_t used = 0;

        list[0] = '\0';
        for (uint32_t i = 0; i < count && used < sizeof list - 64; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                     words[i]);
        spec_complain(check->errors, key->line, key->column, "%s has no \"%s\"; it has %s",
                      info->name, key->text, count > 0 ? list : "no parameters");
    }
    return -1;
}

/* Those of `misspelt` (bit i: parameter i) are not missing as well. */
static void
fill(struct check *check, const struct stage_info *info, uint32_t line, uint32_t column,
     uint64_t misspelt, const struct spec_value **arguments)
{
    for (uint32_t i = 0; i < info->parameter_count; i++) {
        const struct parameter_info *parameter = &info->parameters[i];

        if (arguments[i] != NULL)
            continue;
        if (parameter->required && !(misspelt >> i & 1))
            spec_complain(check->errors, line, column, "%s needs %s: %s", info->name,
                          parameter->name, parameter->help);
        arguments[i] = check_default(check, parameter, line, column);
    }
}

void
check_fill(struct check *check, const struct stage_info *info, uint32_t line, uint32_t column,
           const struct spec_value **arguments)
{
    fill(check, info, line, column, 0, arguments);
}

const struct spec_value **
check_mapping(struct check *check, const struct stage_info *info, const struct spec_value *map,
              uint64_t *ret_given)
{
    const struct spec_value **arguments =
        spec_memory_take(check->memory, info->parameter_count, sizeof *arguments);
    uint64_t given = 0, misspelt = 0;
    char found[80];

    if (map->kind != SPEC_MAP && map->kind != SPEC_BROKEN)
        spec_complain(check->errors, map->line, map->column, "%s must be a mapping, not %s",
                      info->name, describe_value(map, found, sizeof found));
    for (uint32_t i = 0; map->kind == SPEC_MAP && i < map->count; i++) {
        const struct spec_value *key = &map->keys[i];
        int index;

        if (key->kind == SPEC_BROKEN)
            continue;
        index = stage_parameter(info, key->text);
        if (index < 0) {
            index = refuse_key(check, info, key);
            misspelt |= index >= 0 ? UINT64_C(1) << index : 0;
            continue;
        }
        /* A key that occurs twice was reported by the reader; the first one counts. */
        if (given >> index & 1)
            continue; /* the reader has complained */
        arguments[index] = check_value(check, info, &info->parameters[index], &map->items[i]);
        given |= (uint64_t)(arguments[index] != NULL) << index;
    }
    /* Required parameters are missed even if other keys were wrong. */
    if (map->kind == SPEC_MAP)
        fill(check, info, map->line, map->column, misspelt, arguments);
    if (ret_given != NULL)
        *ret_given = given;
    return arguments;
}
