/* source.c - the table of sources. */
#include "source/source.h"

#include <string.h>

#define SOURCE(name) extern const struct source_ops source_##name;
#include "source/stages.def"
#undef SOURCE

static const struct source_ops *const table[] = {
#define SOURCE(name) &source_##name,
#include "source/stages.def"
#undef SOURCE
};

const struct source_ops *
source_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
