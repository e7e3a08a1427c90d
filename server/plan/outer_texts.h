/* outer_texts.h - the texts that a column of the outer element has, as far as the plan has them in
 * memory: files that a function reads are named by such a column. */
#ifndef PLAN_OUTER_TEXTS_H
#define PLAN_OUTER_TEXTS_H

#include "core/bytes.h"
#include "plan/plan_node.h"

struct outer_texts {
    const struct byte_view *texts; /* the source's */
    int64_t count;
};

/* $name in this graph, of all outer elements, in the source's order; some may be left out before
 * they come here. None if a stage makes them, or a source reads them. */
struct outer_texts plan_outer_texts(const struct plan_graph *graph, const char *name);

#endif
