/* weights.c - which of its datasets sample_from_datasets draws from, as TensorFlow's leaves the
 * others out. */
#include <math.h>

#include "plan/build.h"

static const struct spec_value *
weights_of(const struct spec_stage *stage)
{
    const struct spec_value *weights = spec_get(stage, "weights");

    return weights != NULL && weights->kind == SPEC_LIST ? weights : NULL;
}

static double
total_of(const struct spec_value *weights)
{
    double total = 0;

    for (uint32_t i = 0; i < weights->count; i++)
        total += weights->items[i].number;
    return total;
}

tundish_status
build_check_weights(const struct plan_builder *builder, const struct spec_stage *stage)
{
    const struct spec_value *weights = weights_of(stage);

    if (weights != NULL && !isfinite(total_of(weights)))
        return spec_complain(builder->errors, weights->line, weights->column,
                             "sample_from_datasets: the weights add up to %g", total_of(weights));
    return TUNDISH_OK;
}

bool
build_is_drawn(const struct spec_stage *stage, uint32_t dataset)
{
    const struct spec_value *weights = weights_of(stage);

    return weights == NULL || weights->items[dataset].number > 0 ||
           (dataset == 0 && total_of(weights) == 0);
}

bool
build_is_draw(const struct spec_stage *stage)
{
    const struct spec_value *weights = weights_of(stage);

    return weights == NULL || total_of(weights) > 0;
}
