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
    struct python_columns inputs, outputs;
};
tundish_status python_stage_open(const struct stage_config *config,
                                 const struct python_stage *stage, struct python_pool **ret_pool);

#endif
