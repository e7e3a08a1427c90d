/* example.c - names, places for values, and the guessing parser. */
#include "parse/example.h"

#include <stdlib.h>
#include <string.h>

#include "parse/example_parsing.h"
#include "core/memory.h"

enum { LEARNED_MAX = 192, LEARNED_SLOTS = 512 };

/* --- Names ---------------------------------------------------------------------------------- */

/* The first words of `size` bytes that have 16 readable bytes behind their begin. */
static inline struct name_words
name_words(const uint8_t *bytes, uint64_t size)
{
    static const uint64_t masks[9] = { 0,          0xff,         0xffff,         0xffffff,
                                       0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
                                       ~0ul };

    return (struct name_words){
        .low = load_u64(bytes) & masks[size < 8 ? size : 8],
        .high = size <= 8 ? 0 : load_u64(bytes + 8) & masks[size < 16 ? size - 8 : 8]
    };
}

static inline uint64_t
name_hash(struct name_words words, const uint8_t *bytes, uint64_t size)
{
    uint64_t tail = size > 16 ? load_u64(bytes + size - 8) : 0;
    uint64_t hash = (words.low ^ size) * UINT64_C(0x9E3779B97F4A7C15);

    hash = (hash ^ (hash >> 32) ^ words.high) * UINT64_C(0xD6E8FEB86659FD93);
    hash = (hash ^ (hash >> 32) ^ tail) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

static inline bool
is_name(const struct known_name *known, struct name_words words, const uint8_t *bytes,
        uint64_t size)
{
    return known->words.low == words.low && known->size == size &&
           known->words.high == words.high &&
           (size <= 16 || memcmp(known->bytes + 16, bytes + 16, size - 16) == 0);
}

static int32_t
find_feature(const struct example_parser *parser, struct name_words words, uint64_t hash,
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

    /* A name may be the last thing in a record: only here is it not taken for granted that there
     * are bytes behind it. */
    if (name.size > 0)
        memcpy(padded, name.data, name.size < 16 ? name.size : 16);
    words = name_words(padded, name.size);
    return find_feature(parser, words, name_hash(words, name.data, name.size), name.data,
                        name.size);
}

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
    for (uint32_t f = 0; f < parser->count; f++) {
        struct example_feature *feature = &parser->features[f];

        if (feature->fallback != NULL && feature->dtype == TUNDISH_STRING)
            for (int64_t i = 0; i < feature->value_count; i++)
                free((void *)(uintptr_t)((struct byte_view *)feature->fallback)[i].data);
        free(feature->fallback);
        free(feature->name);
        free(feature->shape_text);
    }
    free(parser->features);
    free(parser->words);
    free(parser->first);
    free(parser->same);
    free(parser->lists);
    free(parser->slots);
    free(parser->required);
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

int32_t
example_parser_next(const struct example_parser *parser, int32_t feature)
{
    return parser->same[feature];
}

/* --- Values --------------------------------------------------------------------------------- */

size_t
example_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING  ? sizeof(struct byte_view)
           : dtype == TUNDISH_INT64 ? sizeof(int64_t)
                                    : sizeof(float);
}

void *
example_place(const struct parsing *parsing, uint32_t f)
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

/* Make room for `more` values of a list. */
static void
reserve(struct parsing *parsing, uint32_t f, int64_t used, int64_t more)
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

/* A list of so many bytes has no more values. */
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

    reserve(parsing, f, used, list_bound(feature->dtype, end - at));
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
    void *to = example_place(parsing, f);

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

/* --- The guessing parser -------------------------------------------------------------------- */

static uint8_t
kind_tag(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING  ? TAG_BYTES_LIST
           : dtype == TUNDISH_INT64 ? TAG_INT64_LIST
                                    : TAG_FLOAT_LIST;
}

/* A name that was not guessed: find it, learn it if it is not wanted, and expect it next time. */
static uint32_t __attribute__((noinline))
look_up(struct parsing *parsing, uint32_t previous, struct name_words words, const uint8_t *bytes,
        uint64_t size)
{
    uint64_t hash = name_hash(words, bytes, size);
    int32_t feature = find_feature(parsing->parser, words, hash, bytes, size);
    uint32_t *learned = &parsing->learned[hash >> 16 & (LEARNED_SLOTS - 1)];
    uint32_t found;

    if (feature != NOBODY) {
        found = (uint32_t)feature;
    } else if (*learned != 0 && is_name(&parsing->known[*learned], words, bytes, size)) {
        found = *learned;
    } else {
        found = parsing->known_count;
        if (found == parsing->parser->count + 1 + LEARNED_MAX)
            found = parsing->parser->count + 1 + (uint32_t)(hash >> 40) % LEARNED_MAX;
        else
            parsing->known_count++;
        parsing->known[found] = (struct known_name){ .words = words,
                                                     .bytes = bytes,
                                                     .size = (uint32_t)size,
                                                     .feature = NOBODY,
                                                     .next = previous };
        *learned = found;
    }
    parsing->known[previous].next = found;
    return found;
}

