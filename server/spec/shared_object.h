/* shared_object.h - code of the user's own, in a shared object that a stage names. */
#ifndef SPEC_SHARED_OBJECT_H
#define SPEC_SHARED_OBJECT_H

#include "spec/spec.h"

/* Load the stage's `library` and find a function in it. Without a slash it is searched for by the
 * dynamic linker, else a path. It is never unloaded: pointers into it may be in use. Complains at
 * the stage. */
tundish_status spec_load(const struct spec_stage *stage, struct spec_errors *errors,
                         const char *symbol, void **ret_symbol);

/* A value as JSON, "null" for none; the caller frees. */
char *spec_json(const struct spec_value *value);

#endif
