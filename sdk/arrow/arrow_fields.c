/* arrow_fields.c - see arrow_fields.h. Formats are those of the C Data Interface. */
#include "arrow/arrow_fields.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/status.h"

enum { FIELDS_MAX = 1 << 20, DECIMAL_DIGITS = 18 };

static const struct {
    const char *format;
    tundish_dtype dtype;
} numbers[] = {
    { "c", TUNDISH_INT8 },    { "C", TUNDISH_UINT8 },   { "s", TUNDISH_INT16 },
    { "S", TUNDISH_UINT16 },  { "i", TUNDISH_INT32 },   { "I", TUNDISH_UINT32 },
    { "l", TUNDISH_INT64 },   { "L", TUNDISH_UINT64 },  { "e", TUNDISH_FLOAT16 },
    { "f", TUNDISH_FLOAT32 }, { "g", TUNDISH_FLOAT64 }, { "tdD", TUNDISH_INT32 },
    { "tdm", TUNDISH_INT64 }, { "tts", TUNDISH_INT32 }, { "ttm", TUNDISH_INT32 },
    { "ttu", TUNDISH_INT64 }, { "ttn", TUNDISH_INT64 }, { "tDs", TUNDISH_INT64 },
    { "tDm", TUNDISH_INT64 }, { "tDu", TUNDISH_INT64 }, { "tDn", TUNDISH_INT64 },
};

static const struct {
    const char *format;
    enum arrow_layout layout;
} texts[] = {
    { "u", ARROW_TEXTS },       { "z", ARROW_TEXTS },       { "U", ARROW_LARGE_TEXTS },
    { "Z", ARROW_LARGE_TEXTS }, { "vu", ARROW_TEXT_VIEWS }, { "vz", ARROW_TEXT_VIEWS },
};

/* Types that cannot be read, by how their format begins. */
static const struct {
    const char *begin, *what;
} refused[] = {
    { "n", "it has nothing but nulls" },
    { "+s", "it is a struct" },
    { "+m", "it is a map" },
    { "+u", "it is a union" },
    { "+r", "it is run-end encoded" },
    { "+v", "it is a list view" },
    { "+", "it is a list of lists" },
    { "ti", "it is an interval" },
};

size_t
arrow_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

static bool
begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static void
refuse(struct arrow_field *field, const char *format)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (begins_with(format, refused[i].begin)) {
            snprintf(field->obstacle, sizeof field->obstacle, "%s", refused[i].what);
            return;
        }
    snprintf(field->obstacle, sizeof field->obstacle, "its Arrow format is '%.40s'", format);
}

/* d:PRECISION,SCALE or d:PRECISION,SCALE,BITS. */
static void
read_decimal(struct arrow_field *field, const char *format)
{
    long precision = 0, scale, bits = 128;
    char rest;
    int count = sscanf(format, "d:%ld,%ld,%ld%c", &precision, &scale, &bits, &rest);

    field->layout = ARROW_DECIMALS;
    field->dtype = TUNDISH_INT64;
    field->width = (uint32_t)(bits / 8);
    if (count < 2 || count > 3 || (bits != 32 && bits != 64 && bits != 128 && bits != 256))
        refuse(field, format);
    else if (precision > DECIMAL_DIGITS)
        snprintf(field->obstacle, sizeof field->obstacle,
                 "it is a decimal of %ld digits: at most %d fit an int64", precision,
                 DECIMAL_DIGITS);
}

static void
read_fixed(struct arrow_field *field, const char *format)
{
    int bytes = 0;
    char rest;

    field->layout = ARROW_FIXED_TEXTS;
    field->dtype = TUNDISH_STRING;
    if (sscanf(format, "w:%d%c", &bytes, &rest) != 1 || bytes < 0)
        refuse(field, format);
    else
        field->width = (uint32_t)bytes;
}

