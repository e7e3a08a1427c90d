/* described_columns.c - see described_columns.h. */
#include "workers/described_columns.h"

#include "core/json.h"

static tundish_status
open_column(struct schema *schema, const struct stage_config *config, const struct spec_value *name,
            const struct spec_value *entry)
{
    const struct spec_value *shape = spec_map_get(entry, "shape");
    struct column_spec *column =
        schema_add(schema, name->text, tnd_dtype_by_name(spec_map_get(entry, "dtype")->text));

    if (shape == NULL || shape->kind != SPEC_LIST)
        return TUNDISH_OK;
    if (shape->count > RANK_MAX)
        return spec_complain(config->errors, shape->line, shape->column,
                             "column '%s' has more than %d dimensions", name->text, RANK_MAX);
    for (uint32_t k = 0; k < shape->count; k++) {
        const struct spec_value *size = &shape->items[k];

        if (size->kind != SPEC_NULL && (size->kind != SPEC_INTEGER || size->integer < 0))
            return spec_complain(config->errors, size->line, size->column,
                                 "a dimension is a number, 0 or more, or null");
        column->shape[column->rank++] = size->kind == SPEC_NULL ? -1 : size->integer;
    }
    return TUNDISH_OK;
}

tundish_status
described_columns_open(const struct stage_config *config, const struct spec_value *columns,
                       struct schema *schema)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < columns->count && status == TUNDISH_OK; i++)
        status = open_column(schema, config, &columns->keys[i], &columns->items[i]);
    return status;
}

static void
write_column(struct json *json, const struct column_spec *column)
{
    json_object(json);
    json_key_text(json, "name", column->name);
    json_key_text(json, "dtype", tnd_dtype_name(column->dtype));
    json_key_int(json, "kind", column->kind);
    json_key(json, "shape");
    if (column->rank < 0)
        json_null(json);
    else
        json_array(json);
    for (int k = 0; k < column->rank; k++)
        json_int(json, column->shape[k]);
    if (column->rank >= 0)
        json_array_end(json);
    json_object_end(json);
}

void
described_columns_write(struct json *json, const struct schema *schema, const uint32_t *list,
                        uint32_t count)
{
    json_array(json);
    for (uint32_t i = 0; i < count; i++)
        write_column(json, &schema->columns[list != NULL ? list[i] : i]);
    json_array_end(json);
}
