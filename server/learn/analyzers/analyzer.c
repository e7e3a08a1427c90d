/* analyzer.c - which analyzer learns what. */
#include "learn/analyzers/analyzer.h"

static const struct analyzer_ops *const table[LEARNED_KINDS] = {
    [LEARNED_VOCABULARY] = &analyzer_vocabulary, [LEARNED_MOMENTS] = &analyzer_moments,
    [LEARNED_EXTREMES] = &analyzer_extremes,     [LEARNED_BINS] = &analyzer_bins,
    [LEARNED_QUANTILES] = &analyzer_quantiles,   [LEARNED_COVARIANCE] = &analyzer_covariance,
    [LEARNED_COMPONENTS] = &analyzer_components, [LEARNED_TAILS] = &analyzer_tails,
    [LEARNED_RARITIES] = &analyzer_rarities,
};

const struct analyzer_ops *
analyzer_of(enum learned_kind kind)
{
    return table[kind];
}
