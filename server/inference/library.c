/* library.c - the functions of tundish_transform.h. */
#include "tundish/tundish_transform.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "inference/transform.h"

enum { TAIL_BYTES = 64 }; /* that vector loops may read after a string */

/* The public spec and the memory that it points to. */
struct public_spec {
    tundish_spec spec;
    tundish_column_spec *columns;
};

struct tundish_transform {
    struct transform *transform;
    struct public_spec inputs, outputs;
};

/* A tensor's shape and its splits. */
struct public_tensor {
    tundish_tensor tensor;
    int64_t shape[RANK_MAX];
    const int64_t *splits[RANK_MAX];
    uint64_t split_counts[RANK_MAX];
};

struct tundish_transformer {
    const struct tundish_transform *transform;
    struct transformer *transformer;
    struct scratch *scratch;
    const struct output_column *outputs; /* NULL: nothing came out */
    struct public_tensor *tensors;
};

static void
describe(const struct schema *schema, struct public_spec *spec)
{
    spec->columns = tnd_zalloc((size_t)schema->count + 1, sizeof *spec->columns);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *from = &schema->columns[i];
        tundish_column_spec *to = &spec->columns[i];

        to->name = from->name;
        to->dtype = from->dtype;
        to->kind = from->kind;
        to->rank = from->rank < 0 ? 0 : (uint32_t)from->rank;
        to->ragged_rank = from->kind == TUNDISH_RAGGED ? (uint32_t)from->ragged_rank : 0;
        to->splits_dtype = from->splits_int32 ? TUNDISH_INT32 : TUNDISH_INT64;
        for (uint32_t k = 0; k < to->rank; k++)
            to->shape[k] = from->shape[k];
    }
    spec->spec = (tundish_spec){ .column_count = schema->count,
                                 .column_bytes = sizeof *spec->columns,
                                 .columns = spec->columns };
}

/* The caller's options with defaults for fields that its version of the header does not have;
 * fields that this version does not know are ignored. */
static tundish_transform_options
known_options(const tundish_transform_options *options)
{
    tundish_transform_options known = TUNDISH_TRANSFORM_OPTIONS_INIT;

    if (options != NULL)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    return known;
}

tundish_status
tundish_transform_open(const char *path, const tundish_transform_options *options,
                       tundish_transform **ret_transform)
{
    const tundish_transform_options known = known_options(options);
    const struct transform_options wanted = {
        .path = path,
        .root = known.root,
        .stream = known.stream,
        .until = known.until,
        .analysis = known.analysis,
        .cache_folder = known.cache,
    };
    struct spec_errors errors = { 0 };
    struct tundish_transform *transform = tnd_zalloc(1, sizeof *transform);
    tundish_status status = transform_open(&wanted, &errors, &transform->transform);

    if (status != TUNDISH_OK && errors.count > 0) {
        char *text = spec_errors_text(&errors);

        tnd_fail(status, "%s", text);
        free(text);
    }
    spec_errors_close(&errors);
    if (status != TUNDISH_OK) {
        free(transform);
        return status;
    }
    describe(transform_inputs(transform->transform), &transform->inputs);
    describe(transform_outputs(transform->transform), &transform->outputs);
    *ret_transform = transform;
    return TUNDISH_OK;
}

void
tundish_transform_close(tundish_transform *transform)
{
    if (transform == NULL)
        return;
    transform_close(transform->transform);
    free(transform->inputs.columns);
    free(transform->outputs.columns);
    free(transform);
}

const tundish_spec *
tundish_transform_inputs(const tundish_transform *transform)
{
    return &transform->inputs.spec;
}

const tundish_spec *
tundish_transform_outputs(const tundish_transform *transform)
{
    return &transform->outputs.spec;
}

tundish_status
tundish_transformer_open(const tundish_transform *transform, tundish_transformer **ret_transformer)
{
    struct tundish_transformer *transformer = tnd_zalloc(1, sizeof *transformer);

    transformer->transform = transform;
    transformer->transformer = transformer_open(transform->transform);
    transformer->tensors =
        tnd_zalloc((size_t)transform->outputs.spec.column_count + 1, sizeof *transformer->tensors);
    *ret_transformer = transformer;
    return TUNDISH_OK;
}

