/* signals.c - the shapes of signals. */
#include "content/sounds/signals.h"

#include <string.h>

#include "column/dims.h"

tundish_status
signals_open_column(const struct stage_config *config, const void *state, signals_dims *dims,
                    struct column_spec *column, bool *batch_wide)
{
    const char *stage = config->stage->info->name;
    char fault[160];
    int64_t *last;

    if (column->dtype == TUNDISH_STRING || column->kind != TUNDISH_DENSE || column->rank < 1 ||
        column->rank >= RANK_MAX)
        return stage_complain(config, "%s: '%s' must be dense numbers of 1 to %d dimensions", stage,
                              column->name, RANK_MAX - 1);
    *batch_wide |= config->depth > 0 && column->rank == 1; /* the rows are the samples */
    last = &column->shape[column->rank++ - 1];
    dims(state, *last, last, fault);
    return TUNDISH_OK;
}

void
signals_set_dims(const struct column *from, const void *state, signals_dims *dims,
                 struct frame *output, struct column *column)
{
    uint32_t rank = from->level_count;
    int64_t *made = scratch_array(output->scratch, (size_t)from->count * (rank + 1), sizeof *made);

    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX];
        char fault[160];

        column_dims(from, i, own);
        if (!dims(state, own[rank - 1], own + rank - 1, fault)) {
            frame_reject(output, i, "%s", fault);
            own[rank - 1] = own[rank] = 0;
        }
        memcpy(made + i * (rank + 1), own, (rank + 1) * sizeof *made);
    }
    column_set_dims_each(column, from->count, rank + 1, made, output->scratch);
}

int64_t
signals_of(const struct column *column, int64_t element, int64_t *ret_length)
{
    int64_t dims[RANK_MAX];

    column_dims(column, element, dims);
    *ret_length = dims[column->level_count - 1];
    return dims_product(dims, column->level_count - 1);
}
