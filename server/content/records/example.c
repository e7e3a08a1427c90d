/* example.c - find features by name, and where their values go. */
#include "content/records/example.h"

#include <stdlib.h>
#include <string.h>

#include "content/records/example_parsing.h"
#include "content/records/json_paths.h"
#include "core/memory.h"

int32_t
example_find_feature(const struct example_parser *parser, struct name_words words, uint64_t hash,
                     const uint8_t *bytes, uint64_t size)
{
    for (uint64_t slot = hash & parser->slot_mask;; slot = (slot + 1) & parser->slot_mask) {
        int32_t index = parser->slots[slot];
        const struct example_feature *feature;

        if (index == NOBODY)
            return NOBODY;
        feature = &parser->features[index];
        if (parser->words[index].low == words.low && feature->name_bytes == size &&
            memcmp(feature->name, bytes, size) == 0)
            return index;
    }
}

int32_t
example_parser_find(const struct example_parser *parser, struct byte_view name)
{
    uint8_t padded[32] = { 0 };
    struct name_words words;

    /* Copy the name: elsewhere readable bytes follow every record, but this name may come from
     * anywhere. */
    if (name.size > 0)
        memcpy(padded, name.data, name.size < 16 ? name.size : 16);
    words = name_words(padded, name.size);
    return example_find_feature(parser, words, name_hash(words, name.data, name.size), name.data,
                                name.size);
}

/* Build an open-addressed table of names, at most half full. Features with the same name are
 * chained; the first is in the table. */
static void
index_names(struct example_parser *parser)
{
    uint32_t slots = 8;

    while (slots < 2 * parser->count)
        slots *= 2;
    parser->slot_mask = slots - 1;
    parser->slots = tnd_alloc(slots * sizeof *parser->slots);
    memset(parser->slots, 0xff, slots * sizeof *parser->slots);
    for (uint32_t f = 0; f < parser->count; f++) {
        struct example_feature *feature = &parser->features[f];
        struct byte_view name = { (const uint8_t *)feature->name, feature->name_bytes };
        int32_t first = example_parser_find(parser, name);
        uint8_t padded[16] = { 0 };
        uint64_t slot;

        memcpy(padded, name.data, name.size < 16 ? name.size : 16);
        parser->words[f] = name_words(padded, name.size);
        parser->first[f] = first == NOBODY ? (int32_t)f : first;
        parser->same[f] = NOBODY;
        if (first != NOBODY) {
            parser->same[f] = parser->same[first];
            parser->same[first] = (int32_t)f;
            continue;
        }
        slot = name_hash(parser->words[f], name.data, name.size);
        while (parser->slots[slot & parser->slot_mask] != NOBODY)
            slot++;
        parser->slots[slot & parser->slot_mask] = (int32_t)f;
    }
}

struct example_parser *
example_parser_open(struct example_feature *features, uint32_t count)
{
    struct example_parser *parser = tnd_zalloc(1, sizeof *parser);

    parser->count = count;
    parser->features = features;
    parser->words = tnd_zalloc(count, sizeof *parser->words);
    parser->first = tnd_zalloc(count, sizeof *parser->first);
    parser->same = tnd_zalloc(count, sizeof *parser->same);
    parser->lists = tnd_zalloc(count, sizeof *parser->lists);
    parser->seen_words = (count + 63) / 64;
    parser->required = tnd_zalloc(parser->seen_words, sizeof *parser->required);
    index_names(parser);
    parser->paths = json_paths_open(features, count);
    parser->known = example_known_names(parser);
    example_singles_open(parser);
    for (uint32_t f = 0; f < count; f++) {
        if (features[f].is_list)
            parser->lists[parser->list_count++] = f;
        else
            parser->required[f / 64] |= UINT64_C(1) << f % 64;
    }
    return parser;
}

