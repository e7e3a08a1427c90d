/* record_builder.h - tf.train.Examples written by hand, whole or broken. */
#ifndef TESTS_CONTENT_RECORD_BUILDER_H
#define TESTS_CONTENT_RECORD_BUILDER_H

#include <stdint.h>
#include <string.h>

struct record {
    uint8_t bytes[4096];
    size_t size;
};

static inline void
put(struct record *record, const void *bytes, size_t size)
{
    memcpy(record->bytes + record->size, bytes, size);
    record->size += size;
}

static inline void
put_varint(struct record *record, uint64_t value)
{
    for (; value > 127; value >>= 7)
        put(record, &(uint8_t){ (uint8_t)(value | 128) }, 1);
    put(record, &(uint8_t){ (uint8_t)value }, 1);
}

/* A field of bytes: its tag, its length, the bytes. */
static inline void
put_field(struct record *record, uint8_t tag, const void *bytes, size_t size)
{
    put(record, &tag, 1);
    put_varint(record, size);
    put(record, bytes, size);
}

/* A map entry for a feature that is written already. */
static inline void
put_feature(struct record *features, const char *key, const struct record *feature)
{
    struct record entry = { 0 };

    put_field(&entry, 0x0a, key, strlen(key));
    put_field(&entry, 0x12, feature->bytes, feature->size);
    put_field(features, 0x0a, entry.bytes, entry.size);
}

static inline void
put_int64s(struct record *features, const char *key, const int64_t *values, size_t count,
           int is_packed)
{
    struct record run = { 0 }, list = { 0 }, feature = { 0 };

    for (size_t i = 0; i < count; i++) {
        if (!is_packed)
            put(&list, &(uint8_t){ 0x08 }, 1);
        put_varint(is_packed ? &run : &list, (uint64_t)values[i]);
    }
    if (is_packed && count > 0)
        put_field(&list, 0x0a, run.bytes, run.size);
    put_field(&feature, 0x1a, list.bytes, list.size);
    put_feature(features, key, &feature);
}

static inline void
put_floats(struct record *features, const char *key, const float *values, size_t count,
           int is_packed)
{
    struct record list = { 0 }, feature = { 0 };

    for (size_t i = 0; i < count && !is_packed; i++) {
        put(&list, &(uint8_t){ 0x0d }, 1);
        put(&list, &values[i], 4);
    }
    if (is_packed)
        put_field(&list, 0x0a, values, 4 * count);
    put_field(&feature, 0x12, list.bytes, list.size);
    put_feature(features, key, &feature);
}

static inline void
put_string(struct record *features, const char *key, const char *value)
{
    struct record list = { 0 }, feature = { 0 };

    put_field(&list, 0x0a, value, strlen(value));
    put_field(&feature, 0x0a, list.bytes, list.size);
    put_feature(features, key, &feature);
}

/* The Example around its features. */
static inline struct record
whole(const struct record *features)
{
    struct record record = { 0 };

    put_field(&record, 0x0a, features->bytes, features->size);
    return record;
}

#endif
