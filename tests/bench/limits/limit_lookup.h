/* limit_lookup.h - terms of at most 8 bytes to their lines, in one cache line each. */
#ifndef LIMIT_LOOKUP_H
#define LIMIT_LOOKUP_H

#include <stdint.h>

struct lookup {
    struct lookup_entry {
        uint64_t key;
        int64_t id; /* from 1; 0 is an empty place and every other term */
    } * entries;
    uint64_t mask;
};

/* The lines of a file, numbered from 1. Ends the program if it cannot be read. */
struct lookup lookup_load(const char *path);

static inline const struct lookup_entry *
lookup_home(const struct lookup *lookup, uint64_t key)
{
    uint64_t mixed = key * UINT64_C(0x9E3779B97F4A7C15);

    return &lookup->entries[(mixed ^ (mixed >> 32)) & lookup->mask];
}

static inline int64_t
lookup_find(const struct lookup *lookup, uint64_t key)
{
    const struct lookup_entry *entry = lookup_home(lookup, key);

    while (entry->id != 0 && entry->key != key)
        entry = &lookup->entries[(uint64_t)(entry - lookup->entries + 1) & lookup->mask];
    return entry->id;
}

#endif
