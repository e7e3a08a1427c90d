/* content_op.c - a transform from a shared object (tundish_op.h).
 *
 * One that takes a single column works on each of `columns` in turn; one that takes several takes
 * them all together and gives new columns.
 */
#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "column/literal.h"
#include "content/custom/op_list.h"
#include "content/custom/op_object.h"
#include "content/text/texts.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/plural.h"
#include "spec/column_list.h"
#include "spec/shared_object.h"

enum { WIDTH_MAX = 1 << 20 };

_Static_assert(sizeof(tundish_op_text) == sizeof(struct byte_view), "strings are handed over");

/* The inputs of one call, and the outputs it makes. */
struct group {
    uint32_t inputs[OP_COLUMNS_MAX], outputs[OP_COLUMNS_MAX];
    tundish_op_spec taken[OP_COLUMNS_MAX], made[OP_COLUMNS_MAX];
    void *state;
    bool is_open;
};

struct op {
    const tundish_op *op;
    uint32_t group_count;
    struct group *groups;
    struct content_targets targets;
};

static bool
takes_vectors(const struct op *stage)
{
    return (stage->op->flags & TUNDISH_OP_VECTORS) != 0;
}

static tundish_status
describe_input(const struct stage_config *config, const struct op *stage,
               const struct column_spec *column, tundish_op_spec *ret_spec)
{
    *ret_spec = (tundish_op_spec){ .dtype = column->dtype };
    if (!takes_vectors(stage))
        return TUNDISH_OK;
    if (column->kind == TUNDISH_SPARSE || column->rank <= (int)config->depth ||
        column->shape[column->rank - 1] <= 0 || column->shape[column->rank - 1] > WIDTH_MAX ||
        (column->kind == TUNDISH_RAGGED && column->ragged_rank >= column->rank - 1))
        return stage_complain(config,
                              "op %s takes vectors, but '%s' has no last dimension of a known size "
                              "from 1 to %d in each row",
                              stage->op->name, column->name, WIDTH_MAX);
    ret_spec->width = (uint32_t)column->shape[column->rank - 1];
    return TUNDISH_OK;
}

/* Describe an output. `column` is still a copy of the first input's. */
static tundish_status
describe_output(const struct stage_config *config, const struct op *stage,
                const tundish_op_spec *spec, struct column_spec *column)
{
    if (spec->dtype != TUNDISH_STRING && tnd_dtype_bytes(spec->dtype) == 0)
        return stage_complain(config, "op %s gives an unknown dtype %d", stage->op->name,
                              (int)spec->dtype);
    column->dtype = spec->dtype;
    column->has_range = false;
    if (takes_vectors(stage))
        column->rank--;
    if (spec->width == TUNDISH_OP_LIST)
        return texts_open_lists(config, column);
    if (spec->width > WIDTH_MAX)
        return stage_complain(config, "op %s makes %u values from one; at most %d are allowed",
                              stage->op->name, spec->width, WIDTH_MAX);
    if (spec->width == 0)
        return TUNDISH_OK;
    if (column->kind == TUNDISH_SPARSE || column->rank < 0 || column->rank == RANK_MAX)
        return stage_complain(config, "op %s cannot add a dimension to '%s'", stage->op->name,
                              column->name);
    column->shape[column->rank++] = spec->width;
    return TUNDISH_OK;
}

static tundish_status
ask_object(const struct stage_config *config, const struct op *stage, struct group *group)
{
    char *parameters = spec_json(spec_get(config->stage, "parameters"));
    tundish_op_spec given[OP_COLUMNS_MAX] = { 0 };
    const char *problem;

    memcpy(given, group->taken, sizeof given); /* a copy, for the object may write to it */
    group->is_open = true;
    problem = stage->op->open(parameters, given, group->made, &group->state);
    free(parameters);
    if (problem != NULL)
        return stage_complain(config, "op %s, column '%s': %s", stage->op->name,
                              config->input->columns[group->inputs[0]].name, problem);
    return TUNDISH_OK;
}

static tundish_status
open_group(const struct stage_config *config, const struct op *stage, struct group *group,
           struct schema *schema)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < stage->op->input_count && status == TUNDISH_OK; i++)
        status = describe_input(config, stage, &config->input->columns[group->inputs[i]],
                                &group->taken[i]);
    if (status == TUNDISH_OK)
        status = ask_object(config, stage, group);
    for (uint32_t i = 0; i < stage->op->output_count && status == TUNDISH_OK; i++)
        status =
            describe_output(config, stage, &group->made[i], &schema->columns[group->outputs[i]]);
    return status;
}

