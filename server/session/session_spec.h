/* session_spec.h - the plan's columns as the SDK states them. */
#ifndef SESSION_SESSION_SPEC_H
#define SESSION_SESSION_SPEC_H

#include "plan/plan.h"
#include "tundish/tundish.h"

/* Columns in an array that the caller frees; names and numbers are the plan's. E_PIPELINE for a
 * column whose number of dimensions is not known. */
tundish_status session_spec_open(const struct plan *plan, tundish_spec *ret_spec);
void session_spec_close(tundish_spec *spec);

#endif
