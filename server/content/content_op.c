/* content_op.c - a transform from a shared object (tundish_op.h).
 *
 * One that takes a single column works on each of `columns` in turn; one that takes several takes
 * them all together and gives new columns. The object stays loaded: what it gave out may be in use.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "column/dims.h"
#include "content/literal.h"
#include "text/texts.h"
#include "core/json.h"
#include "core/memory.h"
#include "spec/columns.h"
#include "tundish/tundish_op.h"

enum { COLUMNS_MAX = 64, WIDTH_MAX = 1 << 20 };

_Static_assert(sizeof(tundish_op_text) == sizeof(struct byte_view), "strings are handed over");

/* Inputs that are taken together, and what becomes of them. */
struct group {
    uint32_t inputs[COLUMNS_MAX], outputs[COLUMNS_MAX];
    tundish_op_spec specs[COLUMNS_MAX]; /* of the outputs */
    void *state;
    bool is_open;
};

struct op {
    const tundish_op *op;
    uint32_t group_count;
    struct group *groups;
    struct content_targets targets;
};

/* --- The shared object ------------------------------------------------------------------------ */

static tundish_status
check_op(const struct content_config *config, const tundish_op *op)
{
    if (op->version != TUNDISH_OP_VERSION || op->size < sizeof *op)
        return content_complain(config, "op %s is made for version %u of tundish_op.h, not %u",
                                op->name, op->version, TUNDISH_OP_VERSION);
    if ((op->flags & TUNDISH_OP_PURE) == 0)
        return content_complain(config, "op %s does not say that it is pure (TUNDISH_OP_PURE)",
                                op->name);
    if (op->input_count < 1 || op->input_count > COLUMNS_MAX || op->output_count < 1 ||
        op->output_count > COLUMNS_MAX || op->open == NULL || op->apply == NULL ||
        op->close == NULL)
        return content_complain(config, "op %s: its table is incomplete", op->name);
    return TUNDISH_OK;
}

static tundish_status
find_op(const struct content_config *config, struct op *stage)
{
    const char *library = spec_text(config->stage, "library");
    const char *name = spec_text(config->stage, "name");
    /* A bare name is looked for where libraries are, as by the linker. */
    char *path = strchr(library, '/') != NULL ? spec_path(config->stage->file, library)
                                              : tnd_strdup(library);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tundish_op *const *(*ops)(void) = NULL;
    const tundish_op *const *list;

    free(path);
    if (object == NULL)
        return content_complain(config, "op: %s", dlerror());
    *(void **)&ops = dlsym(object, "tundish_ops");
    if (ops == NULL)
        return content_complain(config, "op: %s does not export tundish_ops", library);
    list = ops();
    for (; list != NULL && *list != NULL; list++)
        if ((*list)->name != NULL && strcmp((*list)->name, name) == 0) {
            stage->op = *list;
            return check_op(config, *list);
        }
    return content_complain(config, "op: %s has no transform '%s'", library, name);
}

/* --- Parameters ------------------------------------------------------------------------------- */

static void
write_parameters(struct json *json, const struct spec_value *value)
{
    if (value == NULL || value->kind == SPEC_NULL) {
        json_null(json);
    } else if (value->kind == SPEC_LIST) {
        json_array(json);
        for (uint32_t i = 0; i < value->count; i++)
            write_parameters(json, &value->items[i]);
        json_array_end(json);
    } else if (value->kind == SPEC_MAP) {
        json_object(json);
        for (uint32_t i = 0; i < value->count; i++) {
            json_key(json, value->keys[i].text);
            write_parameters(json, &value->items[i]);
        }
        json_object_end(json);
    } else if (value->kind == SPEC_BOOL) {
        json_bool(json, value->boolean);
    } else if (value->kind == SPEC_INTEGER) {
        json_int(json, value->integer);
    } else if (value->kind == SPEC_NATURAL) {
        json_uint(json, value->natural);
    } else if (value->kind == SPEC_NUMBER) {
        json_float(json, value->number, 17);
    } else {
        json_text(json, value->text);
    }
}