static bool
read_number(struct arrow_field *field, const char *format)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(format, numbers[i].format) == 0) {
            field->dtype = numbers[i].dtype;
            field->width = (uint32_t)tnd_dtype_bytes(field->dtype);
            field->layout = ARROW_NUMBERS;
            return true;
        }
    return false;
}

static void
read_type(struct arrow_field *field, const char *format)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(format, texts[i].format) == 0) {
            field->dtype = TUNDISH_STRING;
            field->layout = texts[i].layout;
            return;
        }
    if (read_number(field, format))
        return;
    if (strcmp(format, "b") == 0) {
        field->dtype = TUNDISH_BOOL;
        field->layout = ARROW_BITS;
    } else if (begins_with(format, "ts")) { /* a timestamp; its unit and zone follow */
        field->dtype = TUNDISH_INT64;
        field->layout = ARROW_NUMBERS;
        field->width = 8;
    } else if (begins_with(format, "d:")) {
        read_decimal(field, format);
    } else if (begins_with(format, "w:")) {
        read_fixed(field, format);
    } else {
        refuse(field, format);
    }
}

/* Its values, or the dictionary that has them. */
static void
read_values(struct arrow_field *field, const struct ArrowSchema *schema)
{
    struct arrow_field index = { .obstacle = "" };

    if (schema->format == NULL) {
        refuse(field, "");
        return;
    }
    if (schema->dictionary == NULL) {
        read_type(field, schema->format);
        return;
    }
    if (schema->dictionary->format == NULL || schema->dictionary->dictionary != NULL ||
        !read_number(&index, schema->format) || !tnd_dtype_is_integer(index.dtype) ||
        schema->format[1] != '\0') {
        snprintf(field->obstacle, sizeof field->obstacle, "its dictionary is damaged");
        return;
    }
    field->index_width = (uint8_t)index.width;
    field->index_is_signed = schema->format[0] >= 'a';
    read_type(field, schema->dictionary->format);
}

/* "+l", "+L" or "+w:N"; is the schema one of a list? */
static bool
read_shape(struct arrow_field *field, const char *format)
{
    int size = 0;
    char rest;

    if (strcmp(format, "+l") == 0)
        field->shape = ARROW_LISTS;
    else if (strcmp(format, "+L") == 0)
        field->shape = ARROW_LARGE_LISTS;
    else if (sscanf(format, "+w:%d%c", &size, &rest) == 1 && size >= 0)
        field->shape = ARROW_FIXED_LISTS;
    else
        return false;
    field->list_size = (uint32_t)size;
    return true;
}

static void
read_field(struct arrow_field *field, const struct ArrowSchema *schema)
{
    *field = (struct arrow_field){ .name = schema->name == NULL ? "" : schema->name };
    if (schema->format == NULL || !read_shape(field, schema->format))
        read_values(field, schema);
    else if (schema->n_children != 1 || schema->children == NULL || schema->children[0] == NULL)
        snprintf(field->obstacle, sizeof field->obstacle, "its schema is damaged");
    else
        read_values(field, schema->children[0]);
}

tundish_status
arrow_fields_read(const struct ArrowSchema *schema, struct arrow_field **ret_fields,
                  uint32_t *ret_count)
{
    struct arrow_field *fields;

    if (schema->release == NULL || schema->format == NULL || strcmp(schema->format, "+s") != 0)
        return tnd_fail(TUNDISH_E_DATA, "its schema is not that of a table");
    if (schema->n_children < 0 || schema->n_children > FIELDS_MAX ||
        (schema->n_children > 0 && schema->children == NULL))
        return tnd_fail(TUNDISH_E_DATA, "its schema is damaged");
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i] == NULL)
            return tnd_fail(TUNDISH_E_DATA, "its schema is damaged");
    fields = calloc((size_t)schema->n_children + 1, sizeof *fields);
    if (fields == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "there is no memory for its schema");
    for (int64_t i = 0; i < schema->n_children; i++)
        read_field(&fields[i], schema->children[i]);
    *ret_fields = fields;
    *ret_count = (uint32_t)schema->n_children;
    return TUNDISH_OK;
}
