/* limit_lookup.c - load a vocabulary of short terms. */
#include "limit_lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { LINE_BYTES = 256 };

static void
put(struct lookup *lookup, const char *line, int64_t id)
{
    uint64_t key = 0;
    struct lookup_entry *entry;

    memcpy(&key, line, strnlen(line, sizeof(key)));
    entry = &lookup->entries[lookup_home(lookup, key) - lookup->entries];
    while (entry->id != 0)
        entry = &lookup->entries[(uint64_t)(entry - lookup->entries + 1) & lookup->mask];
    *entry = (struct lookup_entry){ key, id };
}

struct lookup
lookup_load(const char *path)
{
    struct lookup lookup = { .mask = 15 };
    char line[LINE_BYTES];
    uint64_t count = 0;
    int64_t id = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof(line), file) != NULL)
        count++;
    rewind(file);
    while (lookup.mask < 2 * count)
        lookup.mask = 2 * lookup.mask + 1;
    lookup.entries = tnd_zalloc(lookup.mask + 1, sizeof(*lookup.entries));
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        put(&lookup, line, ++id);
    }
    fclose(file);
    return lookup;
}
