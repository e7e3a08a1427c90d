/* column_list.h - column lists: names, globs (C*) and ranges (C1..C26).
 *
 * A range stands for names made by counting (leading zeros kept), also where columns are being
 * named for the first time. A glob matches the names in force, in their order.
 */
#ifndef SPEC_COLUMN_LIST_H
#define SPEC_COLUMN_LIST_H

#include <stdbool.h>

#include "spec/spec.h"

struct spec_names {
    size_t count;
    char **names; /* NUL-terminated, owned */
};

void spec_names_close(struct spec_names *list);
bool spec_names_hold(const struct spec_names *list, const char *name);

/* Expand `value` (TEXT or LIST of TEXT) to names. With `known` (names in force) globs are matched
 * and every name must be one of them; with known == NULL names are being given: ranges count, globs
 * are refused. Errors (no match, unknown name with the nearest, a name twice) are added to
 * `errors` at the value's position. */
tundish_status spec_expand_columns(const struct spec_value *value, const char *const *known,
                                   size_t known_count, struct spec_errors *errors,
                                   struct spec_names *ret_list);

/* The names that `output` gives to the results of `columns`: a name or list as long as these, or
 * one text with {column} in it, which names each after its column. */
tundish_status spec_output_names(const struct spec_value *output, const struct spec_names *columns,
                                 struct spec_errors *errors, struct spec_names *ret_list);

/* Does `pattern` (a name, or a glob with * ? [..]) match `name`? */
bool spec_name_matches(const char *pattern, const char *name);

/* The entry of a MAP whose key is `name`, else whose glob or range key matches it (the first
 * written wins), else NULL. The exact name wins over a glob. For `features`, `record_defaults`,
 * `map`. */
const struct spec_value *spec_entry_for(const struct spec_value *map, const char *name);

/* `text` with {column} replaced by `column`, and {{column} by {column}. The caller frees. */
char *spec_for_column(const char *text, const char *column);

#endif