static char *
parameters_text(const struct content_config *config)
{
    struct json json;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    json_start(&json, file);
    write_parameters(&json, spec_get(config->stage, "parameters"));
    fclose(file);
    return text;
}

/* --- Columns ---------------------------------------------------------------------------------- */

static tundish_status
describe_output(const struct content_config *config, const struct op *stage,
                const tundish_op_spec *spec, struct column_spec *column)
{
    if (spec->dtype != TUNDISH_STRING && tnd_dtype_bytes(spec->dtype) == 0)
        return content_complain(config, "op %s gives an unknown dtype %d", stage->op->name,
                                (int)spec->dtype);
    if (spec->width > WIDTH_MAX)
        return content_complain(config, "op %s gives %u values for one, and at most %d may be",
                                stage->op->name, spec->width, WIDTH_MAX);
    column->dtype = spec->dtype;
    column->has_range = false;
    if (spec->width == 0)
        return TUNDISH_OK;
    if (column->kind == TUNDISH_SPARSE || column->rank < 0 || column->rank == RANK_MAX)
        return content_complain(config, "op %s cannot give '%s' one more dimension",
                                stage->op->name, column->name);
    column->shape[column->rank++] = spec->width;
    return TUNDISH_OK;
}

static tundish_status
open_group(const struct content_config *config, const struct op *stage, struct group *group,
           struct schema *schema)
{
    tundish_op_spec inputs[COLUMNS_MAX] = { 0 };
    char *parameters = parameters_text(config);
    const char *problem;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < stage->op->input_count; i++)
        inputs[i].dtype = config->input->columns[group->inputs[i]].dtype;
    group->is_open = true;
    problem = stage->op->open(parameters, inputs, group->specs, &group->state);
    free(parameters);
    if (problem != NULL)
        return content_complain(config, "op %s, column '%s': %s", stage->op->name,
                                config->input->columns[group->inputs[0]].name, problem);
    for (uint32_t i = 0; i < stage->op->output_count && status == TUNDISH_OK; i++)
        status =
            describe_output(config, stage, &group->specs[i], &schema->columns[group->outputs[i]]);
    return status;
}

/* Each column by itself. */
static tundish_status
open_singles(const struct content_config *config, struct op *stage, struct schema *schema)
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

