/* example_wire.c - protobuf's wire format: varints, map entries and lists of values. */
#include "content/records/example_wire.h"

#include <string.h>

/* Up to ten bytes of seven bits. Bits beyond 64 are lost, as in protobuf. */
const uint8_t *
wire_varint_slow(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t byte;

        if (at >= end)
            return NULL;
        byte = *at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return at;
        }
    }
    return NULL;
}

/* The end of a message of `length` bytes at `at`. TensorFlow pushes a limit on its stream, where a
 * limit beyond the enclosing one (or beyond an int) has no effect. */
static const uint8_t *
limit(const uint8_t *at, const uint8_t *end, uint32_t length)
{
    return length <= INT32_MAX && length < (size_t)(end - at) ? at + length : end;
}

/* Read a length and that many bytes, which must all exist. */
static const uint8_t *
read_bytes(const uint8_t *at, const uint8_t *end, struct byte_view *ret_bytes)
{
    uint32_t length;

    at = wire_length(at, end, &length);
    if (at == NULL || length > (size_t)(end - at))
        return NULL;
    *ret_bytes = (struct byte_view){ at, length };
    return at + length;
}

/* Read a map entry: a key and a value, each once, in either order. */
static const uint8_t *
read_entry(const uint8_t *at, const uint8_t *end, struct example_entry *ret_entry)
{
    struct example_entry entry = { 0 };
    uint32_t length;

    at = wire_length(at, end, &length);
    if (at == NULL)
        return NULL;
    end = limit(at, end, length);
    for (int i = 0; i < 2; i++) {
        uint32_t tag;

        at = wire_length(at, end, &tag);
        if (at == NULL)
            return NULL;
        if (tag == TAG_KEY)
            at = read_bytes(at, end, &entry.key);
        else if (tag == TAG_VALUE)
            at = read_bytes(at, end, &entry.feature);
        else
            return NULL;
        if (at == NULL)
            return NULL;
    }
    *ret_entry = entry;
    return at == end ? at : NULL;
}

static const uint8_t *
read_features(const uint8_t *at, const uint8_t *end,
              void (*take)(void *context, struct example_entry entry), void *context)
{
    uint32_t length;

    at = wire_length(at, end, &length);
    if (at == NULL)
        return NULL;
    end = limit(at, end, length);
    while (at < end) {
        struct example_entry entry;

        if (*at++ != TAG_ENTRY)
            return NULL;
        at = read_entry(at, end, &entry);
        if (at == NULL)
            return NULL;
        take(context, entry);
    }
    return at;
}

/* Skip a field of Example other than `features`. As in TensorFlow, a length beyond the record ends
 * it; a length beyond an int is skipped by itself. */
static const uint8_t *
skip_field(const uint8_t *at, const uint8_t *end)
{
    uint32_t tag, length;
    uint64_t value;

    at = wire_length(at, end, &tag);
    if (at == NULL)
        return NULL;
    switch (tag & 7) {
    case 0:
        return wire_varint(at, end, &value);
    case 1:
        return end - at >= 8 ? at + 8 : NULL;
    case 2:
        at = wire_length(at, end, &length);
        if (at == NULL || length > INT32_MAX)
            return at;
        return limit(at, end, length);
    case 5:
        return end - at >= 4 ? at + 4 : NULL;
    default:
        return NULL;
    }
}

bool
wire_entries(struct byte_view record, void (*take)(void *context, struct example_entry entry),
             void *context)
{
    const uint8_t *at = record.data;
    const uint8_t *end = record.data + record.size;

    while (at != NULL && at < end)
        at = *at == TAG_FEATURES ? read_features(at + 1, end, take, context) : skip_field(at, end);
    return at != NULL || record.size == 0;
}

/* Open a list: returns its first byte and sets its end. */
static const uint8_t *
open_list(const uint8_t *at, const uint8_t *end, const uint8_t **ret_end)
{
    uint32_t length;

    at = wire_length(at, end, &length);
    if (at != NULL)
        *ret_end = limit(at, end, length);
    return at;
}

bool
wire_int64_list(const uint8_t *at, const uint8_t *end, int64_t *values, int64_t capacity,
                int64_t *ret_count)
{
    int64_t count = 0;
    bool packed;

    at = open_list(at, end, &end);
    if (at == NULL)
        return false;
    packed = at < end && *at == TAG_PACKED;
    if (packed && (at = open_list(at + 1, end, &end)) == NULL)
        return false;
    while (at < end) {
        uint64_t value;

        if (!packed && *at++ != TAG_INT64)
            return false;
        at = wire_varint(at, end, &value);
        if (at == NULL)
            return false;
        if (count < capacity)
            values[count] = (int64_t)value;
        count++;
    }
    *ret_count = count;
    return true;
}

/* Read packed floats. Up to three extra bytes at the end are ignored, but a run that is cut short
 * is an error, as in TensorFlow. */
static bool
packed_floats(const uint8_t *at, const uint8_t *end, float *values, int64_t capacity,
              int64_t *ret_count)
{
    uint32_t length;
    int64_t count;

    at = wire_length(at, end, &length);
    if (at == NULL)
        return false;
    count = length / sizeof(float);
    if ((size_t)(end - at) / sizeof(float) < (size_t)count)
        return false;
    if (capacity > 0 && count > 0)
        memcpy(values, at, (size_t)(count < capacity ? count : capacity) * sizeof(float));
    *ret_count = count;
    return true;
}

bool
wire_float_list(const uint8_t *at, const uint8_t *end, float *values, int64_t capacity,
                int64_t *ret_count)
{
    int64_t count = 0;

    at = open_list(at, end, &end);
    if (at == NULL)
        return false;
    if (at < end && *at == TAG_PACKED)
        return packed_floats(at + 1, end, values, capacity, ret_count);
    for (; at < end; at += 1 + sizeof(float)) {
        if (*at != TAG_FLOAT || (size_t)(end - at) < 1 + sizeof(float))
            return false;
        if (count < capacity)
            memcpy(&values[count], at + 1, sizeof(float));
        count++;
    }
    *ret_count = count;
    return true;
}

bool
wire_bytes_list(const uint8_t *at, const uint8_t *end, struct byte_view *values, int64_t capacity,
                int64_t *ret_count)
{
    int64_t count = 0;

    at = open_list(at, end, &end);
    if (at == NULL)
        return false;
    while (at < end) {
        struct byte_view value;

        if (*at++ != TAG_BYTES)
            return false;
        at = read_bytes(at, end, &value);
        if (at == NULL)
            return false;
        if (count < capacity)
            values[count] = value;
        count++;
    }
    *ret_count = count;
    return true;
}
