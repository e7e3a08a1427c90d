/* tensor_table.c - rows of tensors that the pipeline file gives. */
#include "source/rows/tensor_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/variable.h"

static tundish_status
open_variable(struct table_column *column, const struct stage_config *config,
              const struct spec_value *value, bool sliced, struct column_spec *spec)
{
    struct column_spec outer;
    tundish_status status = variable_spec(config, value, &outer);
    char *name = spec->name;

    if (status != TUNDISH_OK)
        return status;
    column->variable = value;
    column->from_distribution = variable_is_distribution(value, config->outer);
    *spec = outer;
    /* The schema has the column's own name. passed_from says that it is not one that passes
     * through: it may be sliced, and sources read it. */
    spec->name = name;
    spec->passed_from = -1;
    if (!sliced)
        return TUNDISH_OK;
    if (outer.kind != TUNDISH_DENSE || outer.rank < 1)
        return spec_complain(config->errors, value->line, value->column,
                             "$%s cannot be sliced: it must be dense and have a dimension",
                             value->text);
    /* A slice has the shape without its first dimension. */
    spec->rank--;
    memmove(spec->shape, spec->shape + 1, (size_t)spec->rank * sizeof *spec->shape);
    return TUNDISH_OK;
}

static tundish_status
open_tensor(struct table_column *column, const struct stage_config *config,
            const struct spec_value *value, bool sliced, struct column_spec *spec)
{
    struct tensor *tensor = &column->tensor;
    tundish_status status = tensor_open(config, value, tensor);

    if (status != TUNDISH_OK)
        return status;
    if (sliced && tensor->rank == 0)
        return spec_complain(config->errors, value->line, value->column,
                             "'%s' is a single value and cannot be sliced: from_tensor_slices "
                             "needs a list (use from_tensors)",
                             spec->name);
    spec->dtype = tensor->dtype;
    spec->rank = tensor->rank - sliced;
    memcpy(spec->shape, tensor->shape + sliced, (size_t)spec->rank * sizeof *spec->shape);
    return TUNDISH_OK;
}

/* All columns have the same number of slices. */
static tundish_status
agree_on_slices(struct tensor_table *table, const struct stage_config *config,
                const struct spec_value *tensors, uint32_t index)
{
    const struct table_column *column = &table->columns[index];
    int64_t slices = column->tensor.shape[0];

    /* The length of a variable's vector is known only when an iterator is made. */
    if (column->variable != NULL)
        return TUNDISH_OK;
    if (table->slice_count < 0)
        table->slice_count = slices;
    if (table->slice_count == slices)
        return TUNDISH_OK;
    return spec_complain(config->errors, tensors->items[index].line, tensors->items[index].column,
                         "'%s' has %lld slices, but the columns before it have %lld",
                         tensors->keys[index].text, (long long)slices,
                         (long long)table->slice_count);
}

static bool
column_needs_distribution(const struct table_column *column, const struct schema *outer)
{
    for (uint32_t i = 0; i < column->tensor.variable_count; i++)
        if (variable_is_distribution(column->tensor.variables[i].value, outer))
            return true;
    return column->from_distribution;
}

tundish_status
tensor_table_open(struct tensor_table *table, const struct stage_config *config, bool sliced,
                  struct schema *ret_schema)
{
    const struct spec_value *tensors = spec_get(config->stage, "tensors");

    if (tensors->count == 0)
        return stage_complain(config, "%s needs a column", config->stage->info->name);
    table->sliced = sliced;
    table->slice_count = sliced ? -1 : 1;
    table->columns = tnd_zalloc(tensors->count, sizeof *table->columns);
    if (config->outer != NULL)
        schema_pass_all(&table->outer, config->outer);
    for (uint32_t i = 0; i < tensors->count; i++) {
        const struct spec_value *value = &tensors->items[i];
        struct column_spec *spec = schema_add(ret_schema, tensors->keys[i].text, TUNDISH_INT32);
        struct table_column *column = &table->columns[table->column_count++];
        tundish_status status = value->kind == SPEC_VARIABLE
                                    ? open_variable(column, config, value, sliced, spec)
                                    : open_tensor(column, config, value, sliced, spec);

        if (status == TUNDISH_OK && sliced)
            status = agree_on_slices(table, config, tensors, i);
        if (status != TUNDISH_OK)
            return status;
        table->needs_distribution |= column_needs_distribution(column, config->outer);
    }
    return TUNDISH_OK;
}

