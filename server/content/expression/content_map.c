/* content_map.c - columns computed from expressions. All of them see the row as it was. */
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "content/expression/expression.h"
#include "content/expression/expression_alike.h"
#include "core/memory.h"
#include "spec/column_list.h"

struct map {
    uint32_t count; /* of expressions */
    struct computed {
        struct expression *expression;
        uint32_t output;
    } * list;
    uint32_t alike_count;
    struct expression_alike *alike; /* all expressions, in sets */
};

/* Compile `value` as the expression of column `output`. */
static tundish_status
add_expression(struct map *map, const struct stage_config *config, const struct spec_value *value,
               uint32_t output, struct schema *schema, bool *batch_wide)
{
    char *name = schema->columns[output].name;
    char *text = value->kind == SPEC_VARIABLE ? tnd_sprintf("$%s", value->text)
                                              : spec_for_column(value->text, name);
    struct expression_config expression = {
        .text = text,
        .line = value->line,
        .column = value->column + value->quoted,
        .input = config->input,
        .outer = config->outer,
        .depth = config->depth,
        .literals = config->literals,
        .literal_count = config->literal_count,
        .errors = config->errors,
    };
    struct computed *computed;
    tundish_status status;

    map->list = tnd_realloc(map->list, map->count + 1, sizeof *map->list);
    computed = &map->list[map->count];
    *computed = (struct computed){ .output = output };
    status = expression_open(&expression, &computed->expression);
    free(text);
    if (status != TUNDISH_OK)
        return status;
    map->count++;
    schema->columns[output] = *expression_spec(computed->expression);
    schema->columns[output].name = name;
    *batch_wide |= expression_is_batch_wide(computed->expression);
    return TUNDISH_OK;
}

/* Existing columns: each is passed on or computed. */
static tundish_status
open_known(struct map *map, const struct stage_config *config, const struct spec_value *entries,
           struct schema *schema, bool *batch_wide)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < config->input->count; i++) {
        const struct spec_value *entry = spec_entry_for(entries, config->input->columns[i].name);
        tundish_status one = TUNDISH_OK;

        schema_pass(schema, config->input, i);
        if (entry != NULL)
            one = add_expression(map, config, entry, i, schema, batch_wide);
        if (one != TUNDISH_OK)
            status = one;
    }
    return status;
}

/* Names without a column make new columns, in the order written. */
static tundish_status
open_new(struct map *map, const struct stage_config *config, const struct spec_value *entries,
         uint32_t index, struct schema *schema, bool *batch_wide)
{
    const struct spec_value *key = &entries->keys[index];
    bool is_glob = strpbrk(key->text, "*?[") != NULL && schema_find(config->input, key->text) < 0;
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status = spec_expand_columns(
        key, is_glob ? known : NULL, is_glob ? config->input->count : 0, config->errors, &names);

    for (size_t i = 0; i < names.count && status == TUNDISH_OK; i++) {
        const struct spec_value *entry = spec_entry_for(entries, names.names[i]);

        if (schema_find(schema, names.names[i]) >= 0)
            continue;
        /* The dtype is a placeholder until the expression is checked. */
        schema_add(schema, names.names[i], TUNDISH_BOOL);
        status = add_expression(map, config, entry, schema->count - 1, schema, batch_wide);
    }
    free(known);
    spec_names_close(&names);
    return status;
}

/* Put expressions that compute the same from different columns into one set. The search is
 * quadratic, but runs once. */
static void
find_alike(struct map *map)
{
    map->alike = tnd_zalloc((size_t)map->count + 1, sizeof *map->alike);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct computed *computed = &map->list[i];
        uint32_t set = 0;

        while (!expression_alike_add(&map->alike[set], computed->expression, computed->output))
            set++;
        map->alike_count = set < map->alike_count ? map->alike_count : set + 1;
    }
}

static tundish_status
map_open(void *state, const struct stage_config *config, struct schema *ret_schema,
         bool *ret_batch_wide)
{
    struct map *map = state;
    const struct spec_value *entries = config->stage->arguments[0];
    tundish_status status;

    *ret_batch_wide = false;
    status = open_known(map, config, entries, ret_schema, ret_batch_wide);
    for (uint32_t i = 0; i < entries->count; i++) {
        tundish_status one = open_new(map, config, entries, i, ret_schema, ret_batch_wide);

        if (one != TUNDISH_OK)
            status = one;
    }
    find_alike(map);
    return status;
}

static tundish_status
map_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct map *map = state;

    for (uint32_t i = 0; i < map->alike_count; i++)
        expression_alike_apply(&map->alike[i], input, output);
    return TUNDISH_OK;
}

static bool
map_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker)
{
    const struct map *map = state;

    (void)ret_maker;
    for (uint32_t i = 0; i < map->count; i++)
        if (expression_reads(map->list[i].expression, column))
            return false;
    return true;
}

static void
map_close(void *state)
{
    struct map *map = state;

    for (uint32_t i = 0; i < map->count; i++)
        expression_close(map->list[i].expression);
    for (uint32_t i = 0; i < map->alike_count; i++)
        expression_alike_close(&map->alike[i]);
    free(map->alike);
    free(map->list);
    *map = (struct map){ 0 };
}

const struct content_ops content_map = {
    .name = "map",
    .state_bytes = sizeof(struct map),
    .takes_words = map_takes_words,
    .open = map_open,
    .apply = map_apply,
    .close = map_close,
};
