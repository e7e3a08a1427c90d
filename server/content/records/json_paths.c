/* json_paths.c - a table of all beginnings of the features' names, open-addressed and at most half
 * full. */
#include "content/records/json_paths.h"

#include <stdlib.h>
#include <string.h>

#include "content/records/example_parsing.h"
#include "core/memory.h"

struct json_path {
    struct byte_view path;
    int32_t feature; /* the first below it */
};

struct json_paths {
    uint32_t count, slot_mask;
    uint64_t hints; /* bits of likely paths; most others are told by them */
    struct json_path *list;
    int32_t *slots; /* index in `list`, or NOBODY */
};

static uint64_t
hint(struct byte_view path)
{
    return UINT64_C(1) << ((path.size + (path.size > 0 ? path.data[0] : 0u)) % 64);
}

/* Where a path is, or the free slot where it would be. */
static int32_t *
find_slot(const struct json_paths *paths, struct byte_view path)
{
    uint8_t padded[16] = { 0 };
    struct name_words words;
    uint64_t slot;

    memcpy(padded, path.data, path.size < 16 ? path.size : 16);
    words = name_words(padded, path.size);
    for (slot = name_hash(words, path.data, path.size);; slot++) {
        int32_t *index = &paths->slots[slot & paths->slot_mask];

        if (*index == NOBODY || bytes_are_equal(paths->list[*index].path, path))
            return index;
    }
}

static void
add_beginnings(struct json_paths *paths, const struct example_feature *feature, int32_t index)
{
    for (size_t i = 0; i < feature->name_bytes; i++) {
        struct byte_view path = { (const uint8_t *)feature->name, i };
        int32_t *slot;

        if (feature->name[i] != '.')
            continue;
        slot = find_slot(paths, path);
        if (*slot != NOBODY)
            continue;
        paths->list[paths->count] = (struct json_path){ path, index };
        *slot = (int32_t)paths->count++;
        paths->hints |= hint(path);
    }
}

struct json_paths *
json_paths_open(const struct example_feature *features, uint32_t count)
{
    struct json_paths *paths;
    size_t most = 0, slots = 8;

    for (uint32_t f = 0; f < count; f++)
        for (size_t i = 0; i < features[f].name_bytes; i++)
            most += features[f].name[i] == '.';
    if (most == 0 || most > INT32_MAX / 4)
        return NULL;
    while (slots < 2 * most)
        slots *= 2;
    paths = tnd_zalloc(1, sizeof *paths);
    paths->list = tnd_alloc(most * sizeof *paths->list);
    paths->slots = tnd_alloc(slots * sizeof *paths->slots);
    paths->slot_mask = (uint32_t)slots - 1;
    memset(paths->slots, 0xff, slots * sizeof *paths->slots);
    for (uint32_t f = 0; f < count; f++)
        add_beginnings(paths, &features[f], (int32_t)f);
    return paths;
}

void
json_paths_close(struct json_paths *paths)
{
    if (paths == NULL)
        return;
    free(paths->list);
    free(paths->slots);
    free(paths);
}

uint32_t
json_paths_count(const struct json_paths *paths)
{
    return paths == NULL ? 0 : paths->count;
}

int32_t
json_paths_find(const struct json_paths *paths, struct byte_view path)
{
    return paths == NULL || (paths->hints & hint(path)) == 0 ? NOBODY : *find_slot(paths, path);
}

int32_t
json_paths_feature(const struct json_paths *paths, uint32_t path)
{
    return paths->list[path].feature;
}