/* Open one group for each column. */
static tundish_status
open_singles(const struct stage_config *config, struct op *stage, struct schema *schema)
{
    tundish_status status = content_targets_open(config, schema, &stage->targets);

    stage->groups = tnd_zalloc((size_t)stage->targets.count + 1, sizeof *stage->groups);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        struct group *group = &stage->groups[stage->group_count++];

        group->inputs[0] = stage->targets.list[i].input;
        group->outputs[0] = stage->targets.list[i].output;
        status = open_group(config, stage, group, schema);
    }
    return status;
}

/* Open one group of all columns, which makes new columns. */
static tundish_status
open_together(const struct stage_config *config, struct op *stage, struct schema *schema)
{
    const struct spec_value *columns = spec_get(config->stage, "columns");
    const struct spec_value *output = spec_get(config->stage, "output");
    const char **known = schema_names(config->input);
    struct spec_names from = { 0 }, to = { 0 };
    struct group *group;
    tundish_status status = TUNDISH_OK;

    stage->groups = tnd_zalloc(1, sizeof *stage->groups);
    group = stage->groups;
    if (columns == NULL || output == NULL)
        status = stage_complain(config, "op %s takes %u columns and needs columns and output",
                                stage->op->name, stage->op->input_count);
    if (status == TUNDISH_OK)
        status = spec_expand_columns(columns, known, config->input->count, config->errors, &from);
    if (status == TUNDISH_OK)
        status = spec_expand_columns(output, NULL, 0, config->errors, &to);
    if (status == TUNDISH_OK &&
        (from.count != stage->op->input_count || to.count != stage->op->output_count))
        status = stage_complain(config, "op %s makes %u column%s of %u", stage->op->name,
                                stage->op->output_count, TND_PLURAL(stage->op->output_count),
                                stage->op->input_count);
    schema_pass_all(schema, config->input);
    for (size_t i = 0; i < from.count && status == TUNDISH_OK; i++)
        group->inputs[i] = (uint32_t)schema_find(config->input, from.names[i]);
    for (size_t i = 0; i < to.count && status == TUNDISH_OK; i++) {
        struct column_spec *column;

        if (schema_find(schema, to.names[i]) >= 0) {
            status = stage_complain(config, "output '%s' is a column already", to.names[i]);
            break;
        }
        column = schema_pass(schema, config->input, group->inputs[0]);
        free(column->name);
        column->name = tnd_strdup(to.names[i]);
        column->passed_from = -1;
        group->outputs[i] = schema->count - 1;
    }
    if (status == TUNDISH_OK) {
        stage->group_count = 1;
        status = open_group(config, stage, group, schema);
    }
    free(known);
    spec_names_close(&from);
    spec_names_close(&to);
    return status;
}

static tundish_status
op_open(void *state, const struct stage_config *config, struct schema *ret_schema,
        bool *ret_batch_wide)
{
    struct op *stage = state;
    tundish_status status = op_object_find(config, &stage->op);

    *ret_batch_wide = false;
    if (status != TUNDISH_OK)
        return status;
    return stage->op->input_count == 1 && stage->op->output_count == 1
               ? open_singles(config, stage, ret_schema)
               : open_together(config, stage, ret_schema);
}

/* The state of apply's callbacks. The op only sees its first member. */
struct call {
    tundish_op_call call; /* first: the op sees this */
    struct text_maker maker;
    struct frame *output;
    const struct column *taken; /* one value for each that apply counts */
    const struct group *group;
    uint32_t output_count;
    struct op_list *lists; /* one for each output, open where it is of lists */
};

static struct call *
call_of(tundish_op_call *call)
{
    return (struct call *)(void *)call;
}

static uint8_t *
text_room_of(tundish_op_call *call, size_t bytes)
{
    struct text_maker *maker = &call_of(call)->maker;

    text_room(maker, bytes);
    return (uint8_t *)(uintptr_t)text_take(maker, bytes).data;
}

/* Called by the op: its index is checked, since the object may be wrong. */
static void
reject(tundish_op_call *call, uint64_t index, const char *sentence)
{
    struct call *own = call_of(call);

    if (index < (uint64_t)own->taken->value_count)
        frame_reject(own->output, column_element_of(own->taken, (int64_t)index), "%s",
                     sentence != NULL ? sentence : "it was rejected");
}

static void *
list_room(tundish_op_call *call, uint32_t output, uint64_t index, uint64_t count)
{
    struct call *own = call_of(call);

    return output < own->output_count && own->group->made[output].width == TUNDISH_OP_LIST
               ? op_list_room(&own->lists[output], index, count)
               : NULL;
}

