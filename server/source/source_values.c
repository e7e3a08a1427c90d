/* source_values.c - distribute_values_from_function: one element for each replica: the value of an
 * expression of its number, or the same tensor for all.
 *
 * The words of an element are the number of replicas in sync and the replica's own number, which
 * value_fn sees in TensorFlow's ValueContext.
 */
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

#include "content/expression/expression.h"
#include "core/memory.h"
#include "source/rows/tensor_literal.h"

enum { INPUTS = 2 };
static const char *const input_names[INPUTS] = { "num_replicas_in_sync",
                                                 "replica_id_in_sync_group" };

struct values_column {
    struct expression *expression; /* NULL: a tensor */
    struct tensor tensor;
};

struct values {
    struct schema inputs;
    uint32_t count;
    struct values_column *columns;
};

struct values_iterator {
    uint32_t next;
};

static tundish_status
values_order_open(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

static enum order_result
values_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct values_iterator *state = (struct values_iterator *)iterator->state;
    const struct order_services *services = iterator->instance->services;
    uint32_t local = services->replicas_in_sync / services->worker_count;

    for (; *ret_count < max; ++*ret_count) {
        if (state->next == local)
            return ORDER_END;
        words[*ret_count * SOURCE_WIDTH] = services->replicas_in_sync;
        /* Replicas are numbered across workers, in the workers' order. */
        words[*ret_count * SOURCE_WIDTH + 1] = services->worker * local + state->next++;
    }
    return ORDER_OK;
}

static void
values_order_close(struct order_iterator *iterator)
{
    (void)iterator;
}

static tundish_status
open_expression(struct values *values, const struct stage_config *config, const char *name,
                const struct spec_value *text, struct schema *ret_schema)
{
    struct expression_config wanted = {
        .text = text->text,
        .line = text->line,
        .column = text->column,
        .input = &values->inputs,
        .errors = config->errors,
    };
    struct values_column *made = &values->columns[values->count];
    struct column_spec *column;
    tundish_status status = expression_open(&wanted, &made->expression);

    if (status != TUNDISH_OK)
        return status;
    values->count++;
    column = schema_add(ret_schema, name, TUNDISH_INT32);
    /* The expression's spec has no name of its own: keep the one that the schema owns. */
    name = column->name;
    *column = *expression_spec(made->expression);
    column->name = (char *)(uintptr_t)name;
    column->passed_from = -1;
    return TUNDISH_OK;
}

static tundish_status
open_tensor(struct values *values, const struct stage_config *config, const char *name,
            const struct spec_value *value, struct schema *ret_schema)
{
    struct tensor *tensor = &values->columns[values->count].tensor;
    struct column_spec *column;
    tundish_status status = tensor_open(config, value, tensor);

    if (status != TUNDISH_OK)
        return status;
    values->count++;
    if (tensor->variable_count > 0)
        return spec_complain(config->errors, value->line, value->column,
                             "'%s': a tensor of values is the same for every replica; an "
                             "expression takes replica_id_in_sync_group and num_replicas_in_sync",
                             name);
    column = schema_add(ret_schema, name, tensor->dtype);
    column->rank = tensor->rank;
    memcpy(column->shape, tensor->shape, sizeof tensor->shape);
    return TUNDISH_OK;
}

static tundish_status
values_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct values *values = state;
    const struct spec_value *map = spec_get(config->stage, "expressions");

    for (int i = 0; i < INPUTS; i++)
        schema_add(&values->inputs, input_names[i], TUNDISH_INT32);
    values->columns = tnd_zalloc(map->count, sizeof *values->columns);
    for (uint32_t i = 0; i < map->count; i++) {
        tundish_status status = (map->items[i].kind == SPEC_MAP ? open_tensor : open_expression)(
            values, config, map->keys[i].text, &map->items[i], ret_schema);

        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

static tundish_status
values_read(const void *state, const struct source_read *read)
{
    const struct values *values = state;
    struct frame *output = read->output;
    struct column columns[INPUTS];
    struct frame input = {
        .count = read->count,
        .column_count = INPUTS,
        .columns = columns,
        .schema = &values->inputs,
        .scratch = output->scratch,
        .errors = output->errors,
    };

    for (uint32_t i = 0; i < INPUTS; i++) {
        int32_t *numbers = scratch_array(output->scratch, (size_t)read->count, sizeof *numbers);

        for (int64_t row = 0; row < read->count; row++)
            numbers[row] = (int32_t)read->words[(size_t)row * read->stride + i];
        column_set_scalars(&columns[i], read->count, numbers);
    }
    for (uint32_t i = 0; i < values->count; i++)
        if (values->columns[i].expression != NULL)
            expression_apply(values->columns[i].expression, &input, output, i);
        else
            tensor_read(&values->columns[i].tensor, read->count, output, i);
    return TUNDISH_OK;
}

static void
values_close(void *state)
{
    struct values *values = state;

    for (uint32_t i = 0; i < values->count; i++) {
        expression_close(values->columns[i].expression);
        tensor_close(&values->columns[i].tensor);
    }
    free(values->columns);
    schema_close(&values->inputs);
}

static void
values_tell(const void *state, struct source_files *files, const uint64_t *words,
            struct whereabouts *ret_where)
{
    (void)state;
    (void)files;
    ret_where->number_name = "replica_id_in_sync_group";
    ret_where->number = (int64_t)words[1];
    ret_where->note = "the row is computed for the replica";
}

const struct source_ops source_values = {
    .name = "values",
    .order = {
        .name = "values",
        .state_bytes = sizeof(struct values_iterator),
        .open = values_order_open,
        .next = values_next,
        .close = values_order_close,
    },
    .tell = values_tell,
    .of_replicas = true,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct values),
    .open = values_open,
    .read = values_read,
    .close = values_close,
};
