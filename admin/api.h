/* api.h - the metrics as JSON, for the page and for programs. page/openapi.json describes them. */
#ifndef ADMIN_API_H
#define ADMIN_API_H

#include "routes.h"

/* Whole reports: of all nodes, or of the sixteen that are worst off. */
unsigned api_answer_status(const struct admin *admin, const struct route *route, FILE *body);

/* A line of each node, the worst off first; and the report of one, route->number being its rank. */
unsigned api_answer_nodes(const struct admin *admin, const struct route *route, FILE *body);
unsigned api_answer_node(const struct admin *admin, const struct route *route, FILE *body);

/* Either all nodes, route->number being seconds, or the whole hour of the node of that rank. */
unsigned api_answer_history(const struct admin *admin, const struct route *route, FILE *body);
unsigned api_answer_node_history(const struct admin *admin, const struct route *route, FILE *body);

/* The plan of each stream, as `tundish plan --json` prints it; and the pipeline file. */
unsigned api_answer_plans(const struct admin *admin, const struct route *route, FILE *body);
unsigned api_answer_pipeline(const struct admin *admin, const struct route *route, FILE *body);

#endif
