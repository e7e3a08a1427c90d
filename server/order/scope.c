/* scope.c - resolves $name: columns of outer elements, and numbers of the job. */
#include "order/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "column/frame.h"
#include "core/memory.h"
#include "core/must.h"

/* String views must be followed by this many readable bytes (bytes.h). */
enum { STRING_TAIL_BYTES = 64 };

/* The first pass measures (block NULL), the second copies. */
struct packing {
    uint8_t *block;
    size_t used_bytes;
};

static void *
put_bytes(struct packing *packing, const void *from, size_t bytes)
{
    void *to = packing->block == NULL ? NULL : packing->block + packing->used_bytes;

    if (to != NULL && from != NULL && bytes > 0)
        memcpy(to, from, bytes);
    packing->used_bytes += (bytes + 15) & ~(size_t)15;
    return to;
}

static void *
put_strings(struct packing *packing, const struct byte_view *strings, size_t count)
{
    struct byte_view *views = put_bytes(packing, strings, count * sizeof *views);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *data = put_bytes(packing, strings[i].data, strings[i].size);

        if (views != NULL)
            views[i].data = data;
    }
    put_bytes(packing, NULL, STRING_TAIL_BYTES);
    return views;
}

static void
put_column(struct packing *packing, const struct column_spec *spec, const struct column *from,
           struct column *to)
{
    size_t value_count = (size_t)from->value_count;
    struct column copy = *from;

    for (uint32_t k = 0; k < from->level_count; k++)
        if (from->levels[k].uniform < 0)
            copy.levels[k].splits =
                put_bytes(packing, from->levels[k].splits,
                          ((size_t)column_list_count(from, k) + 1) * sizeof(int64_t));
    if (spec->dtype == TUNDISH_STRING)
        copy.values = put_strings(packing, from->values, value_count);
    else
        copy.values = put_bytes(packing, from->values, value_count * tnd_dtype_bytes(spec->dtype));
    if (from->indices != NULL)
        copy.indices =
            put_bytes(packing, from->indices, value_count * from->level_count * sizeof(int64_t));
    if (from->dense_shape != NULL)
        copy.dense_shape =
            put_bytes(packing, from->dense_shape, from->level_count * sizeof(int64_t));
    if (to != NULL)
        *to = copy;
}

/* The evaluation reuses the frame's memory for the next element. A scope therefore copies
 * everything into one block: itself, the frame, its columns, the words and all values. */
static struct order_scope *
put_scope(struct packing *packing, const struct frame *frame, const struct plan_node *node,
          const uint64_t *words)
{
    struct order_scope *scope = put_bytes(packing, NULL, sizeof *scope);
    struct frame *copy = put_bytes(packing, NULL, sizeof *copy);
    struct column *columns = put_bytes(packing, NULL, frame->column_count * sizeof *columns);
    uint64_t *own_words = put_bytes(packing, words, node->width * sizeof *words);

    for (uint32_t i = 0; i < frame->column_count; i++)
        put_column(packing, &node->schema.columns[i], &frame->columns[i],
                   columns == NULL ? NULL : &columns[i]);
    if (scope == NULL)
        return NULL;
    *copy = (struct frame){
        .count = frame->count,
        .column_count = frame->column_count,
        .columns = columns,
        .schema = &node->schema,
    };
    *scope = (struct order_scope){ .schema = &node->schema, .values = copy, .words = own_words };
    return scope;
}

tundish_status
order_scope_open(struct order_instance *instance, const struct plan_node *node,
                 const uint64_t *words, struct order_scope **ret_scope)
{
    struct order_services *services = instance->services;
    struct packing packing = { 0 };
    const struct frame *frame;
    tundish_status status;

    status = services->evaluate(services, node, instance->scope, words, 1, &frame);
    if (status == TUNDISH_OK && frame->count == 0) {
        services->left_out++;
        status = TUNDISH_NO_VALUE;
    }
    if (status != TUNDISH_OK) {
        run_words_release(words, 1, node->width, node->run_words);
        return status;
    }
    must(frame->count == 1 && frame->column_count == node->schema.count);
    put_scope(&packing, frame, node, words);
    packing = (struct packing){ .block = tnd_alloc(packing.used_bytes) };
    *ret_scope = put_scope(&packing, frame, node, words);
    (*ret_scope)->outside = instance->scope;
    return TUNDISH_OK;
}

void
order_scope_close(struct order_scope *scope, const struct plan_node *node)
{
    if (scope == NULL)
        return;
    run_words_release(scope->words, 1, node->width, node->run_words);
    free(scope);
}