void
tundish_transformer_close(tundish_transformer *transformer)
{
    if (transformer == NULL)
        return;
    transformer_close(transformer->transformer);
    free(transformer->tensors);
    free(transformer);
}

const char *
tundish_transform_last_error(void)
{
    return tnd_error_text();
}

/* Begin a call: memory and tensors of the call before become invalid, as the header says. */
static void
begin(struct tundish_transformer *transformer)
{
    transformer->scratch = transformer_begin(transformer->transformer);
    transformer->outputs = NULL;
    for (uint32_t i = 0; i < transformer->transform->outputs.spec.column_count; i++)
        transformer->tensors[i].tensor.name = NULL;
}

/* Copy texts into one block. The caller's memory cannot be used: vector loops read a little past
 * the end of a text. */
static struct byte_view *
copy_texts(struct tundish_transformer *transformer, const tundish_bytes *texts, size_t count)
{
    struct byte_view *views = scratch_array(transformer->scratch, count + 1, sizeof *views);
    uint8_t *to;
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += texts[i].size;
    to = scratch_alloc(transformer->scratch, bytes + TAIL_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (texts[i].size > 0)
            memcpy(to, texts[i].data, texts[i].size);
        views[i] = (struct byte_view){ to, texts[i].size };
        to += texts[i].size;
    }
    return views;
}

/* Only a whole batch has failed: say which row it was. */
static tundish_status
name_bad_row(struct tundish_transformer *transformer, const struct transformer_rows *rows,
             tundish_status status)
{
    return status == TUNDISH_E_DATA ? transformer_blame(transformer->transformer, rows, 0, status)
                                    : status;
}

tundish_status
tundish_transform_records(tundish_transformer *transformer, const tundish_bytes *records,
                          size_t record_count)
{
    struct transformer_rows rows = { .count = (int64_t)record_count };
    tundish_status status;

    begin(transformer);
    rows.records = copy_texts(transformer, records, record_count);
    status = transformer_run_records(transformer->transformer, rows.records, rows.count,
                                     &transformer->outputs);
    return name_bad_row(transformer, &rows, status);
}

/* Set the levels of an input column: all sizes are known, or the first is counted for each row. The
 * counts come from the caller, so every sum is checked for overflow. */
static tundish_status
set_levels(struct tundish_transformer *transformer, const tundish_column_spec *spec,
           const tundish_transform_column *from, int64_t rows, struct column *column)
{
    int64_t lists = rows, *splits;

    *column = (struct column){ .count = rows, .level_count = spec->rank };
    for (uint32_t k = 0; k < spec->rank; k++) {
        struct level *level = &column->levels[k];

        if (spec->shape[k] >= 0) {
            *level = (struct level){ .uniform = spec->shape[k] };
            if (__builtin_mul_overflow(lists, spec->shape[k], &lists))
                return tnd_fail(TUNDISH_E_ARGUMENT, "column '%s' is too large", spec->name);
            continue;
        }
        if (from->counts == NULL || k > 0)
            return tnd_fail(TUNDISH_E_ARGUMENT,
                            "column '%s': only the first dimension of a row may be unknown, and "
                            "counts is required then",
                            spec->name);
        splits = scratch_array(transformer->scratch, (size_t)rows + 1, sizeof *splits);
        splits[0] = 0;
        for (int64_t i = 0; i < rows; i++)
            if (from->counts[i] < 0 ||
                __builtin_add_overflow(splits[i], from->counts[i], &splits[i + 1]))
                return tnd_fail(TUNDISH_E_ARGUMENT, "column '%s': counts[%lld] is %lld", spec->name,
                                (long long)i, (long long)from->counts[i]);
        *level = (struct level){ .uniform = -1, .splits = splits };
        lists = splits[rows];
    }
    column->value_count = lists;
    return TUNDISH_OK;
}

