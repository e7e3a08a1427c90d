/* print_remote.h - in a plan, the stores that files at URLs are read from, and how. */
#ifndef PLAN_PRINT_REMOTE_H
#define PLAN_PRINT_REMOTE_H

#include <stdio.h>

#include "core/json.h"
#include "plan/plan.h"

/* Nothing where no stage names a URL. */
void print_remote(const struct plan *plan, FILE *file);
void json_remote(const struct plan *plan, struct json *json);

#endif
