/* plural.h - the end of a noun that is counted. */
#ifndef TND_CORE_PLURAL_H
#define TND_CORE_PLURAL_H

#include <stdint.h>

static inline const char *
tnd_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