void
example_parser_close(struct example_parser *parser)
{
    if (parser == NULL)
        return;
    example_singles_close(parser);
    json_paths_close(parser->paths);
    for (uint32_t f = 0; f < parser->count; f++) {
        struct example_feature *feature = &parser->features[f];

        if (feature->fallback != NULL && feature->dtype == TUNDISH_STRING)
            for (int64_t i = 0; i < feature->value_count; i++)
                free((void *)(uintptr_t)((struct byte_view *)feature->fallback)[i].data);
        free(feature->fallback);
        free(feature->name);
        free(feature->shape);
        free(feature->features_shape_text);
    }
    free(parser->features);
    free(parser->words);
    free(parser->first);
    free(parser->same);
    free(parser->lists);
    free(parser->slots);
    free(parser->required);
    free(parser->known);
    free(parser);
}

const struct example_feature *
example_parser_feature(const struct example_parser *parser, uint32_t index)
{
    return &parser->features[index];
}

uint32_t
example_parser_count(const struct example_parser *parser)
{
    return parser->count;
}

const struct json_paths *
example_parser_paths(const struct example_parser *parser)
{
    return parser->paths;
}

size_t
example_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING  ? sizeof(struct byte_view)
           : dtype == TUNDISH_INT64 ? sizeof(int64_t)
                                    : sizeof(float);
}

void *
example_target(const struct parsing *parsing, uint32_t f)
{
    const struct example_feature *feature = &parsing->parser->features[f];

    return (uint8_t *)parsing->values[f].values +
           (size_t)(parsing->row * feature->value_count) * example_value_bytes(feature->dtype);
}

bool
example_read_list(tundish_dtype dtype, const uint8_t *at, const uint8_t *end, void *values,
                  int64_t capacity, int64_t *ret_count)
{
    switch (dtype) {
    case TUNDISH_INT64:
        return wire_int64_list(at, end, values, capacity, ret_count);
    case TUNDISH_FLOAT32:
        return wire_float_list(at, end, values, capacity, ret_count);
    default:
        return wire_bytes_list(at, end, values, capacity, ret_count);
    }
}

void
example_reserve(struct parsing *parsing, uint32_t f, int64_t used, int64_t more)
{
    struct example_values *list = &parsing->values[f];
    size_t bytes = example_value_bytes(parsing->parser->features[f].dtype);
    void *old = list->values;

    if (list->capacity - used >= more)
        return;
    list->capacity = 2 * list->capacity > used + more ? 2 * list->capacity : used + more + 64;
    list->values = scratch_array(parsing->frame->scratch, (size_t)list->capacity, bytes);
    if (used > 0)
        memcpy(list->values, old, (size_t)used * bytes);
}

/* An upper bound of the values in a list, by its bytes. An int64 takes at least one byte, a
 * float four, a text two. */
static int64_t
list_bound(tundish_dtype dtype, int64_t bytes)
{
    return dtype == TUNDISH_INT64 ? bytes : dtype == TUNDISH_FLOAT32 ? bytes / 4 : bytes / 2;
}

bool
example_take_list(struct parsing *parsing, uint32_t f, const uint8_t *at, const uint8_t *end)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    struct example_values *list = &parsing->values[f];
    int64_t used = list->splits[parsing->row];
    int64_t count;
    uint8_t *free_values;

    example_reserve(parsing, f, used, list_bound(feature->dtype, end - at));
    free_values = (uint8_t *)list->values + (size_t)used * example_value_bytes(feature->dtype);
    if (!example_read_list(feature->dtype, at, end, free_values, list->capacity - used, &count))
        return false;
    list->splits[parsing->row + 1] = used + count;
    return feature->value_count == 1 || count % feature->value_count == 0;
}

void
example_take_fallback(struct parsing *parsing, uint32_t f)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    void *to = example_target(parsing, f);

    /* A store of constant size is much faster than a call for the usual single value. */
    if (feature->value_count != 1)
        memcpy(to, feature->fallback,
               (size_t)feature->value_count * example_value_bytes(feature->dtype));
    else if (feature->dtype == TUNDISH_STRING)
        *(struct byte_view *)to = *(const struct byte_view *)feature->fallback;
    else if (feature->dtype == TUNDISH_INT64)
        *(int64_t *)to = *(const int64_t *)feature->fallback;
    else
        *(float *)to = *(const float *)feature->fallback;
}
