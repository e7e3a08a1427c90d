/* value_groups.h - groups of values that a statistic is computed for: one for all values, one for
 * each position of a row (or along the axes that Keras keeps), one for each key, or one for each
 * key and position. */
#ifndef LEARN_VALUE_GROUPS_H
#define LEARN_VALUE_GROUPS_H

#include "learn/analyzers/analyzer.h"

struct value_groups {
    uint32_t axes; /* bit k: positions along dimension k of an element are groups */
    uint32_t rank; /* of the groups' shape */
    int64_t shape[RANK_MAX];
    struct terms *keys; /* NULL: not per key */
    struct terms_memory key_memory;
};

/* Read `axis`, `elementwise` and `key` of the stage, whichever it has. Complains. */
tundish_status value_groups_open(struct value_groups *groups, const struct analyzer_config *config);
void value_groups_close(struct value_groups *groups); /* accepts zeros */

/* How many there are by now (keys come as they are seen). */
int64_t value_groups_count(const struct value_groups *groups);

/* The group of each value, in scratch; NULL: all of them 0. New keys get the next number. */
tundish_status value_groups_find(struct value_groups *groups, const struct samples *samples,
                                 const int64_t **ret_groups);

/* Write a table of `each` numbers for each group (0: one, without a dimension of its own). */
tundish_status value_groups_write(const struct value_groups *groups,
                                  const struct analyzer_config *config, const char *suffix,
                                  tundish_dtype dtype, int64_t each, const double *numbers,
                                  const int64_t *integers);

#endif
