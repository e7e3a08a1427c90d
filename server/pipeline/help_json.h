/* help_json.h - the tables of the pipeline language for programs: `tundish help --json`. */
#ifndef PIPELINE_HELP_JSON_H
#define PIPELINE_HELP_JSON_H

#include "core/json.h"

/* Into an object that is open: the keys stages (with sections and features) and expressions. */
void help_json(struct json *json);

#endif
