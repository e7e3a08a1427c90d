/* described_columns.h - columns that a pipeline file describes, since nobody else can: those of a
 * program, and of a function of the user's own. */
#ifndef WORKERS_DESCRIBED_COLUMNS_H
#define WORKERS_DESCRIBED_COLUMNS_H

#include "plan/stage.h"

/* Append the columns of a mapping, column to {dtype, shape}: the keys and words are checked
 * already. A dimension of null is -1. */
tundish_status described_columns_open(const struct stage_config *config,
                                      const struct spec_value *columns, struct schema *schema);

/* As worker.py reads them, an array: `count` columns of the schema, those of `list` or (NULL) the
 * first ones. */
struct json;
void described_columns_write(struct json *json, const struct schema *schema, const uint32_t *list,
                             uint32_t count);

#endif
