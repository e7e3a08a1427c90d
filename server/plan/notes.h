/* notes.h - what a pipeline does that its writer may not expect: no error, but worth a look. */
#ifndef PLAN_NOTES_H
#define PLAN_NOTES_H

#include "plan/plan.h"

/* Say each note, one sentence. */
typedef void plan_say(void *context, const char *sentence);
void plan_notes(const struct plan *plan, plan_say *say, void *context);

#endif
