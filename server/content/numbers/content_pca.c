/* content_pca.c - tft.pca: multiply vectors by the learned components. */
#include <stdlib.h>

#include "column/convert.h"
#include "content/learned/learning.h"
#include "core/memory.h"

struct components {
    int64_t size, count; /* of a vector, of its result */
    double *values;      /* size rows of count */
};

struct pca {
    tundish_dtype dtype;
    struct content_targets targets;
    struct components *columns; /* of each target */
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
pca_open(void *state, const struct stage_config *config, struct schema *ret_schema,
         bool *ret_batch_wide)
{
    struct pca *stage = state;
    tundish_status status = content_targets_open(config, ret_schema, &stage->targets);

    *ret_batch_wide = false;
    stage->dtype = spec_dtype(config->stage, "dtype");
    stage->columns = tnd_zalloc((size_t)stage->targets.count + 1, sizeof *stage->columns);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[stage->targets.list[i].output];
        struct components *components = &stage->columns[i];

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
        column->dtype = stage->dtype;
        column->has_range = false;
        column->shape[column->rank - 1] = components->count;
    }
    content_sort_columns(ret_schema, &stage->targets);
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

static tundish_status
pca_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct pca *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct components *components = &stage->columns[i];
        const struct column *from = &input->columns[target->input];
        struct column *column = &output->columns[target->output];
        int64_t rows = column_list_count(from, from->level_count - 1);
        size_t count = (size_t)(rows * components->count);
        const double *x = convert_column(
            TUNDISH_FLOAT64, input->schema->columns[target->input].dtype, from, output->scratch);
        double *y = scratch_array(output->scratch, count, sizeof *y);
        void *values = frame_values(output, target->output, count * tnd_dtype_bytes(stage->dtype));

        multiply(components, x, rows, y);
        convert_values(stage->dtype, values, TUNDISH_FLOAT64, y, count);
        *column = *from;
        column->levels[from->level_count - 1] = (struct level){ .uniform = components->count };
        column->value_count = (int64_t)count;
        column->values = values;
    }
    return TUNDISH_OK;
}

static void
pca_close(void *state)
{
    struct pca *stage = state;

    for (uint32_t i = 0; stage->columns != NULL && i < stage->targets.count; i++)
        free(stage->columns[i].values);
    free(stage->columns);
    content_targets_close(&stage->targets);
}

static const struct content_learning learning = {
    .kind = LEARNED_COMPONENTS,
};

const struct content_ops content_pca = {
    .name = "pca",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct pca),
    .open = pca_open,
    .apply = pca_apply,
    .close = pca_close,
};
