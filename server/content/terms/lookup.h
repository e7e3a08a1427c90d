/* lookup.h - what stages of terms share: a salt, and integers as they are looked up. */
#ifndef CONTENT_TERMS_LOOKUP_H
#define CONTENT_TERMS_LOOKUP_H

#include "content/terms/lookup_table.h"

/* Read `salt`: an integer or two of them. *ret_given says whether it was there. */
/* The parameter; NULL: it is not given, or null. */
const struct spec_value *lookup_given(const struct stage_config *config, const char *parameter);

tundish_status lookup_salt(const struct stage_config *config, uint64_t ret_salt[2],
                           bool *ret_given);

/* The integers of a column as int64: its own values, or a copy in scratch. */
const int64_t *lookup_integers(tundish_dtype dtype, const struct column *column,
                               struct scratch *scratch);

#endif
