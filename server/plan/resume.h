/* resume.h - the cost of resuming from a checkpoint. */
#ifndef PLAN_RESUME_H
#define PLAN_RESUME_H

#include "plan/plan.h"

enum plan_resume {
    RESUME_AT_ONCE,    /* in no time, wherever the place is */
    RESUME_REFERENCES, /* references are dealt again; nothing is read */
    RESUME_CONTENT     /* and some content is made again, or rows that lie in no file */
};

/* The most expensive stage of the plan, and a sentence for people that says so; the caller frees.
 */
enum plan_resume plan_resume_cost(const struct plan *plan, char **ret_sentence);

/* A sentence on random draws that each worker numbers by itself: on another number of nodes, and on
 * resuming. The caller frees it. NULL: there are none. */
char *plan_draws_sentence(const struct plan *plan);

/* One word for programs. */
const char *plan_resume_name(enum plan_resume cost);

#endif
