/* plan_widen.c - checks deliver.widen against the columns of the stream. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/widen.h"
#include "plan/build.h"
#include "spec/column_list.h"
#include "spec/errors.h"

/* Read a number or a list of numbers; `otherwise` if the parameter is absent. */
static double *
read_numbers(const struct spec_value *value, double otherwise, uint32_t *ret_count)
{
    uint32_t count = value != NULL && value->kind == SPEC_LIST ? value->count : 1;
    double *numbers = tnd_zalloc(count, sizeof *numbers);

    for (uint32_t i = 0; i < count; i++)
        numbers[i] = value == NULL              ? otherwise
                     : value->kind == SPEC_LIST ? value->items[i].number
                                                : value->number;
    *ret_count = count;
    return numbers;
}

/* A list applies along the last dimension, which must be known and of the same length. */
static tundish_status
check_list(const struct plan_builder *builder, const struct column_spec *column,
           const struct spec_value *list)
{
    int64_t last = column->rank > 0 ? column->shape[column->rank - 1] : 1;

    if (list == NULL || list->kind != SPEC_LIST || (last >= 0 && last == list->count))
        return TUNDISH_OK;
    if (last < 0)
        return spec_complain(builder->errors, list->line, list->column,
                             "widen: the last dimension of column '%s' is unknown before the data "
                             "is read, so a list cannot match it",
                             column->name);
    return spec_complain(
        builder->errors, list->line, list->column,
        "widen: the last dimension of column '%s' is %lld, the list has %u numbers", column->name,
        (long long)last, list->count);
}

/* Only batches of images have channels that can come first. */
static tundish_status
check_layout(const struct plan_builder *builder, const struct column_spec *column,
             const struct spec_value *layout)
{
    if (layout == NULL || strcmp(layout->text, "NCHW") != 0 ||
        (column->kind == TUNDISH_DENSE && column->rank == 4))
        return TUNDISH_OK;
    if (column->kind != TUNDISH_DENSE || column->rank == RANK_UNKNOWN)
        return spec_complain(builder->errors, layout->line, layout->column,
                             "widen: layout NCHW is for images, but column '%s' is %s: leave "
                             "layout out, or resize the images to one size",
                             column->name,
                             column->kind == TUNDISH_DENSE    ? "of an unknown number of dimensions"
                             : column->kind == TUNDISH_RAGGED ? "ragged"
                                                              : "sparse");
    return spec_complain(builder->errors, layout->line, layout->column,
                         "widen: layout NCHW is for columns of 4 dimensions (batch, height, width, "
                         "channels), but column '%s' has %d: leave layout out, or use reshape or "
                         "batch",
                         column->name, column->rank);
}

static tundish_status
widen_column(const struct plan_builder *builder, const struct spec_value *entry, uint32_t index)
{
    const struct column_spec *column = &builder->plan->element_spec.columns[index];
    const struct spec_value *scale = spec_map_get(entry, "scale");
    const struct spec_value *offset = spec_map_get(entry, "offset");
    const struct spec_value *layout = spec_map_get(entry, "layout");
    struct plan_widen *widen = &builder->plan->widen[index];
    tundish_dtype dtype = tnd_dtype_by_name(spec_map_get(entry, "dtype")->text);
    tundish_status status;

    if (!tnd_widen_allowed(column->dtype, dtype))
        return spec_complain(builder->errors, entry->line, entry->column,
                             "widen: column '%s' is %s, of which %s cannot be made", column->name,
                             tnd_dtype_name(column->dtype), tnd_dtype_name(dtype));
    status = check_list(builder, column, scale);
    if (status == TUNDISH_OK)
        status = check_list(builder, column, offset);
    if (status == TUNDISH_OK)
        status = check_layout(builder, column, layout);
    if (status != TUNDISH_OK)
        return status;
    widen->dtype = dtype;
    widen->scale = read_numbers(scale, 1, &widen->scale_count);
    widen->offset = read_numbers(offset, 0, &widen->offset_count);
    if (layout != NULL && strcmp(layout->text, "NCHW") == 0)
        widen->layout = TUNDISH_NCHW;
    return TUNDISH_OK;
}

/* Complain if a key neither names nor matches a column. */
static tundish_status
check_key(const struct plan_builder *builder, const struct spec_value *key)
{
    const struct schema *schema = &builder->plan->element_spec;
    const char **names = schema_names(schema);
    struct spec_names list = { 0 };
    tundish_status status = spec_expand_columns(key, names, schema->count, builder->errors, &list);

    spec_names_close(&list);
    free(names);
    return status;
}

tundish_status
build_widen(struct plan_builder *builder)
{
    const struct schema *schema = &builder->plan->element_spec;
    const struct spec_value *widen = builder->plan->stream->deliver.widen;
    tundish_status status = TUNDISH_OK;

    builder->plan->widen = tnd_zalloc(schema->count, sizeof *builder->plan->widen);
    for (uint32_t i = 0; widen != NULL && i < widen->count; i++)
        if (check_key(builder, &widen->keys[i]) != TUNDISH_OK)
            status = TUNDISH_E_PIPELINE;
    for (uint32_t i = 0; widen != NULL && i < schema->count; i++) {
        const struct spec_value *entry = spec_entry_for(widen, schema->columns[i].name);

        if (entry != NULL && widen_column(builder, entry, i) != TUNDISH_OK)
            status = TUNDISH_E_PIPELINE;
    }
    return status;
}

void
build_widen_close(struct plan *plan)
{
    for (uint32_t i = 0; plan->widen != NULL && i < plan->element_spec.count; i++) {
        free(plan->widen[i].scale);
        free(plan->widen[i].offset);
    }
    free(plan->widen);
}
