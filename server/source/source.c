/* source.c - the table of sources. */
#include "source/source.h"

#include <string.h>

#define READER(name, ...) extern const struct source_ops source_##name;
#define PLANNED_READER(name) READER(name, )
#include "spec/stages.def"

static const struct source_ops *const table[] = {
#define READER(name, ...) &source_##name,
#define PLANNED_READER(name) READER(name, )
#include "spec/stages.def"
};

const struct source_ops *
source_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}
