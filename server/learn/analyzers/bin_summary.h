/* bin_summary.h - what keras.layers.Discretization.adapt keeps of its batches: some of their
 * values, each with the number of values that it stands for.
 *
 * Each batch is summarized: every step-th of its sorted values, with the step as weight. Summaries
 * are merged, and long ones are reduced to 1 / epsilon entries by interpolation. So the bins depend
 * on the batches, as in Keras, and the numbers are equal only if float32 and float64 are used where
 * NumPy uses them.
 */
#ifndef LEARN_ANALYZERS_BIN_SUMMARY_H
#define LEARN_ANALYZERS_BIN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

/* Sorted by value. */
struct bin_entries {
    int64_t count, capacity;
    float *values, *weights;
    bool is_sorted, rises; /* no value is below the one before it, or as large; none is NaN */
};

/* Zeros, but for epsilon, are an empty summary. */
struct bin_summary {
    double epsilon;
    struct bin_entries kept, fresh, merged;
    float *sorted;
    int64_t sorted_capacity;
    struct bin_point *points; /* scratch */
    int64_t point_capacity;
};

/* A batch's values, at least one. */
void bin_summary_put(struct bin_summary *summary, const double *numbers, int64_t count);

/* Reduce it to `bins` entries, whose values but the last are the boundaries. Nothing can be put in
 * afterwards. */
void bin_summary_finish(struct bin_summary *summary, int64_t bins);
void bin_summary_close(struct bin_summary *summary);

#endif