tundish_status
tensor_table_open_text(struct tensor_table *table, const struct stage_config *config,
                       const char *name, const struct spec_value *value, struct schema *ret_schema)
{
    struct column_spec *spec = schema_add(ret_schema, name, TUNDISH_STRING);
    struct table_column *column;
    struct column_spec outer = { .rank = 0 };
    tundish_status status = TUNDISH_OK;

    if (value->kind == SPEC_VARIABLE)
        status = variable_spec(config, value, &outer);
    if (status != TUNDISH_OK)
        return status;
    if (value->kind == SPEC_VARIABLE &&
        (outer.dtype != TUNDISH_STRING || outer.kind != TUNDISH_DENSE || outer.rank > 1))
        return spec_complain(config->errors, value->line, value->column,
                             "$%s must be a string, or a vector of them", value->text);
    table->sliced = value->kind == SPEC_LIST || outer.rank == 1;
    table->slice_count = table->sliced ? -1 : 1;
    column = table->columns = tnd_zalloc(1, sizeof *table->columns);
    table->column_count = 1;
    if (config->outer != NULL)
        schema_pass_all(&table->outer, config->outer);
    if (value->kind == SPEC_VARIABLE)
        return open_variable(column, config, value, table->sliced, spec);
    status = tensor_open_text(config, value, &column->tensor);
    if (status == TUNDISH_OK && column->tensor.rank > 1)
        return spec_complain(config->errors, value->line, value->column,
                             "lists of names are not nested");
    if (status == TUNDISH_OK && table->sliced)
        table->slice_count = column->tensor.shape[0];
    return status;
}

void
tensor_table_close(struct tensor_table *table)
{
    for (uint32_t i = 0; i < table->column_count; i++)
        tensor_close(&table->columns[i].tensor);
    free(table->columns);
    schema_close(&table->outer);
}

/* The length of the outer element's vector in this element. */
static int64_t
outer_length(const struct order_scope *scope, const char *name)
{
    for (; scope != NULL; scope = scope->outside) {
        int32_t index = schema_find(scope->schema, name);

        if (index >= 0)
            return level_length(&scope->values->columns[index].levels[0], 0);
    }
    must(false); /* open has checked that the column exists */
    return 0;
}

static tundish_status
count_slices(const struct order_iterator *iterator, const struct tensor_table *table,
             int64_t *ret_count)
{
    int64_t count = table->slice_count;

    for (uint32_t i = 0; i < table->column_count && table->sliced; i++) {
        const struct spec_value *variable = table->columns[i].variable;
        int64_t length;

        if (variable == NULL)
            continue;
        length = outer_length(iterator->instance->scope, variable->text);
        if (count >= 0 && length != count)
            return order_fail(iterator, TUNDISH_E_DATA,
                              "$%s has %lld slices here, but the columns before it have %lld",
                              variable->text, (long long)length, (long long)count);
        count = length;
    }
    *ret_count = count;
    return TUNDISH_OK;
}

/* Check that a batch size divides evenly. read_tensor only divides, and cannot fail the order. */
static tundish_status
check_variables(const struct order_iterator *iterator, const struct tensor_table *table)
{
    tundish_status status = TUNDISH_OK;
    int64_t unused;

    for (uint32_t i = 0; i < table->column_count && status == TUNDISH_OK; i++) {
        const struct table_column *column = &table->columns[i];

        if (column->from_distribution)
            status = order_value_int(iterator->instance, column->variable, &unused);
        for (uint32_t k = 0; k < column->tensor.variable_count && status == TUNDISH_OK; k++)
            if (variable_is_distribution(column->tensor.variables[k].value, &table->outer))
                status =
                    order_value_int(iterator->instance, column->tensor.variables[k].value, &unused);
    }
    return status;
}

tundish_status
tensor_table_iterate(struct order_iterator *iterator)
{
    const struct tensor_table *table = iterator->node->state;
    struct tensor_table_state *state = (struct tensor_table_state *)iterator->state;
    int64_t count = 0;
    tundish_status status = count_slices(iterator, table, &count);

    if (status == TUNDISH_OK && table->needs_distribution) {
        status = check_variables(iterator, table);
        state->packed = variable_pack(iterator->instance->services);
    }
    state->count = (uint64_t)count;
    return status;
}

enum order_result
tensor_table_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct tensor_table_state *state = (struct tensor_table_state *)iterator->state;
    uint64_t left = state->count - state->next;
    size_t count = left < max ? (size_t)left : max;

    for (size_t i = 0; i < count; i++) {
        words[SOURCE_WIDTH * i] = state->next++;
        words[SOURCE_WIDTH * i + 1] = state->packed;
    }
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

