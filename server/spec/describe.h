/* describe.h - values and their types in words, for messages and the manual. */
#ifndef SPEC_DESCRIBE_H
#define SPEC_DESCRIBE_H

#include <stdio.h>

#include "spec/spec.h"
#include "spec/stages.h"

/* "a list", "\"abc\"", "4096"; into `text`, which is returned. */
const char *describe_value(const struct spec_value *value, char *text, size_t text_bytes);

/* "an integer of at least 1 or a list of integers of at least 1" */
void describe_parameter(const struct parameter_info *parameter, FILE *out);

#endif
