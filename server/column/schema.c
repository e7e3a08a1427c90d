/* schema.c - lists of columns. */
#include "column/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"

/* So many names are compared one by one sooner than they are hashed. */
enum { FEW_COLUMNS = 16 };

/* The slot of the first column of this name, or the free one where it would be. */
static uint32_t
slot_of(const struct schema *schema, const char *name)
{
    uint32_t slot = (uint32_t)tnd_hash_farm(name, strlen(name)) & schema->slot_mask;

    while (schema->slots[slot] != 0 &&
           strcmp(schema->columns[schema->slots[slot] - 1].name, name) != 0)
        slot = (slot + 1) & schema->slot_mask;
    return slot;
}

static void
note_name(struct schema *schema, uint32_t index)
{
    uint32_t *slot = &schema->slots[slot_of(schema, schema->columns[index].name)];

    if (*slot == 0)
        *slot = index + 1;
}

/* At most half of the slots are taken. */
static void
hash_names(struct schema *schema)
{
    uint32_t slots = 4 * FEW_COLUMNS;

    while (slots < 4 * schema->count)
        slots *= 2;
    free(schema->slots);
    schema->slots = tnd_zalloc(slots, sizeof *schema->slots);
    schema->slot_mask = slots - 1;
    for (uint32_t i = 0; i < schema->count; i++)
        note_name(schema, i);
}

static struct column_spec *
append(struct schema *schema, struct column_spec column)
{
    uint32_t index = schema->count++;

    schema->columns = tnd_grow(schema->columns, index, sizeof *schema->columns);
    schema->columns[index] = column;
    if (schema->slots != NULL && 2 * schema->count <= schema->slot_mask + 1)
        note_name(schema, index);
    else if (schema->count > FEW_COLUMNS)
        hash_names(schema);
    return &schema->columns[index];
}

struct column_spec *
schema_add(struct schema *schema, const char *name, tundish_dtype dtype)
{
    return append(schema, (struct column_spec){
                              .name = tnd_strdup(name),
                              .dtype = dtype,
                              .kind = TUNDISH_DENSE,
                              .passed_from = -1,
                          });
}

struct column_spec *
schema_pass_as(struct schema *schema, const struct schema *input, uint32_t input_index,
               const char *name)
{
    struct column_spec column = input->columns[input_index];

    column.name = tnd_strdup(name);
    column.passed_from = (int32_t)input_index;
    return append(schema, column);
}

struct column_spec *
schema_pass(struct schema *schema, const struct schema *input, uint32_t input_index)
{
    return schema_pass_as(schema, input, input_index, input->columns[input_index].name);
}

void
schema_pass_all(struct schema *schema, const struct schema *input)
{
    for (uint32_t i = 0; i < input->count; i++)
        schema_pass(schema, input, i);
}

int32_t
schema_find(const struct schema *schema, const char *name)
{
    if (schema->slots != NULL)
        return (int32_t)schema->slots[slot_of(schema, name)] - 1;
    for (uint32_t i = 0; i < schema->count; i++)
        if (strcmp(schema->columns[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

const char **
schema_names(const struct schema *schema)
{
    const char **names = tnd_zalloc(schema->count + 1, sizeof *names);

    for (uint32_t i = 0; i < schema->count; i++)
        names[i] = schema->columns[i].name;
    return names;
}

void
schema_remove(struct schema *schema, uint32_t index)
{
    free(schema->columns[index].name);
    schema->count--;
    memmove(&schema->columns[index], &schema->columns[index + 1],
            (schema->count - index) * sizeof *schema->columns);
    if (schema->slots != NULL)
        hash_names(schema);
}

/* Columns that are sorted stand where they were until all have been compared. */
static int
by_name(const void *left_, const void *right_)
{
    const struct column_spec *left = *(const struct column_spec *const *)left_;
    const struct column_spec *right = *(const struct column_spec *const *)right_;
    int order = strcmp(left->name, right->name);

    return order != 0 ? order : (left > right) - (left < right);
}

void
schema_sort(struct schema *schema, uint32_t *ret_places)
{
    const struct column_spec **sorted = tnd_alloc((schema->count + 1) * sizeof *sorted);
    struct schema result = { 0 };

    for (uint32_t i = 0; i < schema->count; i++)
        sorted[i] = &schema->columns[i];
    qsort(sorted, schema->count, sizeof *sorted, by_name);
    for (uint32_t i = 0; i < schema->count; i++) {
        ret_places[sorted[i] - schema->columns] = i;
        append(&result, *sorted[i]);
    }
    free(sorted);
    free(schema->columns);
    free(schema->slots);
    *schema = result;
}

void
schema_close(struct schema *schema)
{
    for (uint32_t i = 0; i < schema->count; i++)
        free(schema->columns[i].name);
    free(schema->columns);
    free(schema->slots);
    *schema = (struct schema){ 0 };
}

int64_t
column_spec_values(const struct column_spec *spec)
{
    int64_t values = 1;

    if (spec->kind != TUNDISH_DENSE || spec->rank == RANK_UNKNOWN)
        return -1;
    for (int i = 0; i < spec->rank; i++)
        /* A product that overflows counts as unknown. */
        if (spec->shape[i] < 0 || __builtin_mul_overflow(values, spec->shape[i], &values))
            return -1;
    return values;
}

char *
column_spec_text(const struct column_spec *spec)
{
    char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", tnd_dtype_name(spec->dtype));

    if (spec->rank == RANK_UNKNOWN)
        return tnd_sprintf("%s[?]", text);
    used += (size_t)snprintf(text + used, sizeof text - used, "[");
    for (int i = 0; i < spec->rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? "," : "",
                                 (long long)spec->shape[i]);
    return tnd_sprintf("%s]%s", text,
                       spec->kind == TUNDISH_RAGGED   ? " ragged"
                       : spec->kind == TUNDISH_SPARSE ? " sparse"
                                                      : "");
}
