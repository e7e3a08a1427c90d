/* quantity.c - numbers with a unit. */
#include "spec/quantity.h"

#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit durations[] = {
    { "ns", 1 },       { "us", 1e3 },       { "ms", 1e6 }, { "s", 1e9 },
    { "m", 60 * 1e9 }, { "h", 3600 * 1e9 }, { NULL, 0 },
};

static const struct unit sizes[] = {
    { "KiB", 1024 },
    { "MiB", 1024.0 * 1024 },
    { "GiB", 1024.0 * 1024 * 1024 },
    { "TiB", 1024.0 * 1024 * 1024 * 1024 },
    { "kB", 1e3 },
    { "MB", 1e6 },
    { "GB", 1e9 },
    { "TB", 1e12 },
    { NULL, 0 },
};

/* 2^62, well below the limit of an int64, so that sums of a few of them do not overflow. */
static const double quantity_max = 4611686018427387904.0;

static bool
scaled(const struct spec_value *value, const struct unit *units, uint64_t *ret_amount)
{
    char *unit;
    double number;

    /* strtod alone would take "inf", "nan", signs and blanks. */
    if (value->kind != SPEC_TEXT || strspn(value->text, "0123456789.") == 0)
        return false;
    number = strtod(value->text, &unit);
    for (; units->name != NULL; units++)
        if (strcmp(units->name, unit) == 0)
            break;
    /* Written so that NaN is refused too. */
    if (units->name == NULL || !(number * units->factor <= quantity_max))
        return false;
    *ret_amount = (uint64_t)(number * units->factor);
    return true;
}

bool
quantity_duration_ns(const struct spec_value *value, int64_t *ret_ns)
{
    uint64_t ns;

    if (!scaled(value, durations, &ns))
        return false;
    if (ret_ns != NULL)
        *ret_ns = (int64_t)ns;
    return true;
}

bool
quantity_bytes(const struct spec_value *value, uint64_t *ret_bytes)
{
    uint64_t bytes;

    if (value->kind == SPEC_INTEGER && value->integer > 0 && value->number <= quantity_max)
        bytes = (uint64_t)value->integer;
    else if (!scaled(value, sizes, &bytes) || bytes == 0)
        return false;
    if (ret_bytes != NULL)
        *ret_bytes = bytes;
    return true;
}
