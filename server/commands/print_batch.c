/* print_batch.c - batches and element specs as JSON and as text. */
#include "commands/print_batch.h"

#include <stdlib.h>

#include "core/half.h"
#include "plan/print.h"

void
print_element_spec(struct json *json, const struct schema *schema)
{
    json_object(json);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];

        json_key(json, spec->name);
        json_object(json);
        json_key_text(json, "dtype", tnd_dtype_name(spec->dtype));
        json_key(json, "shape");
        print_shape(json, spec);
        /* A row of a ragged batch is ragged in TensorFlow even where its kind here is dense. */
        if (spec->kind == TUNDISH_RAGGED || spec->row_of_ragged) {
            json_key_bool(json, "ragged", true);
            json_key_int(json, "ragged_rank", spec->ragged_rank);
        }
        if (spec->kind == TUNDISH_SPARSE)
            json_key_bool(json, "sparse", true);
        json_object_end(json);
    }
    json_object_end(json);
}

/* Floats get the digits that their dtype needs to be read back exactly (json.h). */
void
print_value(struct json *json, tundish_dtype dtype, const void *values, int64_t i)
{
    switch (dtype) {
    case TUNDISH_BOOL:
        json_bool(json, ((const uint8_t *)values)[i]);
        break;
    case TUNDISH_UINT8:
        json_uint(json, ((const uint8_t *)values)[i]);
        break;
    case TUNDISH_INT8:
        json_int(json, ((const int8_t *)values)[i]);
        break;
    case TUNDISH_UINT16:
        json_uint(json, ((const uint16_t *)values)[i]);
        break;
    case TUNDISH_INT16:
        json_int(json, ((const int16_t *)values)[i]);
        break;
    case TUNDISH_UINT32:
        json_uint(json, ((const uint32_t *)values)[i]);
        break;
    case TUNDISH_INT32:
        json_int(json, ((const int32_t *)values)[i]);
        break;
    case TUNDISH_UINT64:
        json_uint(json, ((const uint64_t *)values)[i]);
        break;
    case TUNDISH_INT64:
        json_int(json, ((const int64_t *)values)[i]);
        break;
    case TUNDISH_FLOAT16:
        /* As many digits as it takes to read the same number back. */
        json_float(json, (double)tnd_half_to_float(((const uint16_t *)values)[i]), 5);
        break;
    case TUNDISH_BFLOAT16:
        json_float(json, (double)tnd_bfloat_to_float(((const uint16_t *)values)[i]), 4);
        break;
    case TUNDISH_FLOAT32:
        json_float(json, (double)((const float *)values)[i], 9);
        break;
    case TUNDISH_FLOAT64:
        json_float(json, ((const double *)values)[i], 17);
        break;
    case TUNDISH_STRING:
        json_bytes(json, ((const struct byte_view *)values)[i]);
        break;
    }
}

static void
print_numbers(struct json *json, const int64_t *numbers, int64_t count)
{
    json_array(json);
    for (int64_t i = 0; i < count; i++)
        json_int(json, numbers[i]);
    json_array_end(json);
}

static void
print_ragged(struct json *json, const struct output_column *column)
{
    /* Dimensions after the ragged ones are uniform, and are not in row_splits. */
    int inner = column->spec->ragged_rank + 1;

    json_key_bool(json, "ragged", true);
    json_key(json, "row_splits");
    json_array(json);
    for (uint32_t k = 0; k < column->splits_count; k++)
        print_numbers(json, column->splits[k], column->splits_lengths[k]);
    json_array_end(json);
    if (inner < column->rank) {
        json_key(json, "inner_shape");
        print_numbers(json, &column->shape[inner], column->rank - inner);
    }
}

static void
print_sparse(struct json *json, const struct output_column *column)
{
    json_key_bool(json, "sparse", true);
    json_key(json, "dense_shape");
    print_numbers(json, column->shape, column->rank);
    json_key(json, "indices");
    json_array(json);
    for (int64_t i = 0; i < column->value_count; i++)
        print_numbers(json, &column->indices[i * column->rank], column->rank);
    json_array_end(json);
}