void
tensor_table_iterate_close(struct order_iterator *iterator)
{
    (void)iterator;
}

tundish_status
tensor_table_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    const struct tensor_table_state *state = (const struct tensor_table_state *)iterator->state;

    *ret_count = state->count;
    return TUNDISH_OK;
}

tundish_status
tensor_table_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
                uint64_t *words)
{
    const struct tensor_table_state *state = (const struct tensor_table_state *)iterator->state;

    for (size_t i = 0; i < index_count; i++) {
        words[SOURCE_WIDTH * i] = indices[i];
        words[SOURCE_WIDTH * i + 1] = state->packed;
    }
    return TUNDISH_OK;
}

enum order_result
tensor_table_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct tensor_table_state *state = (struct tensor_table_state *)iterator->state;
    uint64_t left = state->count - state->next;

    *ret_passed = count < left ? count : left;
    state->next += *ret_passed;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

static size_t
value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

static uint64_t
slice_of(const struct source_read *read, int64_t row)
{
    return read->words[(size_t)row * read->stride];
}

static bool
are_neighbours(const struct source_read *read)
{
    for (int64_t i = 1; i < read->count; i++)
        if (slice_of(read, i) != slice_of(read, i - 1) + 1)
            return false;
    return true;
}

/* Store the variables of a tensor in `values`, row by row. */
static void
store_variables(const struct tensor_table *table, const struct source_read *read,
                const struct tensor *tensor, int64_t row_values, uint8_t *values)
{
    size_t bytes = value_bytes(tensor->dtype);

    for (uint32_t k = 0; k < tensor->variable_count; k++) {
        const struct tensor_variable *variable = &tensor->variables[k];
        bool distribution = variable_is_distribution(variable->value, &table->outer);
        const struct column *outer =
            distribution ? NULL : variable_column(read->output, variable->value->text);

        for (int64_t i = 0; i < read->count; i++) {
            const uint64_t *words = &read->words[(size_t)i * read->stride];
            int64_t begin = table->sliced ? (int64_t)words[0] * row_values : 0;
            int64_t offset = variable->index - begin;
            uint8_t *to = values + (size_t)(i * row_values + offset) * bytes;

            if (offset < 0 || offset >= row_values)
                continue;
            if (distribution) {
                int32_t number = variable_unpack(variable->value, words[1]);

                memcpy(to, &number, bytes);
            } else {
                memcpy(to, (const uint8_t *)outer->values + (size_t)i * bytes, bytes);
            }
        }
    }
}

static void
read_tensor(const struct tensor_table *table, const struct source_read *read, uint32_t index)
{
    const struct tensor *tensor = &table->columns[index].tensor;
    struct column *column = &read->output->columns[index];
    int inner = tensor->rank - table->sliced;
    int64_t row_values = 1;
    size_t row_bytes;
    const uint8_t *from = tensor->values;

    *column = (struct column){ .count = read->count, .level_count = (uint32_t)inner };
    for (int k = 0; k < inner; k++) {
        column->levels[k].uniform = tensor->shape[k + table->sliced];
        row_values *= column->levels[k].uniform;
    }
    column->value_count = read->count * row_values;
    row_bytes = (size_t)row_values * value_bytes(tensor->dtype);
    if (table->sliced && tensor->variable_count == 0 && read->output->destinations == NULL &&
        are_neighbours(read)) {
        column->values = read->count == 0 ? from : from + slice_of(read, 0) * row_bytes;
        return;
    }
    uint8_t *values = frame_values(read->output, index, (size_t)read->count * row_bytes);

    for (int64_t i = 0; i < read->count && row_bytes > 0; i++)
        memcpy(values + (size_t)i * row_bytes,
               from + (table->sliced ? slice_of(read, i) * row_bytes : 0), row_bytes);
    store_variables(table, read, tensor, row_values, values);
    column->values = values;
}

