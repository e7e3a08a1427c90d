/* print.h - a plan for people, for programs, and as a drawing. */
#ifndef PLAN_PRINT_H
#define PLAN_PRINT_H

#include <stdio.h>

#include "core/json.h"
#include "plan/memory_cost.h"
#include "plan/plan.h"

void plan_print_text(const struct plan *plan, const struct plan_lanes *lanes, FILE *file);
void plan_print_json(const struct plan *plan, const struct plan_lanes *lanes, FILE *file);

/* More lines of a node's label, each after "\\n". */
typedef void plan_label_call(void *user, const struct plan_node *node, FILE *file);

/* For Graphviz. A node is named by its number, so that two plans can be compared. `more`: NULL, or
 * asked for each node. */
void plan_print_dot(const struct plan *plan, plan_label_call *more, void *user, FILE *file);

/* A stage's parameters as written, or the decision of one that distribution put in. */
void print_arguments(const struct plan_node *node, FILE *file);

/* A column's shape: null for an unknown dimension, or instead of all if the rank is unknown. */
void print_shape(struct json *json, const struct column_spec *spec);

/* print_remote.c: In a plan, the stores that files at URLs are read from, and how. Nothing where no
 * stage names a URL. */
void print_remote(const struct plan *plan, FILE *file);
void print_remote_json(const struct plan *plan, struct json *json);

#endif
