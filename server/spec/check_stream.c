/* check_stream.c - a stream: its stages, and what they mean where they stand. */
#include <string.h>

#include "spec/check.h"

/* Where a dataset stands. One dataset may be named several times, and a variable in it may have
 * a meaning in one of them only. */
struct standing {
    struct check *check;
    bool from_function;
    bool inside; /* interleave or flat_map, so that there is an outer element */
};

static void check_standing(const struct standing *standing, const struct spec_dataset *dataset);

/* The attributes of tf.distribute.InputContext, and its get_per_replica_batch_size. */
static bool
is_input_context(const char *name)
{
    static const char *const names[] = { "num_input_pipelines", "input_pipeline_id",
                                         "num_replicas_in_sync", "per_replica_batch_size" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void
check_variable(const struct standing *standing, const struct spec_value *value)
{
    struct spec_errors *errors = standing->check->errors;

    if (is_input_context(value->text) && standing->from_function) {
        /* Only per_replica_batch_size takes an argument. */
        if (value->has_argument != (strcmp(value->text, "per_replica_batch_size") == 0))
            spec_complain(errors, value->line, value->column,
                          "expected $num_input_pipelines, $input_pipeline_id, "
                          "$num_replicas_in_sync or $per_replica_batch_size(G)");
    } else if (is_input_context(value->text) && !standing->inside) {
        spec_complain(errors, value->line, value->column,
                      "$%s needs `distribute: {from_function: true}`", value->text);
    } else if (!standing->inside) {
        spec_complain(errors, value->line, value->column,
                      "$%s has no meaning here: $name is a column of the element outside, within "
                      "interleave and flat_map",
                      value->text);
    }
}

/* Check the variables and datasets in a value, and in its lists and mappings. */
static void
check_value_standing(const struct standing *standing, const struct spec_value *value)
{
    if (value->kind == SPEC_VARIABLE)
        check_variable(standing, value);
    else if (value->kind == SPEC_DATASET)
        check_standing(standing, value->dataset);
    else if (value->kind == SPEC_LIST || value->kind == SPEC_MAP)
        for (uint32_t i = 0; i < value->count; i++)
            check_value_standing(standing, &value->items[i]);
}

static void
check_stage_standing(const struct standing *standing, const struct spec_stage *stage)
{
    struct standing inner = *standing;

    inner.inside = inner.inside || stage_runs_dataset(stage->info);
    for (uint32_t i = 0; i < stage->info->parameter_count; i++) {
        const struct parameter_info *parameter = &stage->info->parameters[i];
        const struct spec_value *value = stage->arguments[i];
        bool is_given = (stage->given >> i & 1) != 0;

        if (value == NULL)
            continue;
        /* An inner dataset is checked as inside; the other parameters of its stage are outside. */
        if (is_given)
            check_value_standing(value->kind == SPEC_DATASET ? &inner : standing, value);
        /* The default of filenames is $value, which the user has not written: the message is about
         * the parameter that is missing. */
        else if (value->kind == SPEC_VARIABLE && !standing->inside)
            spec_complain(standing->check->errors, stage->line, stage->column,
                          "%s needs %s here: only inside interleave and flat_map does it take the "
                          "column `value` of the element outside",
                          stage->info->name, parameter->name);
    }
}

static void
check_standing(const struct standing *standing, const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++)
        check_stage_standing(standing, &dataset->stages[i]);
}

void
check_stream(struct check *check, const struct spec_value *name, const struct spec_value *value,
             struct spec_stream *ret_stream)
{
    static const struct spec_value nothing = { .kind = SPEC_NULL };
    const struct stage_info *info = &section_stream;
    struct standing standing = { .check = check };
    const struct spec_value **arguments;
    const struct spec_value *dataset, *distribute, *deliver;
    uint64_t given;

    ret_stream->name = name->text;
    ret_stream->line = name->line;
    ret_stream->column = name->column;
    arguments = check_mapping(check, info, value, &given);
    dataset = arguments[stage_parameter(info, "dataset")];
    distribute = arguments[stage_parameter(info, "distribute")];
    deliver = arguments[stage_parameter(info, "deliver")];
    check_distribute(check, distribute != NULL ? distribute : &nothing, &ret_stream->distribute);
    check_deliver(check, deliver != NULL ? deliver : &nothing, &ret_stream->deliver);
    if (ret_stream->distribute.even_repeat && ret_stream->deliver.skip_errors)
        spec_complain(check->errors, ret_stream->deliver.line, ret_stream->deliver.column,
                      "on_error: skip leaves rows out once they are dealt, so replicas would not "
                      "get equally many: with distribute.even: repeat, on_error is stop");
    if (dataset == NULL || dataset->kind != SPEC_DATASET)
        return;
    ret_stream->dataset = *dataset->dataset;
    /* A dataset that is too large has been reported; walking it could take exponential time. */
    if (ret_stream->dataset.stage_total > STAGE_TOTAL_MAX ||
        ret_stream->dataset.depth > DATASET_DEPTH_MAX)
        return;
    standing.from_function = ret_stream->distribute.from_function;
    check_standing(&standing, &ret_stream->dataset);
}
