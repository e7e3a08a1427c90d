/* clicklog_example.c - tf.Example, written by hand. */
#include "clicklog_example.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* tf.Example, inside out: each length-delimited field is as long as what is put between
 * message_begin and message_end, all below 128 bytes but for the outermost. */

struct message {
    uint8_t *bytes;
    size_t used;
};

static void
put_byte(struct message *message, unsigned byte)
{
    message->bytes[message->used++] = (uint8_t)byte;
}

static void
put_varint(struct message *message, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put_byte(message, (unsigned)(value & 127) | 128);
    put_byte(message, (unsigned)value);
}

/* Begin a length-delimited field and return where its length goes. */
static size_t
message_begin(struct message *message, unsigned field)
{
    put_byte(message, field << 3 | 2);
    put_byte(message, 0);
    return message->used - 1;
}

static void
message_end(struct message *message, size_t length_at)
{
    message->bytes[length_at] = (uint8_t)(message->used - length_at - 1);
}

static size_t
begin_feature(struct message *message, const char *kind, unsigned number, size_t *ret_value)
{
    size_t entry = message_begin(message, 1), key = message_begin(message, 1);

    message->used += (size_t)sprintf((char *)message->bytes + message->used, "%s", kind);
    if (number != 0)
        message->used += (size_t)sprintf((char *)message->bytes + message->used, "%u", number);
    message_end(message, key);
    *ret_value = message_begin(message, 2);
    return entry;
}

static void
put_int64_feature(struct message *message, const char *kind, unsigned number, int64_t value)
{
    size_t feature, entry = begin_feature(message, kind, number, &feature);
    size_t list = message_begin(message, 3), packed = message_begin(message, 1);

    put_varint(message, (uint64_t)value);
    message_end(message, packed);
    message_end(message, list);
    message_end(message, feature);
    message_end(message, entry);
}

static void
put_term_feature(struct message *message, unsigned category, uint32_t rank)
{
    size_t feature, entry = begin_feature(message, "C", category + 1, &feature);
    size_t list = message_begin(message, 1), value = message_begin(message, 1);

    if (rank != CLICKLOG_MISSING) {
        clicklog_put_term((char *)message->bytes + message->used, category, rank);
        message->used += 8;
    }
    message_end(message, value);
    message_end(message, list);
    message_end(message, feature);
    message_end(message, entry);
}

static void
put_features(struct message *message, const struct clicklog_row *row)
{
    put_int64_feature(message, "label", 0, row->label);
    for (uint32_t i = 0; i < INTEGER_COUNT; i++) {
        if (row->has_integer[i])
            put_int64_feature(message, "I", i + 1, row->integer[i]);
    }
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++)
        put_term_feature(message, i, row->rank[i]);
}

size_t
clicklog_example(const struct clicklog_row *row, uint8_t *bytes)
{
    uint8_t feature_bytes[CLICKLOG_EXAMPLE_MAX];
    struct message features = { .bytes = feature_bytes }, example = { .bytes = bytes };

    put_features(&features, row);
    put_byte(&example, 1 << 3 | 2);
    put_varint(&example, features.used);
    memcpy(example.bytes + example.used, features.bytes, features.used);
    return example.used + features.used;
}
