/* content_pca.c - tft.pca: multiply vectors by the learned components. */
#include <stdlib.h>

#include "column/convert.h"
#include "content/column_wise.h"
#include "content/learned/learning.h"

struct components {
    int64_t size, count; /* of a vector, of its result */
    double *values;      /* size rows of count */
};

struct pca {
    struct column_wise wise;
    tundish_dtype dtype;
};

static tundish_status
read_components(const struct stage_config *config, const char *column,
                struct components *components)
{
    const char *name = learned_name_of(config, column);
    struct learned_table table = { 0 };
    tundish_status status = learned_require(config, name);

    if (status == TUNDISH_OK)
        status = learned_table_open(config, name, ".pca", TUNDISH_FLOAT64, &table);
    if (status == TUNDISH_OK && table.rank != 2)
        status = stage_complain(config, "pca: %s.pca should have two dimensions", name);
    if (status == TUNDISH_OK) {
        components->size = table.shape[0];
        components->count = table.shape[1];
        components->values = table.values;
        table.values = NULL;
    }
    learned_table_close(&table);
    return status;
}

static tundish_status
read_dtype(void *state, const struct stage_config *config)
{
    struct pca *stage = state;

    stage->dtype = spec_dtype(config->stage, "dtype");
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    struct components *components = own;
    tundish_status status;

    (void)batch_wide;
    if (column->dtype == TUNDISH_STRING || column->kind != TUNDISH_DENSE ||
        column->rank != (int)config->depth + 1)
        return stage_complain(config, "pca: the rows of '%s' must be vectors of numbers",
                              column->name);
    status = read_components(config, column->name, components);
    if (status == TUNDISH_OK && column->shape[column->rank - 1] != components->size)
        status = stage_complain(config,
                                "pca: components of %lld numbers were learned for '%s'; run "
                                "`tundish analyze` again",
                                (long long)components->size, column->name);
    column->dtype = ((const struct pca *)state)->dtype;
    column->has_range = false;
    column->shape[column->rank - 1] = components->count;
    return status;
}

/* A plain product in double: the sum runs in order, so that results do not depend on the
 * processor. */
static void
multiply(const struct components *components, const double *from, int64_t rows, double *to)
{
    for (int64_t row = 0; row < rows; row++, from += components->size)
        for (int64_t k = 0; k < components->count; k++) {
            double sum = 0;

            for (int64_t i = 0; i < components->size; i++)
                sum += from[i] * components->values[i * components->count + k];
            *to++ = sum;
        }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct pca *stage = state;
    const struct components *components = map->own;
    const struct column *from = map->from;
    int64_t rows = column_list_count(from, from->level_count - 1);
    size_t count = (size_t)(rows * components->count);
    struct scratch *scratch = map->output->scratch;
    const double *x = convert_column(TUNDISH_FLOAT64, map->spec->dtype, from, scratch);
    double *y = scratch_array(scratch, count, sizeof *y);
    void *values = frame_values(map->output, map->at, count * tnd_dtype_bytes(stage->dtype));

    multiply(components, x, rows, y);
    convert_values(stage->dtype, values, TUNDISH_FLOAT64, y, count);
    *map->to = *from;
    map->to->levels[from->level_count - 1] = (struct level){ .uniform = components->count };
    map->to->value_count = (int64_t)count;
    map->to->values = values;
}

static void
close_components(void *own)
{
    struct components *components = own;

    free(components->values);
}

static const struct column_wise_ops columns = {
    .own_bytes = sizeof(struct components),
    .sorts = true,
    .read = read_dtype,
    .describe = describe,
    .map = map_column,
    .close_own = close_components,
};

static const struct content_learning learning = {
    .kind = LEARNED_COMPONENTS,
};

const struct content_ops content_pca = {
    .name = "pca",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct pca),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
