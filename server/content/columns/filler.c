/* filler.c - one value of any dtype, written many times. */
#include "content/columns/filler.h"

#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "column/vector_half.h"

tundish_status
filler_open(const struct spec_value *value, tundish_dtype dtype, const char *what,
            struct spec_errors *errors, struct filler *ret_filler)
{
    struct filler filler = { .dtype = dtype, .bytes = literal_bytes(dtype) };
    tundish_status status = TUNDISH_OK;

    if (value != NULL && value->kind == SPEC_BOOL && dtype != TUNDISH_STRING)
        convert_values(dtype, filler.value.raw, TUNDISH_BOOL, &value->boolean, 1);
    else if (value != NULL && value->kind != SPEC_NULL)
        status = literal_store(value, dtype, what, errors, &filler.value);
    else if (dtype == TUNDISH_STRING)
        /* The default, 0, is "" for strings. */
        filler.value.text = literal_text("", 0);
    if (status == TUNDISH_OK)
        *ret_filler = filler;
    return status;
}

void
filler_close(struct filler *filler)
{
    if (filler->dtype == TUNDISH_STRING)
        free((void *)(uintptr_t)filler->value.text.data);
    *filler = (struct filler){ .bytes = 0 };
}

void
filler_repeat(const struct filler *filler, void *to, int64_t count)
{
    uint8_t *at = to;

    for (int64_t i = 0; i < count; i++, at += filler->bytes)
        /* A constant size compiles to one store. */
        switch (filler->bytes) {
        case 4:
            memcpy(at, filler->value.raw, 4);
            break;
        case 8:
            memcpy(at, filler->value.raw, 8);
            break;
        default:
            memcpy(at, filler->value.raw, filler->bytes);
        }
}

/* Compare by value where the bits could mislead: -0.0 equals 0.0, and NaN equals nothing, as in
 * TensorFlow. */
bool
filler_equals(const struct filler *filler, const void *value)
{
    const struct byte_view *text = value;

    switch (filler->dtype) {
    case TUNDISH_STRING:
        return text->size == filler->value.text.size &&
               memcmp(text->data, filler->value.text.data, text->size) == 0;
    case TUNDISH_FLOAT16:
        return half_to_float(*(const uint16_t *)value) == half_to_float(filler->value.half);
    case TUNDISH_BFLOAT16:
        return bfloat_to_float(*(const uint16_t *)value) == bfloat_to_float(filler->value.half);
    case TUNDISH_FLOAT32:
        return *(const float *)value == filler->value.float32;
    case TUNDISH_FLOAT64:
        return *(const double *)value == filler->value.float64;
    default:
        return memcmp(value, filler->value.raw, filler->bytes) == 0;
    }
}
