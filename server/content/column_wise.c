/* column_wise.c - the loops over the columns of a stage that maps each by itself. */
#include "content/column_wise.h"

#include <stdlib.h>

#include "core/memory.h"

tundish_status
column_wise_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct column_wise *wise = state;
    const struct column_wise_ops *ops = content_find(config->stage->info->name)->columns;
    tundish_status status = ops->read != NULL ? ops->read(state, config) : TUNDISH_OK;

    *ret_batch_wide = false;
    wise->ops = ops;
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &wise->targets);
    if (ops->own_bytes > 0 && status == TUNDISH_OK)
        wise->own = tnd_zalloc((size_t)wise->targets.count + 1, ops->own_bytes);
    for (uint32_t i = 0; i < wise->targets.count && status == TUNDISH_OK; i++)
        status =
            ops->describe(state, config, wise->own == NULL ? NULL : wise->own + i * ops->own_bytes,
                          &ret_schema->columns[wise->targets.list[i].output], ret_batch_wide);
    if (ops->sorts && status == TUNDISH_OK)
        content_sort_columns(ret_schema, &wise->targets);
    return status;
}

tundish_status
column_wise_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct column_wise *wise = state;

    for (uint32_t i = 0; i < wise->targets.count; i++) {
        const struct content_target *target = &wise->targets.list[i];
        const struct column_map map = {
            .own = wise->own == NULL ? NULL : wise->own + i * wise->ops->own_bytes,
            .input = input,
            .spec = &input->schema->columns[target->input],
            .from = &input->columns[target->input],
            .output = output,
            .at = target->output,
            .number = i,
            .to = &output->columns[target->output],
        };

        wise->ops->map(state, &map);
    }
    return TUNDISH_OK;
}

void
column_wise_close(void *state)
{
    struct column_wise *wise = state;

    for (uint32_t i = 0; i < wise->targets.count && wise->own != NULL; i++)
        if (wise->ops->close_own != NULL)
            wise->ops->close_own(wise->own + i * wise->ops->own_bytes);
    if (wise->ops != NULL && wise->ops->close != NULL)
        wise->ops->close(state);
    free(wise->own);
    content_targets_close(&wise->targets);
}

bool
column_wise_has(const struct column_wise *wise, uint32_t column)
{
    for (uint32_t i = 0; i < wise->targets.count; i++)
        if (wise->targets.list[i].input == column)
            return true;
    return false;
}
