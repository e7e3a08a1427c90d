/* example_wire.h - the wire format of tf.train.Example, read as TensorFlow's own parser reads it.
 *
 * That parser is not protobuf's, and where they differ it is followed: a length that reaches beyond
 * what surrounds it is cut to fit, of a packed list only the first run counts, and a map entry must
 * hold exactly two fields. Every function stays within [at, end), whatever the bytes are; a NULL
 * result means that they cannot be read.
 */
#ifndef CONTENT_RECORDS_EXAMPLE_WIRE_H
#define CONTENT_RECORDS_EXAMPLE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"

/* Tags of the fields that matter, as single bytes. */
enum example_tag {
    TAG_FEATURES = 0x0a, /* Example.features */
    TAG_ENTRY = 0x0a,    /* Features.feature, a map entry */
    TAG_KEY = 0x0a,
    TAG_VALUE = 0x12,
    TAG_BYTES_LIST = 0x0a, /* Feature's kinds */
    TAG_FLOAT_LIST = 0x12,
    TAG_INT64_LIST = 0x1a,
    TAG_PACKED = 0x0a, /* a list's values: packed, or one by one */
    TAG_BYTES = 0x0a,
    TAG_FLOAT = 0x0d,
    TAG_INT64 = 0x08
};

const uint8_t *wire_varint_slow(const uint8_t *at, const uint8_t *end, uint64_t *ret_value);

/* A varint of at most ten bytes; what does not fit 64 bits is lost. */
static inline const uint8_t *
wire_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    if (at < end && *at < 0x80) {
        *ret_value = *at;
        return at + 1;
    }
    return wire_varint_slow(at, end, ret_value);
}

/* A length: the low 32 bits of a varint. */
static inline const uint8_t *
wire_length(const uint8_t *at, const uint8_t *end, uint32_t *ret_length)
{
    uint64_t value;

    at = wire_varint(at, end, &value);
    if (at != NULL)
        *ret_length = (uint32_t)value;
    return at;
}

/* One entry of the map. A missing value is an empty feature. */
struct example_entry {
    struct byte_view key, feature;
};

/* Call `take` for each entry of a record, in order; false if the record cannot be read. */
bool wire_entries(struct byte_view record, void (*take)(void *context, struct example_entry entry),
                  void *context);

/* The values of a list. [at, end) is the feature after its kind's tag. Stores at most `capacity`
 * values and returns in *ret_count how many there are; false if the list cannot be read. */
bool wire_int64_list(const uint8_t *at, const uint8_t *end, int64_t *values, int64_t capacity,
                     int64_t *ret_count);
bool wire_float_list(const uint8_t *at, const uint8_t *end, float *values, int64_t capacity,
                     int64_t *ret_count);
bool wire_bytes_list(const uint8_t *at, const uint8_t *end, struct byte_view *values,
                     int64_t capacity, int64_t *ret_count);

#endif
