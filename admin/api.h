/* api.h - the metrics as JSON, for the page and for programs. page/openapi.json describes them. */
#ifndef ADMIN_API_H
#define ADMIN_API_H

#include "routes.h"

unsigned api_answer_status(const struct admin *admin, const struct route *route, FILE *body);

/* route->number: seconds. */
unsigned api_answer_history(const struct admin *admin, const struct route *route, FILE *body);

/* The plan of each stream, as `tundish plan --json` prints it; and the pipeline file. */
unsigned api_answer_plans(const struct admin *admin, const struct route *route, FILE *body);
unsigned api_answer_pipeline(const struct admin *admin, const struct route *route, FILE *body);

#endif
