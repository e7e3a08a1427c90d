/* keyed.h - the key of each value of a column, for statistics per key. */
#ifndef CONTENT_LEARNED_KEYED_H
#define CONTENT_LEARNED_KEYED_H

#include "content/learned/learned.h"

/* Check that `key` is a column of strings that goes with `column`: as many dimensions or fewer; for
 * a stage that is elementwise, one key a row, as the statistics have its row's shape. */
tundish_status keyed_check(const struct stage_config *config, const struct column_spec *column,
                           const struct column_spec *key);

/* Would tf.Transform keep what it learned as text beside the keys, in a file of their own? Here it
 * lies where it always does, but text is read as float32, which shows in results. */
bool keyed_in_text(const struct stage_config *config);

/* Number the keys of a table, in its order. NULL: there are none, as nothing was seen. */
tundish_status keyed_open(const struct stage_config *config, const struct learned_table *table,
                          struct vocab **ret_keys);

/* For each value of `column` the key's number, or -1: not seen while learning (keys NULL: none
 * was). Elements whose keys do not go with their values are rejected. */
const int64_t *keyed_lines(const struct vocab *keys, const struct column *key,
                           const struct column *column, struct frame *output);

/* Values of `column` for each key of `element`, or -1 if they do not go together. */
int64_t keyed_values_each(const struct column *key, const struct column *column, int64_t element);

#endif