/* All columns together, to new ones. */
static tundish_status
open_together(const struct content_config *config, struct op *stage, struct schema *schema)
{
    const struct spec_value *columns = spec_get(config->stage, "columns");
    const struct spec_value *output = spec_get(config->stage, "output");
    const char **known = schema_names(config->input);
    struct name_list from = { 0 }, to = { 0 };
    struct group *group;
    tundish_status status = TUNDISH_OK;

    stage->groups = tnd_zalloc(1, sizeof *stage->groups);
    group = stage->groups;
    if (columns == NULL || output == NULL)
        status = content_complain(config, "op %s takes %u columns and needs columns and output",
                                  stage->op->name, stage->op->input_count);
    if (status == TUNDISH_OK)
        status = spec_expand_columns(columns, known, config->input->count, config->errors, &from);
    if (status == TUNDISH_OK)
        status = spec_expand_columns(output, NULL, 0, config->errors, &to);
    if (status == TUNDISH_OK &&
        (from.count != stage->op->input_count || to.count != stage->op->output_count))
        status = content_complain(config, "op %s makes %u column%s of %u", stage->op->name,
                                  stage->op->output_count, stage->op->output_count == 1 ? "" : "s",
                                  stage->op->input_count);
    schema_pass_all(schema, config->input);
    for (size_t i = 0; i < from.count && status == TUNDISH_OK; i++)
        group->inputs[i] = (uint32_t)schema_find(config->input, from.names[i]);
    for (size_t i = 0; i < to.count && status == TUNDISH_OK; i++) {
        struct column_spec *column;

        if (schema_find(schema, to.names[i]) >= 0) {
            status = content_complain(config, "output '%s' is a column already", to.names[i]);
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
    name_list_close(&from);
    name_list_close(&to);
    return status;
}

static tundish_status
op_open(void *state, const struct content_config *config, struct schema *ret_schema,
        bool *ret_batch_wide)
{
    struct op *stage = state;
    tundish_status status = find_op(config, stage);

    *ret_batch_wide = false;
    if (status != TUNDISH_OK)
        return status;
    return stage->op->input_count == 1 && stage->op->output_count == 1
               ? open_singles(config, stage, ret_schema)
               : open_together(config, stage, ret_schema);
}

/* --- Values ----------------------------------------------------------------------------------- */

struct call {
    tundish_op_call call; /* first: the op sees this */
    struct text_maker maker;
    struct frame *output;
    const struct column *column;
};

static uint8_t *
text_room_of(tundish_op_call *call, size_t bytes)
{
    struct text_maker *maker = &((struct call *)(void *)call)->maker;

    text_room(maker, bytes);
    return (uint8_t *)(uintptr_t)text_take(maker, bytes).data;
}

static void
reject(tundish_op_call *call, uint64_t index, const char *sentence)
{
    struct call *own = (struct call *)(void *)call;

    if (index < (uint64_t)own->column->value_count)
        frame_reject(own->output, column_element_of(own->column, (int64_t)index), "%s",
                     sentence != NULL ? sentence : "it was rejected");
}

/* Room for the values of an output, which has the structure of the first input. */
static void *
place_output(const tundish_op_spec *spec, const struct column *like, struct frame *output,
             uint32_t index)
{
    struct column *column = &output->columns[index];
    int64_t width = spec->width > 0 ? spec->width : 1;
    size_t bytes = literal_bytes(spec->dtype) * (size_t)(like->value_count * width);
    void *values = frame_values(output, index, bytes);

    *column = *like;
    column->value_count = like->value_count * width;
    column->values = values;
    if (spec->width > 0)
        column->levels[column->level_count++] = (struct level){ .uniform = width };
    if (spec->dtype == TUNDISH_STRING) /* of what the op forgets nothing is left to chance */
        memset(values, 0, bytes);
    return values;
}

/* Whatever is not 0 is true: other stages count on 1. */
static void
settle_bools(uint8_t *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] != 0;
}

static tundish_status
apply_group(const struct op *stage, const struct group *group, const struct frame *input,
            struct frame *output)
{
    const struct column *first = &input->columns[group->inputs[0]];
    const void *inputs[COLUMNS_MAX];
    void *outputs[COLUMNS_MAX];
    struct call call = {
        .call = { .size = sizeof call.call, .text_room = text_room_of, .reject = reject },
        .maker = { .scratch = output->scratch },
        .output = output,
        .column = first,
    };

    for (uint32_t i = 0; i < stage->op->input_count; i++) {
        const struct column *column = &input->columns[group->inputs[i]];

        if (!column_same_structure(first, column))
            return tnd_fail(TUNDISH_E_DATA, "op %s: columns '%s' and '%s' are not of equal shape",
                            stage->op->name, input->schema->columns[group->inputs[0]].name,
                            input->schema->columns[group->inputs[i]].name);
        inputs[i] = column->values;
    }
    for (uint32_t i = 0; i < stage->op->output_count; i++)
        outputs[i] = place_output(&group->specs[i], first, output, group->outputs[i]);
    stage->op->apply(group->state, (uint64_t)first->value_count, inputs, outputs, &call.call);
    for (uint32_t i = 0; i < stage->op->output_count; i++)
        if (group->specs[i].dtype == TUNDISH_BOOL)
            settle_bools(outputs[i], output->columns[group->outputs[i]].value_count);
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
