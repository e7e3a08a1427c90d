/* schema.c - lists of columns. */
#include "column/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static struct column_spec *
append(struct schema *schema)
{
    schema->columns = tnd_realloc(schema->columns, schema->count + 1, sizeof *schema->columns);
    return &schema->columns[schema->count++];
}

struct column_spec *
schema_add(struct schema *schema, const char *name, tundish_dtype dtype)
{
    struct column_spec *column = append(schema);

    *column = (struct column_spec){
        .name = tnd_strdup(name),
        .dtype = dtype,
        .kind = TUNDISH_DENSE,
        .passed_from = -1,
    };
    return column;
}

struct column_spec *
schema_pass(struct schema *schema, const struct schema *input, uint32_t input_index)
{
    struct column_spec *column = append(schema);

    *column = input->columns[input_index];
    column->name = tnd_strdup(column->name);
    column->passed_from = (int32_t)input_index;
    return column;
}

void
schema_pass_all(struct schema *schema, const struct schema *input)
{
    for (uint32_t i = 0; i < input->count; i++)
        schema_pass(schema, input, i);
}

int32_t
schema_find(const struct schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->count; i++)
        if (strcmp(schema->columns[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

const char **
schema_names(const struct schema *schema)
{
    const char **names = tnd_zalloc(schema->count + 1, sizeof *names);

    for (uint32_t i = 0; i < schema->count; i++)
        names[i] = schema->columns[i].name;
    return names;
}

void
schema_remove(struct schema *schema, uint32_t index)
{
    free(schema->columns[index].name);
    schema->count--;
    memmove(&schema->columns[index], &schema->columns[index + 1],
            (schema->count - index) * sizeof *schema->columns);
}

void
schema_close(struct schema *schema)
{
    for (uint32_t i = 0; i < schema->count; i++)
        free(schema->columns[i].name);
    free(schema->columns);
    *schema = (struct schema){ 0 };
}

int64_t
column_spec_values(const struct column_spec *spec)
{
    int64_t values = 1;

    if (spec->kind != TUNDISH_DENSE || spec->rank == RANK_UNKNOWN)
        return -1;
    for (int i = 0; i < spec->rank; i++)
        /* A product that overflows counts as unknown. */
        if (spec->shape[i] < 0 || __builtin_mul_overflow(values, spec->shape[i], &values))
            return -1;
    return values;
}

char *
column_spec_text(const struct column_spec *spec)
{
    char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", tnd_dtype_name(spec->dtype));

    if (spec->rank == RANK_UNKNOWN)
        return tnd_sprintf("%s[?]", text);
    used += (size_t)snprintf(text + used, sizeof text - used, "[");
    for (int i = 0; i < spec->rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? "," : "",
                                 (long long)spec->shape[i]);
    return tnd_sprintf("%s]%s", text,
                       spec->kind == TUNDISH_RAGGED   ? " ragged"
                       : spec->kind == TUNDISH_SPARSE ? " sparse"
                                                      : "");
}
