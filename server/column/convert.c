/* convert.c - values in another dtype. */
#include "column/convert.h"

#include <string.h>

#include "column/array_loops.h"
#include "core/bytes.h"

bool
convert_is_possible(tundish_dtype from, tundish_dtype to)
{
    return from == to || array_convert_loop(from, to) != NULL;
}

void
convert_values(tundish_dtype to, void *out, tundish_dtype from, const void *in, size_t count)
{
    size_t bytes = from == TUNDISH_STRING ? sizeof(struct byte_view) : tnd_dtype_bytes(from);

    if (from == to)
        memmove(out, in, count * bytes);
    else
        array_convert_loop(from, to)(out, in, count);
}

const void *
convert_column(tundish_dtype to, tundish_dtype from, const struct column *column,
               struct scratch *scratch)
{
    void *values;

    if (from == to)
        return column->values;
    values = scratch_array(scratch, (size_t)column->value_count, tnd_dtype_bytes(to));
    convert_values(to, values, from, column->values, (size_t)column->value_count);
    return values;
}