/* Make room for an output with the structure of `taken`. Lists grow on demand instead. */
static void *
open_output(struct call *call, uint32_t output)
{
    const tundish_op_spec *spec = &call->group->made[output];
    uint32_t index = call->group->outputs[output];
    struct column *column = &call->output->columns[index];
    int64_t count = call->taken->value_count * (spec->width > 0 ? (int64_t)spec->width : 1);
    size_t bytes = literal_bytes(spec->dtype) * (size_t)count;
    void *values;

    if (spec->width == TUNDISH_OP_LIST) {
        op_list_open(&call->lists[output], call->output->scratch, spec->dtype,
                     call->taken->value_count);
        return NULL;
    }
    values = frame_values(call->output, index, bytes);
    *column = *call->taken;
    column->value_count = count;
    column->values = values;
    if (spec->width > 0)
        column->levels[column->level_count++] = (struct level){ .uniform = spec->width };
    if (spec->dtype == TUNDISH_STRING) /* strings that the op leaves out are empty */
        memset(values, 0, bytes);
    return values;
}

/* Finish an output: lists become columns, and booleans become 0 or 1, which other stages rely
 * on. */
static void
settle_output(struct call *call, uint32_t output)
{
    const tundish_op_spec *spec = &call->group->made[output];
    struct column *column = &call->output->columns[call->group->outputs[output]];

    if (spec->width == TUNDISH_OP_LIST) {
        *column = *call->taken;
        op_list_append(&call->lists[output], column);
    }
    if (spec->dtype == TUNDISH_BOOL) {
        uint8_t *values = (uint8_t *)(uintptr_t)column->values;

        for (int64_t i = 0; i < column->value_count; i++)
            values[i] = values[i] != 0;
    }
}

/* A column without its last dimension, if the op takes vectors. */
static struct column
taken_of(const struct op *stage, const struct column *column)
{
    struct column taken = *column;

    if (takes_vectors(stage))
        taken.value_count = column_list_count(column, --taken.level_count);
    return taken;
}

static tundish_status
apply_group(const struct op *stage, const struct group *group, const struct frame *input,
            struct frame *output)
{
    const struct column first = taken_of(stage, &input->columns[group->inputs[0]]);
    struct op_list lists[OP_COLUMNS_MAX];
    const void *inputs[OP_COLUMNS_MAX];
    void *outputs[OP_COLUMNS_MAX];
    struct call call = {
        .call = { .size = sizeof call.call,
                  .text_room = text_room_of,
                  .reject = reject,
                  .list_room = list_room },
        .maker = { .scratch = output->scratch },
        .output = output,
        .taken = &first,
        .group = group,
        .output_count = stage->op->output_count,
        .lists = lists,
    };

    for (uint32_t i = 0; i < stage->op->input_count; i++) {
        const struct column *column = &input->columns[group->inputs[i]];
        const struct column taken = taken_of(stage, column);

        if (!column_same_structure(&first, &taken))
            return tnd_fail(TUNDISH_E_DATA, "op %s: columns '%s' and '%s' are not of equal shape",
                            stage->op->name, input->schema->columns[group->inputs[0]].name,
                            input->schema->columns[group->inputs[i]].name);
        must(!takes_vectors(stage) ||
             column->value_count == taken.value_count * (int64_t)group->taken[i].width);
        inputs[i] = column->values;
    }
    for (uint32_t i = 0; i < stage->op->output_count; i++)
        outputs[i] = open_output(&call, i);
    stage->op->apply(group->state, (uint64_t)first.value_count, inputs, outputs, &call.call);
    for (uint32_t i = 0; i < stage->op->output_count; i++)
        settle_output(&call, i);
    return TUNDISH_OK;
}

static tundish_status
op_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct op *stage = state;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < stage->group_count && status == TUNDISH_OK; i++)
        status = apply_group(stage, &stage->groups[i], input, output);
    return status;
}

static void
op_close(void *state)
{
    struct op *stage = state;

    for (uint32_t i = 0; stage->groups != NULL && i < stage->group_count; i++)
        if (stage->groups[i].is_open)
            stage->op->close(stage->groups[i].state);
    free(stage->groups);
    content_targets_close(&stage->targets);
}

const struct content_ops content_op = {
    .name = "op",
    .state_bytes = sizeof(struct op),
    .open = op_open,
    .apply = op_apply,
    .close = op_close,
};