/* The value of an int64 list with one value and nothing else, in all of [at, end). */
static inline bool
one_int64(const uint8_t *at, const uint8_t *end, int64_t *ret_value)
{
    uint64_t value;
    int64_t bytes = end - at;

    if (bytes < 4 || bytes > 13 || at[0] != TAG_INT64_LIST || at[1] != bytes - 2)
        return false;
    if (at[2] == TAG_PACKED && at[3] == bytes - 4)
        at += 4;
    else if (at[2] == TAG_INT64)
        at += 3;
    else
        return false;
    if (wire_varint(at, end, &value) != end)
        return false;
    *ret_value = (int64_t)value;
    return true;
}

static inline bool
one_float(const uint8_t *at, const uint8_t *end, float *ret_value)
{
    enum { PACKED = TAG_FLOAT_LIST | 6 << 8 | TAG_PACKED << 16 | 4 << 24 };

    if (end - at != 8 || load_u32(at) != PACKED)
        return false;
    memcpy(ret_value, at + 4, sizeof *ret_value);
    return true;
}

static inline bool
one_string(const uint8_t *at, const uint8_t *end, struct byte_view *ret_value)
{
    int64_t bytes = end - at;

    if (bytes < 4 || bytes > 127 || at[0] != TAG_BYTES_LIST || at[1] != bytes - 2 ||
        at[2] != TAG_BYTES || at[3] != bytes - 4)
        return false;
    *ret_value = (struct byte_view){ at + 4, (uint64_t)(bytes - 4) };
    return true;
}

/* Store the feature in [at, end), which is not empty. */
static inline bool
guess_values(struct parsing *parsing, uint32_t f, const uint8_t *at, const uint8_t *end)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    void *values = parsing->values[f].values;
    int64_t count;

    if (!feature->is_list && feature->value_count == 1) {
        if (feature->dtype == TUNDISH_INT64 && one_int64(at, end, (int64_t *)values + parsing->row))
            return true;
        if (feature->dtype == TUNDISH_STRING &&
            one_string(at, end, (struct byte_view *)values + parsing->row))
            return true;
        if (feature->dtype == TUNDISH_FLOAT32 && one_float(at, end, (float *)values + parsing->row))
            return true;
    }
    if (*at != kind_tag(feature->dtype))
        return false;
    if (feature->is_list)
        return example_take_list(parsing, f, at + 1, end);
    return example_read_list(feature->dtype, at + 1, end, example_place(parsing, f),
                             feature->value_count, &count) &&
           count == feature->value_count;
}

/* All features that want the name at [at, end). False: not a plain case. */
static inline bool
guess_feature(struct parsing *parsing, int32_t f, const uint8_t *at, const uint8_t *end)
{
    for (; f != NOBODY; f = parsing->parser->same[f]) {
        uint64_t *seen = &parsing->seen[f / 64];
        uint64_t bit = UINT64_C(1) << f % 64;

        if (*seen & bit)
            return false;
        if (at == end) {
            /* No kind: it counts as missing, and as met only where that ends a list. */
            if (parsing->input->is_batch && parsing->parser->features[f].is_list)
                *seen |= bit;
            continue;
        }
        *seen |= bit;
        if (!guess_values(parsing, (uint32_t)f, at, end))
            return false;
    }
    return true;
}

/* One entry of the map, behind its tag, key before value. Returns its end, or NULL: not a plain
 * case. Records have readable bytes behind them, so tags and names need no check before a load. */
static inline const uint8_t *
guess_entry(struct parsing *parsing, const uint8_t *at, const uint8_t *end, uint32_t *previous)
{
    const struct known_name *known;
    const uint8_t *key, *entry_end;
    uint32_t guess = parsing->known[*previous].next;
    uint32_t length, key_bytes;
    struct name_words words;

    at = wire_length(at, end, &length);
    if (at == NULL || length > (size_t)(end - at))
        return NULL;
    entry_end = at + length;
    if (length < 4 || at[0] != TAG_KEY || at[1] >= 0x80)
        return NULL;
    key_bytes = at[1];
    key = at + 2;
    if (key_bytes + 4 > length || key[key_bytes] != TAG_VALUE)
        return NULL;
    words = name_words(key, key_bytes);
    known = &parsing->known[guess];
    if (!is_name(known, words, key, key_bytes)) {
        /* Is only the one between missing? Then the guess stands. */
        guess = known->next;
        known = &parsing->known[guess];
        if (!is_name(known, words, key, key_bytes)) {
            guess = look_up(parsing, *previous, words, key, key_bytes);
            known = &parsing->known[guess];
        }
    }
    *previous = guess;
    at = wire_length(key + key_bytes + 1, entry_end, &length);
    if (at == NULL || length != (size_t)(entry_end - at))
        return NULL;
    if (known->feature != NOBODY && !guess_feature(parsing, known->feature, at, entry_end))
        return NULL;
    return entry_end;
}

