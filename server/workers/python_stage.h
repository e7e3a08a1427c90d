/* python_stage.h - what the stages that run code of the user's own have in common: their
 * parameters, and the pool of interpreters that these ask for. */
#ifndef WORKERS_PYTHON_STAGE_H
#define WORKERS_PYTHON_STAGE_H

#include "plan/stage.h"
#include "workers/python_pool.h"

/* Some columns of a schema, in this order; `list` NULL: the first ones. */
struct python_columns {
    const struct schema *schema;
    const uint32_t *list;
    uint32_t count;
};

/* `found` is the parameter with "module:name". Complains where the name cannot be found, or called.
 */
struct python_stage {
    const char *found;
    const char *rows; /* as worker.py knows it: one, many, batch, or item of a data set */
    struct python_columns inputs;
    const struct schema *outputs; /* NULL: not known yet, so learn them next (python_pool.h) */
};
tundish_status python_stage_open(const struct stage_config *config,
                                 const struct python_stage *stage, struct python_pool **ret_pool);

/* The columns that were learned, as the pipeline file's `parameter` would say them; NULL: they are
 * written there. The caller frees it. */
char *python_stage_learned(const struct python_pool *pool, const char *parameter);

#endif
