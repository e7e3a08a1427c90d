/* scalar.h - the meaning of a single word of the file: its type, and the value of ${NAME}. */
#ifndef SPEC_SCALAR_H
#define SPEC_SCALAR_H

#include <stdbool.h>

#include "spec/spec.h"
#include "spec/spec_memory.h"

/* Replace ${NAME} and ${NAME:-default} by environment variables and $${ by ${ in value->text. A
 * name that is not set, or a ${ that never closes, is added to `errors`. Nothing is done to a
 * text without ${. */
tundish_status scalar_expand(struct spec_value *value, struct spec_memory *memory,
                             struct spec_errors *errors);

/* Give an unquoted scalar its kind, by YAML 1.2's core schema with `true` and `false` as the only
 * booleans, and $name as a variable. False: an integer that fits no 64 bits. */
bool scalar_type(struct spec_value *value, struct spec_memory *memory);

#endif