static bool
guess_missing(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;

    for (uint32_t w = 0; w < parser->seen_words; w++)
        for (uint64_t missing = parser->required[w] & ~parsing->seen[w]; missing != 0;
             missing &= missing - 1) {
            uint32_t f = 64 * w + (uint32_t)__builtin_ctzll(missing);

            if (parser->features[f].fallback == NULL)
                return false;
            example_take_fallback(parsing, f);
        }
    return true;
}

static bool
guess_record(struct parsing *parsing, struct byte_view record)
{
    const struct example_parser *parser = parsing->parser;
    const uint8_t *at = record.data;
    const uint8_t *end = record.data + record.size;
    uint32_t previous = parser->count;
    uint32_t length;

    for (uint32_t w = 0; w < parser->seen_words; w++)
        parsing->seen[w] = 0;
    for (uint32_t i = 0; i < parser->list_count; i++) {
        int64_t *splits = parsing->values[parser->lists[i]].splits;

        splits[parsing->row + 1] = splits[parsing->row];
    }
    if (record.size > 0) {
        if (*at != TAG_FEATURES)
            return false;
        at = wire_length(at + 1, end, &length);
        if (at == NULL || length != (size_t)(end - at))
            return false;
    }
    while (at < end) {
        if (*at != TAG_ENTRY)
            return false;
        at = guess_entry(parsing, at + 1, end, &previous);
        if (at == NULL)
            return false;
    }
    return guess_missing(parsing);
}

/* --- All records ---------------------------------------------------------------------------- */

/* Features are known in the order they were asked for; behind them stands the place before the
 * first one, whose name matches nothing. */
static void
know_features(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;
    struct scratch *scratch = parsing->frame->scratch;

    parsing->known =
        scratch_array(scratch, parser->count + 1 + LEARNED_MAX, sizeof *parsing->known);
    parsing->known_count = parser->count + 1;
    parsing->learned = scratch_array(scratch, LEARNED_SLOTS, sizeof *parsing->learned);
    memset(parsing->learned, 0, LEARNED_SLOTS * sizeof *parsing->learned);
    for (uint32_t f = 0; f < parser->count; f++)
        parsing->known[f] = (struct known_name){
            .words = parser->words[f],
            .bytes = (const uint8_t *)parser->features[f].name,
            .size = (uint32_t)parser->features[f].name_bytes,
            .feature = parser->first[f],
            .next = f + 1 < parser->count ? f + 1 : 0,
        };
    parsing->known[parser->count] =
        (struct known_name){ .size = UINT32_MAX, .feature = NOBODY, .next = 0 };
}

static struct parsing
begin(const struct example_parser *parser, const struct example_input *input, struct frame *frame,
      struct example_values *values)
{
    struct parsing parsing = { .parser = parser, .input = input, .frame = frame, .values = values };

    parsing.seen = scratch_array(frame->scratch, parser->seen_words, sizeof *parsing.seen);
    for (uint32_t i = 0; i < parser->list_count; i++) {
        struct example_values *list = &values[parser->lists[i]];

        *list = (struct example_values){ 0 };
        list->splits =
            scratch_array(frame->scratch, (size_t)input->count + 1, sizeof *list->splits);
        list->splits[0] = 0;
        reserve(&parsing, parser->lists[i], 0, input->count);
    }
    return parsing;
}

void
example_parse(const struct example_parser *parser, const struct example_input *input,
              struct frame *frame, struct example_values *values)
{
    struct parsing parsing = begin(parser, input, frame, values);

    know_features(&parsing);
    for (int64_t i = 0; i < input->count; i++) {
        parsing.row = i;
        if (!guess_record(&parsing, input->records[i]))
            example_read_plainly(&parsing, input->records[i]);
    }
}

void
example_parse_plainly(const struct example_parser *parser, const struct example_input *input,
                      struct frame *frame, struct example_values *values)
{
    struct parsing parsing = begin(parser, input, frame, values);

    for (int64_t i = 0; i < input->count; i++) {
        parsing.row = i;
        example_read_plainly(&parsing, input->records[i]);
    }
}
