/* variable.c - $name in a source's arguments: a column of the outer element, or a number of the
 * job. */
#include "source/variable.h"

#include <string.h>

#include "core/must.h"

/* The packed word: the worker in 16 bits, the number of workers in 16, the replicas in 32. */
enum { WORKER_SHIFT = 48, WORKER_COUNT_SHIFT = 32 };

static const char *const distribution_names[] = {
    "num_input_pipelines",
    "input_pipeline_id",
    "num_replicas_in_sync",
    "per_replica_batch_size",
};

enum { NAME_COUNT = sizeof distribution_names / sizeof *distribution_names };

const char *
source_column_name(const struct stage_config *config)
{
    const struct spec_value *name = spec_get(config->stage, "name");

    return name == NULL ? "value" : name->text;
}

bool
variable_is_distribution(const struct spec_value *value, const struct schema *outer)
{
    /* An outer column hides a number of the job, as inner names do. */
    if (outer != NULL && schema_find(outer, value->text) >= 0)
        return false;
    for (int i = 0; i < NAME_COUNT; i++)
        if (strcmp(distribution_names[i], value->text) == 0)
            return true;
    return false;
}

tundish_status
variable_spec(const struct stage_config *config, const struct spec_value *value,
              struct column_spec *ret_spec)
{
    int32_t index = config->outer == NULL ? -1 : schema_find(config->outer, value->text);

    if (index >= 0) {
        *ret_spec = config->outer->columns[index];
        return TUNDISH_OK;
    }
    if (variable_is_distribution(value, NULL)) {
        *ret_spec = (struct column_spec){ .dtype = TUNDISH_INT32, .kind = TUNDISH_DENSE };
        return TUNDISH_OK;
    }
    return spec_complain(config->errors, value->line, value->column,
                         config->outer == NULL ? "$%s is not allowed here: columns of an outer "
                                                 "element exist only inside interleave and flat_map"
                                               : "$%s is not a column of the outer element",
                         value->text);
}

tundish_status
variable_check_integer(const struct stage_config *config, const struct spec_value *value)
{
    struct column_spec spec = { 0 };
    tundish_status status = variable_spec(config, value, &spec);

    if (status == TUNDISH_OK &&
        (spec.kind != TUNDISH_DENSE || spec.rank != 0 || !tnd_dtype_is_integer(spec.dtype)))
        return spec_complain(config->errors, value->line, value->column,
                             "$%s must be one integer here", value->text);
    return status;
}

tundish_status
variable_check_text(const struct stage_config *config, const struct spec_value *value)
{
    struct column_spec spec = { 0 };
    tundish_status status = variable_spec(config, value, &spec);

    if (status == TUNDISH_OK &&
        (spec.kind != TUNDISH_DENSE || spec.rank != 0 || spec.dtype != TUNDISH_STRING))
        return spec_complain(config->errors, value->line, value->column,
                             "$%s must be one string here", value->text);
    return status;
}

uint64_t
variable_pack(const struct order_services *services)
{
    must(services->worker <= UINT16_MAX && services->worker_count <= UINT16_MAX);
    return (uint64_t)services->worker << WORKER_SHIFT |
           (uint64_t)services->worker_count << WORKER_COUNT_SHIFT | services->replicas_in_sync;
}

int32_t
variable_unpack(const struct spec_value *value, uint64_t packed)
{
    uint32_t replicas = (uint32_t)packed;

    if (strcmp(value->text, distribution_names[0]) == 0)
        return (int32_t)((packed >> WORKER_COUNT_SHIFT) & UINT16_MAX);
    if (strcmp(value->text, distribution_names[1]) == 0)
        return (int32_t)(packed >> WORKER_SHIFT);
    if (strcmp(value->text, distribution_names[2]) == 0)
        return (int32_t)replicas;
    /* As tf.distribute's InputContext.get_per_replica_batch_size. A damaged word must not divide by
     * 0. */
    return (int32_t)(value->integer / (replicas > 0 ? replicas : 1));
}

const struct column *
variable_column(const struct frame *frame, const char *name)
{
    for (const struct frame *outer = frame->outer; outer != NULL; outer = outer->outer) {
        int32_t index = schema_find(outer->schema, name);

        if (index >= 0)
            return &outer->columns[index];
    }
    must(false); /* open has looked for it */
    return NULL;
}
