/* named_columns.c - see named_columns.h. */
#include "source/rows/named_columns.h"

#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "core/memory.h"

static void
add(struct named_columns *columns, const char *name, const struct spec_value *at,
    const struct spec_value *entry)
{
    columns->columns = tnd_grow(columns->columns, columns->count, sizeof *columns->columns);
    columns->columns[columns->count++] =
        (struct named_column){ .name = tnd_strdup(name), .at = at, .entry = entry };
}

static bool
is_taken(const struct named_columns *columns, const char *name)
{
    for (uint32_t i = 0; i < columns->count; i++)
        if (strcmp(columns->columns[i].name, name) == 0)
            return true;
    return false;
}

/* The columns that some names stand for: `written` is a list of names, or a key of `map`. */
static tundish_status
add_written(const struct stage_config *config, const struct spec_value *written,
            const struct spec_value *map, const struct spec_names *known,
            struct named_columns *columns)
{
    struct spec_names list = { 0 };
    tundish_status status = spec_expand_columns(written, (const char *const *)known->names,
                                                known->count, config->errors, &list);

    for (size_t i = 0; i < list.count && status == TUNDISH_OK; i++)
        /* A glob's column may have a key of its own, whose default it then has. */
        if (map == NULL || !is_taken(columns, list.names[i]))
            add(columns, list.names[i], written,
                map == NULL ? NULL : spec_entry_for(map, list.names[i]));
    spec_names_close(&list);
    return status;
}

tundish_status
named_columns_open(const struct stage_config *config, const char *const *known, size_t known_count,
                   struct named_columns *ret_columns)
{
    const struct spec_value *written = spec_get(config->stage, "columns");
    const struct spec_names names = { .count = known_count, .names = (char **)(uintptr_t)known };
    tundish_status status = TUNDISH_OK;

    *ret_columns = (struct named_columns){ 0 };
    if (written == NULL || written->kind == SPEC_NULL) {
        for (size_t i = 0; i < known_count; i++)
            add(ret_columns, known[i], NULL, NULL);
        return TUNDISH_OK;
    }
    if (written->kind != SPEC_MAP)
        return add_written(config, written, NULL, &names, ret_columns);
    for (uint32_t i = 0; i < written->count && status == TUNDISH_OK; i++)
        status = add_written(config, &written->keys[i], written, &names, ret_columns);
    return status;
}

void
named_columns_close(struct named_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++)
        free(columns->columns[i].name);
    free(columns->columns);
    *columns = (struct named_columns){ 0 };
}

static tundish_status
complain(const struct stage_config *config, const struct spec_value *at, const char *name,
         const char *why)
{
    return spec_complain(config->errors, at == NULL ? config->stage->line : at->line,
                         at == NULL ? config->stage->column : at->column, "column '%s' %s", name,
                         why);
}

/* Complain about a column, where it is named. */
static tundish_status
named_column_complain(const struct stage_config *config, const struct named_column *column,
                      const char *why)
{
    return complain(config, column->at, column->name, why);
}

tundish_status
named_column_refuse(const struct stage_config *config, const struct named_column *column,
                    const char *obstacle)
{
    char *why = tnd_sprintf("cannot be read: %s%s", obstacle,
                            column->at == NULL ? "; name the columns that you want" : "");
    tundish_status status = named_column_complain(config, column, why);

    free(why);
    return status;
}

tundish_status
named_column_fallback(const struct stage_config *config, const struct named_column *column,
                      tundish_dtype dtype, void **ret_value)
{
    const struct spec_value *entry = column->entry, *value = NULL;
    void *made;
    char *what;
    tundish_status status;

    if (entry == NULL || entry->kind == SPEC_NULL)
        return TUNDISH_OK;
    if (entry->kind == SPEC_MAP)
        value = spec_map_get(entry, "default_value");
    if (entry->kind != SPEC_MAP || entry->count != (value != NULL))
        return complain(config, entry, column->name, "takes {default_value: VALUE}, or nothing");
    if (value == NULL || value->kind == SPEC_NULL)
        return TUNDISH_OK;
    what = tnd_sprintf("column '%.200s': default_value", column->name);
    made = tnd_zalloc(1, literal_bytes(dtype));
    status = literal_store(value, dtype, what, config->errors, made);
    free(what);
    if (status == TUNDISH_OK)
        *ret_value = made;
    else
        free(made); /* there is no value in it */
    return status;
}
