/* analyzer.c - which analyzer learns for which stage. */
#include "learn/analyzers/analyzer.h"

#include <string.h>

static const struct analyzer_ops *const table[] = {
    &analyzer_vocabulary, &analyzer_moments,    &analyzer_extremes, &analyzer_bins,
    &analyzer_quantiles,  &analyzer_covariance, &analyzer_tails,    &analyzer_rarities,
};

const struct analyzer_ops *
analyzer_find(const char *stage)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (const char *const *name = table[i]->stages; *name != NULL; name++)
            if (strcmp(*name, stage) == 0)
                return table[i];
    return NULL;
}

bool
analyzer_is_given(const struct spec_stage *stage, const char *parameter)
{
    const struct spec_value *value;

    if (stage_parameter(stage->info, parameter) < 0)
        return false;
    value = spec_get(stage, parameter);
    return value != NULL && value->kind != SPEC_NULL;
}