tundish_status
tundish_transform_rows(tundish_transformer *transformer, const tundish_transform_column *columns,
                       uint32_t column_count, size_t row_count)
{
    const tundish_spec *inputs = &transformer->transform->inputs.spec;
    struct transformer_rows failed;
    struct column *rows;
    tundish_status status = TUNDISH_OK;

    begin(transformer);
    if (column_count != inputs->column_count)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there are %u columns; expected %u", column_count,
                        inputs->column_count);
    rows = scratch_array(transformer->scratch, column_count + 1, sizeof *rows);
    for (uint32_t i = 0; i < column_count && status == TUNDISH_OK; i++) {
        const tundish_column_spec *spec = &inputs->columns[i];

        if (spec->kind != TUNDISH_DENSE)
            return tnd_fail(TUNDISH_E_ARGUMENT, "column '%s' is not dense", spec->name);
        status = set_levels(transformer, spec, &columns[i], (int64_t)row_count, &rows[i]);
        if (status == TUNDISH_OK)
            rows[i].values =
                spec->dtype == TUNDISH_STRING
                    ? copy_texts(transformer, columns[i].values, (size_t)rows[i].value_count)
                    : columns[i].values;
    }
    if (status != TUNDISH_OK)
        return status;
    failed = (struct transformer_rows){ .columns = rows, .count = (int64_t)row_count };
    status =
        transformer_run(transformer->transformer, rows, (int64_t)row_count, &transformer->outputs);
    return name_bad_row(transformer, &failed, status);
}

/* The public form of strings: one block of bytes and offsets into it. */
static void
join_texts(struct tundish_transformer *transformer, const struct output_column *from,
           tundish_tensor *tensor)
{
    const struct byte_view *texts = from->values;
    size_t count = (size_t)from->value_count;
    int64_t *offsets = scratch_array(transformer->scratch, count + 1, sizeof *offsets);
    uint8_t *bytes;

    offsets[0] = 0;
    for (size_t i = 0; i < count; i++)
        offsets[i + 1] = offsets[i] + (int64_t)texts[i].size;
    bytes = scratch_alloc(transformer->scratch, (size_t)offsets[count] + 1);
    for (size_t i = 0; i < count; i++)
        if (texts[i].size > 0)
            memcpy(bytes + offsets[i], texts[i].data, texts[i].size);
    tensor->data = bytes;
    tensor->data_bytes = (uint64_t)offsets[count];
    tensor->string_offsets = offsets;
}

static void
make_tensor(struct tundish_transformer *transformer, const struct output_column *from,
            struct public_tensor *to)
{
    tundish_tensor *tensor = &to->tensor;

    *tensor = (tundish_tensor){
        .name = from->spec->name,
        .dtype = from->spec->dtype,
        .kind = from->spec->kind,
        .rank = (uint32_t)from->rank,
        .ragged_rank = from->splits_count,
        .shape = to->shape,
        .element_count = (uint64_t)from->value_count,
        .data_bytes = (uint64_t)from->value_count * tnd_dtype_bytes(from->spec->dtype),
        /* Never NULL, so that callers need no special case for an empty tensor. */
        .data = from->values != NULL ? from->values : (const void *)to,
        .row_splits = from->splits_count > 0 ? to->splits : NULL,
        .row_split_counts = from->splits_count > 0 ? to->split_counts : NULL,
        .indices = from->indices,
    };
    for (int k = 0; k < from->rank; k++)
        to->shape[k] = from->shape[k];
    for (uint32_t k = 0; k < from->splits_count; k++) {
        to->splits[k] = from->splits[k];
        to->split_counts[k] = (uint64_t)from->splits_lengths[k];
    }
    if (from->spec->dtype == TUNDISH_STRING)
        join_texts(transformer, from, tensor);
}

tundish_status
tundish_transform_tensor(tundish_transformer *transformer, uint32_t index,
                         const tundish_tensor **ret_tensor)
{
    struct public_tensor *tensor;

    if (transformer->outputs == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "no rows have been transformed");
    if (index >= transformer->transform->outputs.spec.column_count)
        return tnd_fail(TUNDISH_E_ARGUMENT, "there is no column %u: there are %u", index,
                        transformer->transform->outputs.spec.column_count);
    tensor = &transformer->tensors[index];
    /* Made on demand: strings are joined only for columns that the caller asks for. */
    if (tensor->tensor.name == NULL)
        make_tensor(transformer, &transformer->outputs[index], tensor);
    *ret_tensor = &tensor->tensor;
    return TUNDISH_OK;
}
