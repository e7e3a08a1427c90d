/* dtype.h - names and sizes of element types. */
#ifndef TND_CORE_DTYPE_H
#define TND_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "tundish/tundish.h"

/* "int64" and so on; "?" for a number that is none. */
const char *tnd_dtype_name(tundish_dtype dtype);

/* The dtype of a name, or 0. */
tundish_dtype tnd_dtype_by_name(const char *name);

/* Bytes of one value; 0 for string. */
size_t tnd_dtype_bytes(tundish_dtype dtype);

bool tnd_dtype_is_integer(tundish_dtype dtype); /* signed or unsigned, not bool */
bool tnd_dtype_is_float(tundish_dtype dtype);   /* also the 16-bit ones */

#endif
