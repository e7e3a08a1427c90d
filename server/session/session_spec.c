/* session_spec.c - the plan's columns as the SDK states them. */
#include "session/session_spec.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/status.h"

tundish_status
session_spec_open(const struct plan *plan, tundish_spec *ret_spec)
{
    const struct schema *schema = &plan->element_spec;
    tundish_column_spec *columns = tnd_zalloc(schema->count, sizeof *columns);

    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *from = &schema->columns[i];
        tundish_column_spec *to = &columns[i];

        if (from->rank == RANK_UNKNOWN) {
            free(columns);
            return tnd_fail(TUNDISH_E_PIPELINE,
                            "column '%s' has an unknown number of dimensions; use reshape",
                            from->name);
        }
        *to = (tundish_column_spec){
            .name = from->name,
            .dtype = from->dtype,
            .kind = from->kind,
            .rank = (uint32_t)from->rank,
            .ragged_rank = from->kind == TUNDISH_RAGGED ? (uint32_t)from->ragged_rank : 0,
            .widen_dtype = plan->widen[i].dtype,
            .widen_scale_count = plan->widen[i].scale_count,
            .widen_offset_count = plan->widen[i].offset_count,
            .widen_scale = plan->widen[i].scale,
            .widen_offset = plan->widen[i].offset,
            .widen_layout = plan->widen[i].layout,
            .splits_dtype = from->kind != TUNDISH_RAGGED ? (tundish_dtype)0
                            : from->splits_int32         ? TUNDISH_INT32
                                                         : TUNDISH_INT64,
        };
        for (int k = 0; k < from->rank; k++)
            to->shape[k] = from->shape[k];
    }
    *ret_spec = (tundish_spec){
        .column_count = schema->count,
        .column_bytes = sizeof *columns,
        .columns = columns,
    };
    return TUNDISH_OK;
}

void
session_spec_close(tundish_spec *spec)
{
    free((void *)(uintptr_t)spec->columns);
    *spec = (tundish_spec){ 0 };
}