/* One slice of each row's outer vector: the lists of one level up, with all below them. */
static void
read_outer_slices(const struct source_read *read, const struct column *outer, uint32_t index)
{
    struct column *column = &read->output->columns[index];
    struct scratch *scratch = read->output->scratch;
    size_t bytes = value_bytes(read->node->schema.columns[index].dtype);
    int64_t *begins = scratch_array(scratch, (size_t)read->count + 1, sizeof *begins);
    int64_t *ends = scratch_array(scratch, (size_t)read->count + 1, sizeof *ends);
    int64_t total = 0;

    *column = (struct column){ .count = read->count, .level_count = outer->level_count - 1 };
    for (int64_t i = 0; i < read->count; i++) {
        begins[i] = level_begin(&outer->levels[0], i) + (int64_t)slice_of(read, i);
        ends[i] = begins[i] + 1;
    }
    for (uint32_t k = 1; k < outer->level_count; k++) {
        const struct level *level = &outer->levels[k];
        int64_t lists = 0;
        int64_t *splits;

        for (int64_t i = 0; i < read->count; i++)
            lists += ends[i] - begins[i];
        splits = scratch_array(scratch, (size_t)lists + 1, sizeof *splits);
        splits[0] = 0;
        for (int64_t i = 0, list = 0; i < read->count; i++) {
            for (int64_t at = begins[i]; at < ends[i]; at++, list++)
                splits[list + 1] = splits[list] + level_length(level, at);
            begins[i] = level_begin(level, begins[i]);
            ends[i] = level_begin(level, ends[i]);
        }
        column->levels[k - 1] = (struct level){ .uniform = level->uniform, .splits = splits };
    }
    for (int64_t i = 0; i < read->count; i++)
        total += ends[i] - begins[i];
    uint8_t *values = frame_values(read->output, index, (size_t)total * bytes);

    column->value_count = total;
    column->values = values;
    for (int64_t i = 0; i < read->count; i++) {
        size_t range = (size_t)(ends[i] - begins[i]) * bytes;

        if (range > 0)
            memcpy(values, (const uint8_t *)outer->values + (size_t)begins[i] * bytes, range);
        values += range;
    }
}

static void
read_distribution(const struct source_read *read, const struct spec_value *variable, uint32_t index)
{
    int32_t *values = frame_values(read->output, index, (size_t)read->count * sizeof *values);

    for (int64_t i = 0; i < read->count; i++)
        values[i] = variable_unpack(variable, read->words[(size_t)i * read->stride + 1]);
    column_set_scalars(&read->output->columns[index], read->count, values);
}

uint64_t
tensor_table_files_hash(const void *state)
{
    const struct tensor_table *table = state;
    uint64_t hash = 0;

    for (uint32_t i = 0; i < table->column_count; i++)
        hash = tnd_hash_farm_cat(hash, table->columns[i].tensor.file_hash);
    return hash;
}

void
tensor_table_tell(const void *table, struct source_files *files, const uint64_t *words,
                  struct whereabouts *ret_where)
{
    (void)table;
    (void)files;
    ret_where->number_name = "element";
    ret_where->number = (int64_t)words[0];
    ret_where->note = "the row is written in the pipeline file, or in the arrays that it names";
}

/* Another process may have sent the numbers of slices: no column has fewer. */
static tundish_status
check_slices(const struct tensor_table *table, const struct source_read *read)
{
    for (uint32_t i = 0; table->sliced && i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        const struct level *outer = NULL;

        if (column->variable != NULL && column->from_distribution)
            continue;
        if (column->variable != NULL)
            outer = variable_column(read->output, column->variable->text)->levels;
        for (int64_t row = 0; row < read->count; row++)
            if (slice_of(read, row) >=
                (uint64_t)(outer != NULL ? level_length(outer, row) : column->tensor.shape[0]))
                return tnd_fail(TUNDISH_E_CORRUPT, "%s has no element %llu", read->node->name,
                                (unsigned long long)slice_of(read, row));
    }
    return TUNDISH_OK;
}

tundish_status
tensor_table_read(const struct tensor_table *table, const struct source_read *read)
{
    tundish_status status = check_slices(table, read);

    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];

        if (column->variable == NULL)
            read_tensor(table, read, i);
        else if (column->from_distribution)
            read_distribution(read, column->variable, i);
        else if (table->sliced)
            read_outer_slices(read, variable_column(read->output, column->variable->text), i);
        else
            read->output->columns[i] = *variable_column(read->output, column->variable->text);
    }
    return TUNDISH_OK;
}

/* Not those of variables, which are others for each iterator. */
const struct byte_view *
tensor_table_texts(const void *state, uint32_t index, int64_t *ret_count)
{
    const struct tensor_table *table = state;
    const struct table_column *column = &table->columns[index];

    if (column->variable != NULL || column->tensor.dtype != TUNDISH_STRING ||
        column->tensor.variable_count > 0)
        return NULL;
    *ret_count = column->tensor.value_count;
    return column->tensor.values;
}