void
print_column(struct json *json, const struct output_column *column)
{
    json_object(json);
    json_key_text(json, "dtype", tnd_dtype_name(column->spec->dtype));
    if (column->spec->kind == TUNDISH_RAGGED) {
        print_ragged(json, column);
    } else if (column->spec->kind == TUNDISH_SPARSE) {
        print_sparse(json, column);
    } else {
        json_key(json, "shape");
        print_numbers(json, column->shape, column->rank);
    }
    json_key(json, "values");
    json_array(json);
    for (int64_t i = 0; i < column->value_count; i++)
        print_value(json, column->spec->dtype, column->values, i);
    json_array_end(json);
    json_object_end(json);
}

static const char *
kind_name(tundish_kind kind)
{
    return kind == TUNDISH_RAGGED ? "ragged" : kind == TUNDISH_SPARSE ? "sparse" : "dense";
}

static int64_t
text_bytes(const struct output_column *column)
{
    const struct byte_view *texts = column->values;
    int64_t bytes = 0;

    for (int64_t i = 0; i < column->value_count; i++)
        bytes += (int64_t)texts[i].size;
    return bytes;
}

/* The entries of row_splits, or of indices. */
static int64_t
layout_count(const struct output_column *column, uint32_t k)
{
    return column->spec->kind == TUNDISH_RAGGED ? column->splits_lengths[k]
                                                : column->value_count * column->rank;
}

static uint32_t
layout_parts(const struct output_column *column)
{
    return column->spec->kind == TUNDISH_RAGGED   ? column->splits_count
           : column->spec->kind == TUNDISH_SPARSE ? 1
                                                  : 0;
}

void
print_column_parts(struct json *json, const struct output_column *column)
{
    bool is_text = column->spec->dtype == TUNDISH_STRING;
    int64_t word = sizeof(int64_t), value = (int64_t)tnd_dtype_bytes(column->spec->dtype);

    json_object(json);
    json_key_text(json, "dtype", tnd_dtype_name(column->spec->dtype));
    json_key_text(json, "kind", kind_name(column->spec->kind));
    json_key(json, "shape");
    print_numbers(json, column->shape, column->rank);
    json_key(json, "parts");
    json_array(json);
    json_int(json, is_text ? text_bytes(column) : column->value_count * value);
    if (is_text)
        json_int(json, (column->value_count + 1) * word);
    for (uint32_t k = 0; k < layout_parts(column); k++)
        json_int(json, layout_count(column, k) * word);
    json_array_end(json);
    json_object_end(json);
}

static void
write_texts(FILE *file, const struct output_column *column)
{
    const struct byte_view *texts = column->values;
    int64_t offset = 0;

    for (int64_t i = 0; i < column->value_count; i++)
        if (texts[i].size > 0)
            fwrite(texts[i].data, 1, texts[i].size, file);
    fwrite(&offset, sizeof offset, 1, file);
    for (int64_t i = 0; i < column->value_count; i++) {
        offset += (int64_t)texts[i].size;
        fwrite(&offset, sizeof offset, 1, file);
    }
}

void
print_column_values(FILE *file, const struct output_column *column)
{
    bool is_ragged = column->spec->kind == TUNDISH_RAGGED;

    if (column->spec->dtype == TUNDISH_STRING)
        write_texts(file, column);
    else if (column->value_count > 0)
        fwrite(column->values, tnd_dtype_bytes(column->spec->dtype), (size_t)column->value_count,
               file);
    for (uint32_t k = 0; k < layout_parts(column); k++)
        if (layout_count(column, k) > 0)
            fwrite(is_ragged ? column->splits[k] : column->indices, sizeof(int64_t),
                   (size_t)layout_count(column, k), file);
}

void
print_column_text(FILE *file, const struct output_column *column)
{
    enum { SHOWN = 8 };
    struct json json;

    fprintf(file, "  %-16s %s[", column->spec->name, tnd_dtype_name(column->spec->dtype));
    for (int k = 0; k < column->rank; k++)
        /* -1 is a ragged dimension, whose size varies. */
        if (column->shape[k] < 0)
            fprintf(file, "%s?", k > 0 ? "," : "");
        else
            fprintf(file, "%s%lld", k > 0 ? "," : "", (long long)column->shape[k]);
    fprintf(file, "]%s ",
            column->spec->kind == TUNDISH_RAGGED   ? " ragged"
            : column->spec->kind == TUNDISH_SPARSE ? " sparse"
                                                   : "");
    json_start(&json, file);
    for (int64_t i = 0; i < column->value_count && i < SHOWN; i++)
        print_value(&json, column->spec->dtype, column->values, i);
    fprintf(file, "%s\n", column->value_count > SHOWN ? ", ..." : "");
}
