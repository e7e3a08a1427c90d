/* number_store.c - store a written number as a value of any dtype. */
#include "content/records/json_reading.h"

#include "column/convert.h"
#include "content/records/number.h"

/* Numbers above INT64_MAX, for uint64. */
static bool
store_large(const uint8_t *text, uint64_t size, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (uint64_t i = 0; i < size; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return false;
    *ret_number = number;
    return size > 0;
}

/* Store an integer in a narrow dtype. It fits if converting it back gives the same number. */
static bool
store_narrow(tundish_dtype dtype, const uint8_t *text, uint64_t size, void *to)
{
    int64_t number, back;

    if (!number_int64(text, size, &number))
        return false;
    convert_values(dtype, to, TUNDISH_INT64, &number, 1);
    convert_values(TUNDISH_INT64, &back, dtype, to, 1);
    return back == number && (dtype != TUNDISH_UINT64 || number >= 0);
}

static bool
store_half(tundish_dtype dtype, const uint8_t *text, uint64_t size, void *to)
{
    double number;

    if (!number_float64(text, size, &number))
        return false;
    convert_values(dtype, to, TUNDISH_FLOAT64, &number, 1);
    return true;
}

bool
number_store(tundish_dtype dtype, const uint8_t *text, uint64_t size, void *to)
{
    switch (dtype) {
    case TUNDISH_STRING:
        return false;
    case TUNDISH_INT64:
        return number_int64(text, size, to);
    case TUNDISH_FLOAT32:
        return number_float32(text, size, to);
    case TUNDISH_FLOAT64:
        return number_float64(text, size, to);
    case TUNDISH_FLOAT16:
    case TUNDISH_BFLOAT16:
        return store_half(dtype, text, size, to);
    case TUNDISH_UINT64:
        return store_narrow(dtype, text, size, to) || store_large(text, size, to);
    default:
        return store_narrow(dtype, text, size, to);
    }
}
