/* places.h - what is learned apart: one thing for all values, one for each position of a row (or
 * along the axes that Keras keeps), one for each key, or for each key one for each position. */
#ifndef LEARN_PLACES_H
#define LEARN_PLACES_H

#include "learn/analyzers/analyzer.h"

struct places {
    uint32_t axes; /* bit k: positions along dimension k of an element are places */
    uint32_t rank; /* of the places' shape */
    int64_t shape[RANK_MAX];
    struct terms *keys; /* NULL: not per key */
    struct terms_memory key_memory;
};

/* Read `axis`, `elementwise` and `key` of the stage, whichever it has. Complains. */
tundish_status places_open(struct places *places, const struct analyzer_config *config);
void places_close(struct places *places); /* accepts zeros */

/* How many there are by now (keys come as they are seen). */
int64_t places_count(const struct places *places);

/* The place of each value, in scratch; NULL: all of them 0. New keys get the next number. */
tundish_status places_find(struct places *places, const struct samples *samples,
                           const int64_t **ret_places);

/* Write a table of `each` numbers for each place (0: one, without a dimension of its own). */
tundish_status places_write(const struct places *places, const struct analyzer_config *config,
                            const char *suffix, tundish_dtype dtype, int64_t each,
                            const double *numbers, const int64_t *integers);

#endif
