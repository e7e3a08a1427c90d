/* content_filter.c - the predicate of filter: one bool for each element. */
#include <stdlib.h>

#include "content/content.h"
#include "content/expression/expression_tree.h"

struct filter {
    struct expression *expression;
};

static tundish_status
filter_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    struct filter *filter = state;
    const struct spec_value *predicate = config->stage->arguments[0];
    struct expression_config expression = {
        .text = predicate->text,
        .line = predicate->line,
        .column = predicate->column + predicate->quoted,
        .input = config->input,
        .outer = config->outer,
        .depth = config->depth,
        .literals = config->literals,
        .literal_count = config->literal_count,
        .errors = config->errors,
    };
    const struct column_spec *spec;
    tundish_status status = expression_open(&expression, &filter->expression);

    if (status != TUNDISH_OK)
        return status;
    spec = expression_spec(filter->expression);
    if (spec->dtype != TUNDISH_BOOL || spec->rank != 0 || spec->kind != TUNDISH_DENSE) {
        char *text = column_spec_text(spec);

        status = expression_complain(
            &expression, 0, "filter needs one bool for each element, and this gives %s", text);
        free(text);
        return status;
    }
    schema_add(ret_schema, "keep", TUNDISH_BOOL);
    *ret_batch_wide = expression_is_batch_wide(filter->expression);
    return TUNDISH_OK;
}

static tundish_status
filter_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct filter *filter = state;

    expression_apply(filter->expression, input, output, 0);
    return TUNDISH_OK;
}

static void
filter_close(void *state)
{
    struct filter *filter = state;

    expression_close(filter->expression);
}

const struct content_ops content_filter = {
    .name = "filter",
    .state_bytes = sizeof(struct filter),
    .open = filter_open,
    .apply = filter_apply,
    .close = filter_close,
};
