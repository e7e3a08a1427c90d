/* literal.c - scalars and nested lists of them. */
#include "column/literal.h"

#include <stdlib.h>
#include <string.h>

#include "column/flush.h"
#include "core/memory.h"

size_t
literal_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(dtype);
}

static tundish_status
wrong_kind(const struct spec_value *value, tundish_dtype dtype, const char *what,
           struct spec_errors *errors)
{
    return spec_complain(errors, value->line, value->column,
                         "%s must be %s, because the dtype is %s", what,
                         dtype == TUNDISH_STRING       ? "text (quote it)"
                         : tnd_dtype_is_integer(dtype) ? "an integer"
                         : dtype == TUNDISH_BOOL       ? "true or false"
                                                       : "a number",
                         tnd_dtype_name(dtype));
}

static tundish_status
out_of_range(const struct spec_value *value, tundish_dtype dtype, const char *what,
             struct spec_errors *errors)
{
    return spec_complain(errors, value->line, value->column, "%s: %s is out of range for %s", what,
                         value->text, tnd_dtype_name(dtype));
}

static bool
store_integer(const struct spec_value *value, tundish_dtype dtype, void *to)
{
    size_t bytes = tnd_dtype_bytes(dtype);
    bool is_unsigned = dtype == TUNDISH_UINT8 || dtype == TUNDISH_UINT16 ||
                       dtype == TUNDISH_UINT32 || dtype == TUNDISH_UINT64;
    unsigned bits = (unsigned)(8 * bytes);

    if (is_unsigned) {
        if (value->kind == SPEC_INTEGER && value->integer < 0)
            return false;
        if (bits < 64 && value->natural >> bits != 0)
            return false;
        /* The low bytes come first: Tundish runs on little-endian machines only. */
        memcpy(to, &value->natural, bytes);
        return true;
    }
    if (value->kind == SPEC_NATURAL)
        return false;
    if (bits < 64 && (value->integer < -(INT64_C(1) << (bits - 1)) ||
                      value->integer >= INT64_C(1) << (bits - 1)))
        return false;
    memcpy(to, &value->integer, bytes);
    return true;
}

struct byte_view
literal_text(const char *text, size_t bytes)
{
    /* Padded: vector loops may read up to 64 bytes after a text. */
    uint8_t *copy = tnd_zalloc(1, bytes + 64);

    memcpy(copy, text, bytes);
    return (struct byte_view){ copy, bytes };
}

static void
store_float(double number, tundish_dtype dtype, void *to)
{
    if (dtype == TUNDISH_FLOAT64)
        *(double *)to = number;
    else if (dtype == TUNDISH_FLOAT32)
        *(float *)to = (float)number;
    else if (dtype == TUNDISH_FLOAT16)
        *(uint16_t *)to = half_of_float((float)number);
    else
        *(uint16_t *)to = bfloat_of_float(flush_float((float)number));
}

tundish_status
literal_store(const struct spec_value *value, tundish_dtype dtype, const char *what,
              struct spec_errors *errors, void *to)
{
    bool is_integer = value->kind == SPEC_INTEGER || value->kind == SPEC_NATURAL;

    if (dtype == TUNDISH_STRING) {
        if (value->kind != SPEC_TEXT)
            return wrong_kind(value, dtype, what, errors);
        *(struct byte_view *)to = literal_text(value->text, value->text_bytes);
    } else if (dtype == TUNDISH_BOOL) {
        if (value->kind != SPEC_BOOL)
            return wrong_kind(value, dtype, what, errors);
        *(uint8_t *)to = value->boolean;
    } else if (tnd_dtype_is_integer(dtype)) {
        if (!is_integer)
            return wrong_kind(value, dtype, what, errors);
        if (!store_integer(value, dtype, to))
            return out_of_range(value, dtype, what, errors);
    } else {
        if (!is_integer && value->kind != SPEC_NUMBER)
            return wrong_kind(value, dtype, what, errors);
        store_float(value->number, dtype, to);
    }
    return TUNDISH_OK;
}

/* Scalars in a nested list, or -1 if it is ragged and so not a tensor. */
int64_t
literal_count(const struct spec_value *value)
{
    int64_t each;

    if (value->kind != SPEC_LIST)
        return 1;
    if (value->count == 0)
        return 0;
    each = literal_count(&value->items[0]);
    for (uint32_t i = 0; i < value->count; i++)
        if (literal_count(&value->items[i]) != each ||
            (value->items[i].kind == SPEC_LIST) != (value->items[0].kind == SPEC_LIST))
            return -1;
    return each < 0 ? -1 : each * value->count;
}

/* Returns how many were stored, also on failure: literal_store_all frees these. */
static int64_t
store_nested(const struct spec_value *value, tundish_dtype dtype, const char *what,
             struct spec_errors *errors, void *to, tundish_status *status)
{
    int64_t stored = 0;

    if (value->kind != SPEC_LIST) {
        *status = literal_store(value, dtype, what, errors, to);
        return *status == TUNDISH_OK;
    }
    for (uint32_t i = 0; i < value->count && *status == TUNDISH_OK; i++)
        stored += store_nested(&value->items[i], dtype, what, errors,
                               (uint8_t *)to + (size_t)stored * literal_bytes(dtype), status);
    return stored;
}

tundish_status
literal_store_all(const struct spec_value *value, tundish_dtype dtype, const char *what,
                  struct spec_errors *errors, void *to)
{
    tundish_status status = TUNDISH_OK;
    int64_t stored = store_nested(value, dtype, what, errors, to, &status);

    if (status != TUNDISH_OK && dtype == TUNDISH_STRING)
        for (int64_t i = 0; i < stored; i++)
            free((void *)(uintptr_t)((struct byte_view *)to)[i].data);
    return status;
}

void
literal_free(void *values, tundish_dtype dtype, int64_t count)
{
    if (values != NULL && dtype == TUNDISH_STRING)
        for (int64_t i = 0; i < count; i++)
            free((void *)(uintptr_t)((struct byte_view *)values)[i].data);
    free(values);
}
