/* dtype.c - the one table of element types. */
#include "core/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [TUNDISH_BOOL] = { "bool", 1 },         [TUNDISH_UINT8] = { "uint8", 1 },
    [TUNDISH_INT8] = { "int8", 1 },         [TUNDISH_UINT16] = { "uint16", 2 },
    [TUNDISH_INT16] = { "int16", 2 },       [TUNDISH_UINT32] = { "uint32", 4 },
    [TUNDISH_INT32] = { "int32", 4 },       [TUNDISH_UINT64] = { "uint64", 8 },
    [TUNDISH_INT64] = { "int64", 8 },       [TUNDISH_FLOAT16] = { "float16", 2 },
    [TUNDISH_BFLOAT16] = { "bfloat16", 2 }, [TUNDISH_FLOAT32] = { "float32", 4 },
    [TUNDISH_FLOAT64] = { "float64", 8 },   [TUNDISH_STRING] = { "string", 0 },
};

static bool
is_known(tundish_dtype dtype)
{
    return dtype >= TUNDISH_BOOL && dtype <= TUNDISH_STRING;
}

const char *
tnd_dtype_name(tundish_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].name : "?";
}

tundish_dtype
tnd_dtype_by_name(const char *name)
{
    for (unsigned i = TUNDISH_BOOL; i <= TUNDISH_STRING; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (tundish_dtype)i;
    return (tundish_dtype)0;
}

size_t
tnd_dtype_bytes(tundish_dtype dtype)
{
    return is_known(dtype) ? dtypes[dtype].bytes : 0;
}

bool
tnd_dtype_is_integer(tundish_dtype dtype)
{
    return dtype >= TUNDISH_UINT8 && dtype <= TUNDISH_INT64;
}

bool
tnd_dtype_is_float(tundish_dtype dtype)
{
    return dtype >= TUNDISH_FLOAT16 && dtype <= TUNDISH_FLOAT64;
}
