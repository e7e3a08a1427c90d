/* tensor_literal.c - nested lists to dense arrays, with the dtypes that tf.constant would choose.
 */
#include "source/rows/tensor_literal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "column/dims.h"
#include "column/flush.h"
#include "content/text/texts.h"
#include "core/half.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_write.h"
#include "remote/ranges.h"
#include "source/rows/npy.h"
#include "source/variable.h"

enum { TEXT_TAIL = 64 }; /* readable bytes after byte views, for loops that read whole vectors */

/* Which kinds of values the lists hold. */
struct survey {
    bool has_text, has_bool, has_number, has_large, has_integer;
    tundish_dtype variable_dtype; /* of the first variable, or 0 */
    uint64_t text_bytes;
    const struct spec_value *first;
};

/* A walk over all values, in order. The first one surveys and the second one stores. */
struct walk {
    const struct stage_config *config;
    struct tensor *tensor;
    struct survey survey;
    int64_t index; /* of the next value */
    uint64_t text_used;
};

static tundish_status
complain(const struct walk *walk, const struct spec_value *value, const char *sentence)
{
    return spec_complain(walk->config->errors, value->line, value->column, "%s", sentence);
}

/* Take the length of the first list at each depth. survey_lists checks the others against it. */
static tundish_status
measure_list(struct walk *walk, const struct spec_value *value)
{
    struct tensor *tensor = walk->tensor;

    tensor->value_count = 1;
    for (; value->kind == SPEC_LIST; value = &value->items[0]) {
        if (tensor->rank == RANK_MAX)
            return complain(walk, value, "lists are nested too deeply for a column");
        tensor->shape[tensor->rank++] = value->count;
        if (__builtin_mul_overflow(tensor->value_count, value->count, &tensor->value_count))
            return complain(walk, value, "there are too many values");
        /* An empty list ends the shape: what its elements would be is unknown. */
        if (value->count == 0)
            break;
    }
    return TUNDISH_OK;
}

static tundish_status
survey_variable(struct walk *walk, const struct spec_value *value)
{
    struct column_spec spec;
    tundish_status status = variable_spec(walk->config, value, &spec);

    if (status != TUNDISH_OK)
        return status;
    if (spec.kind != TUNDISH_DENSE || spec.rank != 0)
        return complain(walk, value, "a variable among values must be a single value");
    if (walk->survey.variable_dtype == 0)
        walk->survey.variable_dtype = spec.dtype;
    if (walk->survey.variable_dtype != spec.dtype)
        return complain(walk, value, "the variables in one column differ in dtype");
    walk->tensor->variable_count++;
    return TUNDISH_OK;
}

static tundish_status
survey_value(struct walk *walk, const struct spec_value *value)
{
    struct survey *survey = &walk->survey;

    if (survey->first == NULL)
        survey->first = value;
    switch (value->kind) {
    case SPEC_TEXT:
        survey->has_text = true;
        survey->text_bytes += value->text_bytes;
        return TUNDISH_OK;
    case SPEC_BOOL:
        survey->has_bool = true;
        return TUNDISH_OK;
    case SPEC_NUMBER:
        survey->has_number = true;
        return TUNDISH_OK;
    case SPEC_NATURAL:
    case SPEC_INTEGER:
        survey->has_integer = true;
        /* tf.constant makes int32 of integers, and int64 only where one does not fit. */
        survey->has_large |=
            value->kind == SPEC_NATURAL || value->integer > INT32_MAX || value->integer < INT32_MIN;
        return TUNDISH_OK;
    case SPEC_VARIABLE:
        return survey_variable(walk, value);
    case SPEC_NULL:
    case SPEC_MAP:
    case SPEC_LIST:
    case SPEC_DATASET:
    default:
        return complain(walk, value,
                        "a column's values are numbers, text, true, false, or lists "
                        "of them");
    }
}

