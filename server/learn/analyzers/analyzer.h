/* analyzer.h - one column being learned: fed elements in their order, it writes artifacts.
 *
 * Sums that depend on the order of the elements are fed by one thread at a time; counts, which do
 * not, are counted by all threads at once. Either way the result is the same for any number of
 * threads.
 */
#ifndef LEARN_ANALYZERS_ANALYZER_H
#define LEARN_ANALYZERS_ANALYZER_H

#include "content/learned/learning.h"
#include "learn/results/artifact_folder.h"
#include "learn/terms/terms.h"

/* A column's values for some elements, and those of the columns beside it. */
struct samples {
    const struct column *column;
    const double *numbers;         /* of a column of numbers, as float64 */
    const int64_t *integers;       /* of integers, also as they are */
    const struct byte_view *texts; /* of strings */
    const struct column *key;      /* strings; NULL: not asked for */
    const struct column *weights;
    const double *weight_numbers;
    const struct column *labels;
    const int64_t *label_integers;
    struct scratch *scratch;
};

struct analyzer_config {
    const struct stage_config *content; /* the stage, its input, its depth, where to complain */
    const struct content_learning *learning; /* of the stage */
    const struct column_spec *column;        /* the column to learn from */
    const char *name;                        /* of the artifacts */
    struct artifact_folder *folder;          /* where they go */
    int cache_folder;
    uint32_t thread_count;
    struct terms_memory *memory;
};

struct analyzer_ops {
    size_t state_bytes;
    bool takes_terms; /* samples.texts or integers: it does not ask for numbers */

    /* Prepare the state (zeroed). May fail half-way: close is called either way. */
    tundish_status (*open)(void *state, const struct analyzer_config *config);

    /* Any thread, several at a time, each with its own number. NULL: nothing to count. */
    tundish_status (*count)(void *state, uint32_t thread, const struct samples *samples);

    /* In the order of the elements, one thread at a time. NULL: nothing to add up. */
    tundish_status (*feed)(void *state, const struct samples *samples);

    /* After the last element: write the artifacts. */
    tundish_status (*finish)(void *state);

    /* Free everything. Must accept a state that is all zeros. */
    void (*close)(void *state);
};

extern const struct analyzer_ops analyzer_vocabulary, analyzer_moments, analyzer_extremes,
    analyzer_bins, analyzer_quantiles, analyzer_covariance, analyzer_components, analyzer_tails,
    analyzer_rarities;

const struct analyzer_ops *analyzer_of(enum learned_kind kind);

#endif
