/* quantile_sketch.h - weighted quantiles of a stream in bounded memory, as tf.Transform's
 * (tfx_bsl's) weighted quantiles summary: exact until there are more different values than a
 * block holds, afterwards within epsilon. Values must be put in in one order. */
#ifndef LEARN_ANALYZERS_QUANTILE_SKETCH_H
#define LEARN_ANALYZERS_QUANTILE_SKETCH_H

#include <stdbool.h>
#include <stdint.h>

struct quantile_sketch;

struct quantile_sketch *quantile_sketch_open(double epsilon);
void quantile_sketch_close(struct quantile_sketch *sketch); /* accepts NULL */

/* A value that is a number, with a weight; weights of 0 or less count nothing. */
void quantile_sketch_put(struct quantile_sketch *sketch, double value, double weight);

/* The boundaries of `count` parts: count - 1 of them; zeros if nothing was put in. Nothing can be
 * put in afterwards. */
void quantile_sketch_take(struct quantile_sketch *sketch, int64_t count, double *ret_boundaries);

#endif