static tundish_status
survey_lists(struct walk *walk, const struct spec_value *value, int depth)
{
    const struct tensor *tensor = walk->tensor;

    if (depth == tensor->rank)
        return survey_value(walk, value);
    /* tf.constant refuses lists of unequal lengths too; ragged tensors have a function of their
     * own. */
    if (value->kind != SPEC_LIST || value->count != tensor->shape[depth])
        return spec_complain(
            walk->config->errors, value->line, value->column,
            "lists of one column must have equal length: this must be a list of %lld, as the first",
            (long long)tensor->shape[depth]);
    for (uint32_t i = 0; i < value->count; i++) {
        tundish_status status = survey_lists(walk, &value->items[i], depth + 1);

        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

static tundish_status
infer_dtype(const struct walk *walk, tundish_dtype *ret_dtype)
{
    const struct survey *survey = &walk->survey;
    int kinds = survey->has_text + survey->has_bool + (survey->has_number || survey->has_integer);

    /* As tf.constant, which does not convert True to 1 or 1 to "1". */
    if (kinds > 1)
        return complain(walk, survey->first,
                        "the values of one column must be all numbers, all text or all booleans");
    if (survey->variable_dtype != 0)
        *ret_dtype = survey->variable_dtype;
    else if (survey->has_text)
        *ret_dtype = TUNDISH_STRING;
    else if (survey->has_bool)
        *ret_dtype = TUNDISH_BOOL;
    else if (survey->has_integer && !survey->has_number)
        *ret_dtype = survey->has_large ? TUNDISH_INT64 : TUNDISH_INT32;
    else
        *ret_dtype = TUNDISH_FLOAT32;
    return TUNDISH_OK;
}

static tundish_status
misfit(const struct walk *walk, const struct spec_value *value)
{
    return spec_complain(walk->config->errors, value->line, value->column,
                         "'%s' does not fit the column's dtype, %s",
                         value->text == NULL ? "this value" : value->text,
                         tnd_dtype_name(walk->tensor->dtype));
}

static const struct {
    int64_t minimum;
    uint64_t maximum;
} integer_ranges[] = {
    [TUNDISH_UINT8] = { 0, UINT8_MAX },   [TUNDISH_INT8] = { INT8_MIN, INT8_MAX },
    [TUNDISH_UINT16] = { 0, UINT16_MAX }, [TUNDISH_INT16] = { INT16_MIN, INT16_MAX },
    [TUNDISH_UINT32] = { 0, UINT32_MAX }, [TUNDISH_INT32] = { INT32_MIN, INT32_MAX },
    [TUNDISH_UINT64] = { 0, UINT64_MAX }, [TUNDISH_INT64] = { INT64_MIN, INT64_MAX },
};

static tundish_status
put_integer(struct walk *walk, const struct spec_value *value)
{
    tundish_dtype dtype = walk->tensor->dtype;
    size_t bytes = tnd_dtype_bytes(dtype);
    bool negative = value->kind == SPEC_INTEGER && value->integer < 0;
    bool fits = negative ? value->integer >= integer_ranges[dtype].minimum
                         : value->natural <= integer_ranges[dtype].maximum;
    /* In two's complement the low bytes of a little-endian integer are the narrower integer. */
    uint64_t bits = negative ? (uint64_t)value->integer : value->natural;

    if ((value->kind != SPEC_INTEGER && value->kind != SPEC_NATURAL) || !fits)
        return misfit(walk, value);
    memcpy((uint8_t *)walk->tensor->values + (uint64_t)walk->index * bytes, &bits, bytes);
    return TUNDISH_OK;
}

static tundish_status
put_float(struct walk *walk, const struct spec_value *value)
{
    void *values = walk->tensor->values;
    float narrow = (float)value->number;

    if (value->kind != SPEC_INTEGER && value->kind != SPEC_NATURAL && value->kind != SPEC_NUMBER)
        return misfit(walk, value);
    if (walk->tensor->dtype == TUNDISH_FLOAT64) {
        ((double *)values)[walk->index] = value->number;
        return TUNDISH_OK;
    }
    /* A literal that overflows is an error. An infinity that was written as one is kept. */
    if (isinf(narrow) && !isinf(value->number))
        return misfit(walk, value);
    if (walk->tensor->dtype == TUNDISH_FLOAT32)
        ((float *)values)[walk->index] = narrow;
    else if (walk->tensor->dtype == TUNDISH_FLOAT16)
        ((uint16_t *)values)[walk->index] = tnd_half_from_float(narrow);
    else
        ((uint16_t *)values)[walk->index] = tnd_bfloat_from_float(flush_float(narrow));
    return TUNDISH_OK;
}

static tundish_status
put_text(struct walk *walk, const struct spec_value *value)
{
    uint8_t *copy = walk->tensor->text + walk->text_used;

    if (value->kind != SPEC_TEXT)
        return misfit(walk, value);
    memcpy(copy, value->text, value->text_bytes);
    ((struct byte_view *)walk->tensor->values)[walk->index] =
        (struct byte_view){ copy, value->text_bytes };
    walk->text_used += value->text_bytes;
    return TUNDISH_OK;
}

static void
put_variable(struct walk *walk, const struct spec_value *value)
{
    struct tensor *tensor = walk->tensor;

    /* The view must be readable even though the variable is stored over it in every row. */
    if (tensor->dtype == TUNDISH_STRING)
        ((struct byte_view *)tensor->values)[walk->index] = (struct byte_view){ tensor->text, 0 };
    tensor->variables[tensor->variable_count++] =
        (struct tensor_variable){ .index = walk->index, .value = value };
}

static tundish_status
put_value(struct walk *walk, const struct spec_value *value)
{
    tundish_dtype dtype = walk->tensor->dtype;

    if (value->kind == SPEC_VARIABLE) {
        put_variable(walk, value);
        return TUNDISH_OK;
    }
    if (dtype == TUNDISH_STRING)
        return put_text(walk, value);
    if (tnd_dtype_is_integer(dtype))
        return put_integer(walk, value);
    if (tnd_dtype_is_float(dtype))
        return put_float(walk, value);
    if (value->kind != SPEC_BOOL)
        return misfit(walk, value);
    ((uint8_t *)walk->tensor->values)[walk->index] = value->boolean;
    return TUNDISH_OK;
}

static tundish_status
put_lists(struct walk *walk, const struct spec_value *value, int depth)
{
    tundish_status status = TUNDISH_OK;

    if (depth == walk->tensor->rank) {
        status = put_value(walk, value);
        walk->index++;
        return status;
    }
    for (uint32_t i = 0; i < value->count && status == TUNDISH_OK; i++)
        status = put_lists(walk, &value->items[i], depth + 1);
    return status;
}

static size_t
value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

static tundish_status
tensor_of_lists(const struct stage_config *config, const struct spec_value *value,
                tundish_dtype dtype, struct tensor *tensor)
{
    struct walk walk = { .config = config, .tensor = tensor };
    tundish_status status = measure_list(&walk, value);

    if (status == TUNDISH_OK)
        status = survey_lists(&walk, value, 0);
    if (status == TUNDISH_OK && dtype == 0)
        status = infer_dtype(&walk, &dtype);
    if (status != TUNDISH_OK)
        return status;
    if (walk.survey.variable_dtype != 0 && walk.survey.variable_dtype != dtype)
        return complain(&walk, value, "a variable in this column has another dtype");
    tensor->dtype = dtype;
    tensor->values = tnd_zalloc((size_t)tensor->value_count + 1, value_bytes(dtype));
    tensor->text = tnd_zalloc(walk.survey.text_bytes + TEXT_TAIL, 1);
    tensor->variables = tnd_zalloc(tensor->variable_count, sizeof *tensor->variables);
    /* The list is filled by put_variable, which counts again. */
    tensor->variable_count = 0;
    return put_lists(&walk, value, 0);
}

static tundish_status
read_all(int file, void *to, uint64_t bytes, uint64_t offset)
{
    size_t got = 0;
    int error = tnd_read_at(file, to, bytes, offset, &got);

    if (error != 0)
        return tnd_fail_errno(error, "it cannot be read");
    return got == bytes ? TUNDISH_OK
                        : tnd_fail(TUNDISH_E_DATA, "it is shorter than its header says");
}

/* Text items are padded with NULs to one size. NumPy drops all NULs at the end, so text that ends
 * in one loses it there too. */
static tundish_status
views_of_items(const struct npy_header *header, const uint8_t *items, struct tensor *tensor)
{
    struct byte_view *views = tnd_zalloc((size_t)header->value_count + 1, sizeof *views);
    uint8_t *to = tensor->text;

    tensor->values = views;
    for (int64_t i = 0; i < header->value_count; i++, items += header->item_bytes) {
        uint8_t *begin = to;
        uint64_t unit = header->text == NPY_UCS4 ? 4 : 1;
        uint64_t used = header->item_bytes;

        while (used > 0 && memcmp(items + used - unit, "\0\0\0", unit) == 0)
            used -= unit;
        if (header->text == NPY_BYTES) {
            memcpy(to, items, used);
            to += used;
        }
        for (uint64_t k = 0; header->text == NPY_UCS4 && k < used; k += 4) {
            uint32_t c = load_u32(items + k);

            if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF)
                return tnd_fail(TUNDISH_E_DATA, "item %lld is not valid Unicode", (long long)i);
            to += text_utf8(c, to);
        }
        views[i] = (struct byte_view){ begin, (uint64_t)(to - begin) };
    }
    return TUNDISH_OK;
}

/* Read the values as they lie in the file, and bring them into C order. */
static tundish_status
read_items(int file, const struct npy_header *header, uint64_t file_bytes, uint8_t **ret_items)
{
    uint64_t bytes = (uint64_t)header->value_count * header->item_bytes;
    uint8_t *items;
    tundish_status status;

    if (file_bytes - header->data_offset <
        bytes) /* checked before memory is allocated for values that are not there */
        return tnd_fail(TUNDISH_E_DATA, "it is shorter than its header says");
    items = tnd_zalloc(bytes + TEXT_TAIL, 1);
    status = read_all(file, items, bytes, header->data_offset);
    if (status == TUNDISH_OK)
        npy_order_bytes(header, items);
    if (status == TUNDISH_OK && header->fortran_order && header->rank > 1) {
        uint8_t *rows = tnd_zalloc(bytes + TEXT_TAIL, 1);

        npy_transpose(header, items, rows);
        free(items);
        items = rows;
    }
    if (status != TUNDISH_OK)
        free(items);
    else
        *ret_items = items;
    return status;
}

static tundish_status
fill_from_npy(int file, uint64_t file_bytes, struct tensor *tensor)
{
    struct npy_header header;
    uint8_t *items = NULL;
    size_t head_bytes = file_bytes < NPY_HEADER_MAX ? (size_t)file_bytes : NPY_HEADER_MAX;
    uint8_t *head = tnd_alloc(head_bytes + 1);
    tundish_status status = read_all(file, head, head_bytes, 0);

    if (status == TUNDISH_OK)
        status = npy_read_header(head, head_bytes, &header);
    free(head);
    if (status == TUNDISH_OK)
        status = read_items(file, &header, file_bytes, &items);
    if (status != TUNDISH_OK)
        return status;
    tensor->dtype = header.dtype;
    tensor->rank = header.rank;
    memcpy(tensor->shape, header.shape, sizeof tensor->shape);
    tensor->value_count = header.value_count;
    tensor->file_hash = tnd_hash_farm_cat(
        tnd_hash_farm(header.shape, sizeof header.shape),
        tnd_hash_farm(items, (size_t)((uint64_t)header.value_count * header.item_bytes)));
    if (header.dtype != TUNDISH_STRING) {
        tensor->values = items;
        return TUNDISH_OK;
    }
    /* A UCS-4 character takes at most 4 bytes in UTF-8, so item_bytes is enough for each item. */
    tensor->text = tnd_zalloc((uint64_t)header.value_count * header.item_bytes + TEXT_TAIL, 1);
    status = views_of_items(&header, items, tensor);
    free(items);
    return status;
}

/* All of it in memory, as a file. */
static tundish_status
open_url(const struct spec_file *file, const char *url, int *ret_file)
{
    struct remote *remote = NULL;
    tundish_status status = remote_get(&file->remote, &remote);

    return status == TUNDISH_OK ? remote_copy(remote, url, ret_file) : status;
}

static tundish_status
open_path(const char *path, int *ret_file)
{
    /* O_NONBLOCK: opening a pipe by that name must not hang the server. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (opened < 0)
        return tnd_fail_errno(errno, "it cannot be opened");
    *ret_file = opened;
    return TUNDISH_OK;
}

static tundish_status
open_here(const struct spec_file *file, const char *name, int *ret_file)
{
    char *path = spec_path(file, name);
    tundish_status status = open_path(path, ret_file);

    free(path);
    return status;
}

/* Closes the file. */
static tundish_status
fill_from_file(int file, struct tensor *tensor)
{
    struct stat about;
    tundish_status status;

    if (fstat(file, &about) != 0)
        status = tnd_fail_errno(errno, "it cannot be opened");
    else if (!S_ISREG(about.st_mode))
        status = tnd_fail(TUNDISH_E_DATA, "it is not a file");
    else
        status = fill_from_npy(file, (uint64_t)about.st_size, tensor);
    close(file);
    return status;
}

static tundish_status
tensor_of_npy(const struct stage_config *config, const struct spec_value *name,
              struct tensor *tensor)
{
    int file = -1;
    tundish_status status;

    if (name->kind != SPEC_TEXT)
        return spec_complain(config->errors, name->line, name->column,
                             "this takes the name of one .npy file");
    status =
        (spec_is_url(name->text) ? open_url : open_here)(config->stage->file, name->text, &file);
    if (status == TUNDISH_OK)
        status = fill_from_file(file, tensor);
    if (status != TUNDISH_OK)
        return spec_complain(config->errors, name->line, name->column, "%s: %s", name->text,
                             tnd_error_text());
    return TUNDISH_OK;
}

static tundish_status
tensor_of_map(const struct stage_config *config, const struct spec_value *map,
              struct tensor *tensor)
{
    const struct spec_value *npy = spec_map_get(map, "npy");
    const struct spec_value *values = spec_map_get(map, "values");
    const struct spec_value *name = spec_map_get(map, "dtype");
    tundish_dtype dtype = 0;

    if (npy != NULL && map->count == 1)
        return tensor_of_npy(config, npy, tensor);
    if (values == NULL || map->count != (name == NULL ? 1U : 2U))
        return spec_complain(config->errors, map->line, map->column,
                             "a column is given as lists, as {values: ..., dtype: ...} or as "
                             "{npy: file}");
    if (name != NULL) {
        dtype = name->kind == SPEC_TEXT ? tnd_dtype_by_name(name->text) : 0;
        if (dtype == 0)
            return spec_complain(config->errors, name->line, name->column, "'%s' is not a dtype",
                                 name->text == NULL ? "" : name->text);
    }
    return tensor_of_lists(config, values, dtype, tensor);
}

static tundish_status
hand_over(tundish_status status, struct tensor *tensor, struct tensor *ret_tensor)
{
    if (status == TUNDISH_OK)
        *ret_tensor = *tensor;
    else
        tensor_close(tensor);
    return status;
}

tundish_status
tensor_open(const struct stage_config *config, const struct spec_value *value,
            struct tensor *ret_tensor)
{
    struct tensor tensor = { .dtype = 0 };
    tundish_status status = value->kind == SPEC_MAP ? tensor_of_map(config, value, &tensor)
                                                    : tensor_of_lists(config, value, 0, &tensor);

    return hand_over(status, &tensor, ret_tensor);
}

tundish_status
tensor_open_text(const struct stage_config *config, const struct spec_value *value,
                 struct tensor *ret_tensor)
{
    struct tensor tensor = { .dtype = 0 };

    return hand_over(tensor_of_lists(config, value, TUNDISH_STRING, &tensor), &tensor, ret_tensor);
}

tundish_status
tensor_open_npy(const struct stage_config *config, const struct spec_value *name,
                struct tensor *ret_tensor)
{
    struct tensor tensor = { .dtype = 0 };

    return hand_over(tensor_of_npy(config, name, &tensor), &tensor, ret_tensor);
}

tundish_status
tensor_open_file(const char *path, struct tensor *ret_tensor)
{
    struct tensor tensor = { .dtype = 0 };
    int file = -1;
    tundish_status status = open_path(path, &file);

    if (status == TUNDISH_OK)
        status = fill_from_file(file, &tensor);
    return hand_over(status, &tensor, ret_tensor);
}

void
tensor_close(struct tensor *tensor)
{
    free(tensor->values);
    free(tensor->text);
    free(tensor->variables);
    *tensor = (struct tensor){ 0 };
}

void
tensor_read(const struct tensor *tensor, int64_t count, struct frame *output, uint32_t index)
{
    size_t bytes = (size_t)tensor->value_count * value_bytes(tensor->dtype);
    uint8_t *values = frame_values(output, index, (size_t)count * bytes);

    column_set_dims(&output->columns[index], count, (uint32_t)tensor->rank, tensor->shape);
    output->columns[index].values = values;
    for (int64_t i = 0; i < count && bytes > 0; i++)
        memcpy(values + (size_t)i * bytes, tensor->values, bytes);
}
