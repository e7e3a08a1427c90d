/* content_covariance.c - tft.covariance: learn the matrix and pass the columns on. */
#include "content/learned/learning.h"

static tundish_status
covariance_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct content_targets targets = { 0 };
    tundish_status status = content_targets_open(config, ret_schema, &targets);

    (void)state;
    *ret_batch_wide = false;
    for (uint32_t i = 0; i < targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[targets.list[i].output];

        /* The output is the input's column, unchanged. */
        column->passed_from = (int32_t)targets.list[i].input;
        if (column->dtype == TUNDISH_STRING || column->kind != TUNDISH_DENSE ||
            column->rank != (int)config->depth + 1 || column->shape[column->rank - 1] < 0)
            return stage_complain(config,
                                  "covariance: the rows of '%s' must be vectors of a known length",
                                  column->name);
        status = learned_require(config, learned_name_of(config, column->name));
    }
    content_sort_columns(ret_schema, &targets);
    content_targets_close(&targets);
    return status;
}

static void
covariance_close(void *state)
{
    (void)state;
}

static const struct content_learning learning = {
    .kind = LEARNED_COVARIANCE,
    .keeps_columns = true,
};

const struct content_ops content_covariance = {
    .name = "covariance",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = 1,
    .open = covariance_open,
    .apply = content_apply_passing,
    .close = covariance_close,
};
