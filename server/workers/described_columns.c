/* described_columns.c - see described_columns.h. */
#include "workers/described_columns.h"

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