/* Find the column of a variable, from the innermost function outwards. NULL: not found. */
static const struct column *
find_column(const struct order_scope *scope, const char *name, const struct column_spec **ret_spec)
{
    for (; scope != NULL; scope = scope->outside) {
        int32_t index = schema_find(scope->schema, name);

        if (index >= 0) {
            *ret_spec = &scope->schema->columns[index];
            return &scope->values->columns[index];
        }
    }
    return NULL;
}

static bool
read_integer(tundish_dtype dtype, const void *at, int64_t *ret_value)
{
    switch (dtype) {
    case TUNDISH_UINT8:
        *ret_value = *(const uint8_t *)at;
        return true;
    case TUNDISH_INT8:
        *ret_value = *(const int8_t *)at;
        return true;
    case TUNDISH_UINT16:
        *ret_value = *(const uint16_t *)at;
        return true;
    case TUNDISH_INT16:
        *ret_value = *(const int16_t *)at;
        return true;
    case TUNDISH_UINT32:
        *ret_value = *(const uint32_t *)at;
        return true;
    case TUNDISH_INT32:
        *ret_value = *(const int32_t *)at;
        return true;
    case TUNDISH_UINT64:
        *ret_value = (int64_t) * (const uint64_t *)at;
        return *ret_value >= 0;
    case TUNDISH_INT64:
        *ret_value = *(const int64_t *)at;
        return true;
    default:
        return false;
    }
}

static tundish_status
per_replica_batch_size(const struct order_services *services, int64_t global, int64_t *ret_value)
{
    if (global % services->replicas_in_sync != 0)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "The `global_batch_size` %" PRId64
                        " is not divisible by `num_replicas_in_sync` %u",
                        global, services->replicas_in_sync);
    *ret_value = global / services->replicas_in_sync;
    return TUNDISH_OK;
}

/* Resolve the InputContext variables of a from_function stream. */
static tundish_status
context_int(const struct order_services *services, const struct spec_value *value,
            int64_t *ret_value)
{
    if (strcmp(value->text, "num_input_pipelines") == 0)
        *ret_value = services->worker_count;
    else if (strcmp(value->text, "input_pipeline_id") == 0)
        *ret_value = services->worker;
    else if (strcmp(value->text, "num_replicas_in_sync") == 0)
        *ret_value = services->replicas_in_sync;
    else if (strcmp(value->text, "per_replica_batch_size") == 0)
        return per_replica_batch_size(services, value->integer, ret_value);
    else
        return tnd_fail(TUNDISH_E_PIPELINE, "$%s is not a column of an outer element", value->text);
    return TUNDISH_OK;
}

tundish_status
order_value_int(const struct order_instance *instance, const struct spec_value *value,
                int64_t *ret_value)
{
    const struct column_spec *spec;
    const struct column *column;

    if (value->kind == SPEC_INTEGER) {
        *ret_value = value->integer;
        return TUNDISH_OK;
    }
    if (value->kind != SPEC_VARIABLE)
        return tnd_fail(TUNDISH_E_PIPELINE, "%s is not an integer that fits int64", value->text);
    column = find_column(instance->scope, value->text, &spec);
    if (column == NULL)
        return context_int(instance->services, value, ret_value);
    if (column->level_count != 0 || !read_integer(spec->dtype, column->values, ret_value))
        return tnd_fail(TUNDISH_E_DATA, "$%s (%s with %" PRId64 " values) is not an integer scalar",
                        value->text, tnd_dtype_name(spec->dtype), column->value_count);
    return TUNDISH_OK;
}

tundish_status
order_value_text(const struct order_instance *instance, const struct spec_value *value,
                 struct byte_view *ret_text)
{
    const struct column_spec *spec;
    const struct column *column;

    if (value->kind != SPEC_VARIABLE) {
        *ret_text = (struct byte_view){ (const uint8_t *)value->text, value->text_bytes };
        return TUNDISH_OK;
    }
    column = find_column(instance->scope, value->text, &spec);
    if (column == NULL)
        return tnd_fail(TUNDISH_E_PIPELINE, "$%s is not a column of an outer element", value->text);
    if (column->level_count != 0 || spec->dtype != TUNDISH_STRING)
        return tnd_fail(TUNDISH_E_DATA, "$%s (%s with %" PRId64 " values) is not a string scalar",
                        value->text, tnd_dtype_name(spec->dtype), column->value_count);
    *ret_text = *(const struct byte_view *)column->values;
    return TUNDISH_OK;
}

tundish_status
order_int(const struct order_iterator *iterator, const char *parameter, int64_t *ret_value)
{
    const struct plan_node *node = iterator->node;
    const struct spec_value *value;
    tundish_status status;

    value = spec_get(node->stage, parameter);
    must(value != NULL);
    status = order_value_int(iterator->instance, value, ret_value);
    if (status != TUNDISH_OK)
        return order_fail(iterator, status, "%s: %s", parameter, tnd_error_text());
    return TUNDISH_OK;
}
