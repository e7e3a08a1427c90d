/* values.c - see values.h.
 *
 * First the values of the file's type: bools as bytes, numbers as they are, texts as where they
 * lie. Then, where the dtype is another one, what becomes of them. Dictionaries are changed once.
 */
#include "source/parquet/values.h"

#include <stdlib.h>

#include "core/memory.h"
#include "source/parquet/delta.h"
#include "source/parquet/runs.h"
#include "source/parquet/split.h"

enum { INT96_BYTES = 12, BLOCK = 1024 };

static const char damaged[] = "its values are damaged";

uint8_t *
parquet_buffer_room(struct parquet_buffer *buffer, size_t bytes)
{
    if (buffer->room - buffer->used < bytes + PARQUET_SLACK) {
        buffer->room = buffer->used + buffer->used / 2 + bytes + PARQUET_SLACK;
        buffer->data = tnd_realloc(buffer->data, buffer->room, 1);
    }
    return buffer->data + buffer->used;
}

void
values_close(struct parquet_values *values)
{
    free(values->texts.data);
    free(values->spare.data);
    free(values->spares.data);
    free(values->dictionary);
}

static bool
is_text(const struct parquet_leaf *leaf)
{
    return leaf->type == PARQUET_BYTE_ARRAY || leaf->type == PARQUET_FIXED;
}

bool
values_stay(const struct parquet_leaf *leaf, int64_t encoding)
{
    return is_text(leaf) &&
           (encoding == PARQUET_PLAIN || encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY);
}

const char *
values_obstacle(const struct parquet_leaf *leaf, int64_t encoding)
{
    bool is_integer = leaf->type == PARQUET_INT32 || leaf->type == PARQUET_INT64;
    bool is_known;

    switch (encoding) {
    case PARQUET_PLAIN:
        is_known = true;
        break;
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY:
        is_known = leaf->type != PARQUET_BOOLEAN;
        break;
    case PARQUET_RLE:
        is_known = leaf->type == PARQUET_BOOLEAN;
        break;
    case PARQUET_DELTA_BINARY_PACKED:
        is_known = is_integer;
        break;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        is_known = leaf->type == PARQUET_BYTE_ARRAY;
        break;
    case PARQUET_DELTA_BYTE_ARRAY:
        is_known = is_text(leaf);
        break;
    case PARQUET_BYTE_STREAM_SPLIT:
        is_known = leaf->type != PARQUET_BOOLEAN && leaf->type != PARQUET_INT96 &&
                   leaf->type != PARQUET_BYTE_ARRAY;
        break;
    default:
        return "there is no decoder for its encoding";
    }
    return is_known ? NULL : "its encoding does not go with its type";
}

/* Bytes of a value of the file's type. */
static size_t
type_bytes(const struct parquet_leaf *leaf)
{
    static const size_t bytes[PARQUET_TYPES] = {
        1, 4, 8, INT96_BYTES, 4, 8, sizeof(struct parquet_text), sizeof(struct parquet_text)
    };

    return bytes[leaf->type];
}

static const char *
read_bools(int64_t encoding, struct byte_view page, size_t count, uint8_t *to)
{
    struct parquet_runs runs;

    if (encoding == PARQUET_PLAIN) {
        if (page.size < bits_bytes(count, 1))
            return damaged;
        bits_unpack_bools(page.data, count, to);
        return NULL;
    }
    /* RLE: the length of the runs stands before them. */
    if (page.size < 4 || load_u32(page.data) > page.size - 4)
        return damaged;
    runs_open(&runs, (struct byte_view){ page.data + 4, load_u32(page.data) }, 1);
    return runs_read_u8(&runs, to, count) ? NULL : damaged;
}

static const char *
read_numbers(const struct parquet_leaf *leaf, int64_t encoding, struct byte_view page, size_t count,
             void *to)
{
    size_t width = type_bytes(leaf);

    if (encoding == PARQUET_DELTA_BINARY_PACKED) {
        bool is_good =
            width == 4 ? delta_read_i32(&page, count, to) : delta_read_i64(&page, count, to);

        return is_good ? NULL : damaged;
    }
    if (page.size / width < count)
        return damaged;
    if (encoding == PARQUET_BYTE_STREAM_SPLIT)
        split_join(page.data, count, width, to);
    else if (count > 0)
        memcpy(to, page.data, count * width);
    return NULL;
}

/* Each after its length, of 4 bytes. */
static const char *
read_plain_texts(const struct parquet_values *values, struct byte_view page, size_t count,
                 struct parquet_text *to)
{
    uint64_t base = (uint64_t)(page.data - values->texts.data), at = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t bytes;

        if (page.size - at < 4)
            return damaged;
        bytes = load_u32(page.data + at);
        at += 4;
        if (bytes > page.size - at)
            return damaged;
        to[i] = (struct parquet_text){ (uint32_t)(base + at), bytes };
        at += bytes;
    }
    return NULL;
}

static const char *
read_fixed_texts(const struct parquet_values *values, struct byte_view page, size_t count,
                 struct parquet_text *to)
{
    uint64_t base = (uint64_t)(page.data - values->texts.data);
    uint32_t bytes = values->leaf->fixed_bytes;

    if (bytes > 0 && page.size / bytes < count)
        return damaged;
    for (size_t i = 0; i < count; i++)
        to[i] = (struct parquet_text){ (uint32_t)(base + i * bytes), bytes };
    return NULL;
}

/* Lengths, then all texts side by side. */
static const char *
read_delta_texts(struct parquet_values *values, struct byte_view page, size_t count,
                 struct parquet_text *to)
{
    int32_t *lengths =
        (int32_t *)(void *)parquet_buffer_room(&values->spares, (count + 8) * sizeof *lengths);
    uint64_t base, at = 0;

    if (!delta_read_i32(&page, count, lengths))
        return damaged;
    base = (uint64_t)(page.data - values->texts.data);
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 0 || (uint64_t)lengths[i] > page.size - at)
            return damaged;
        to[i] = (struct parquet_text){ (uint32_t)(base + at), (uint32_t)lengths[i] };
        at += (uint64_t)lengths[i];
    }
    return NULL;
}

/* How much each text shares with the one before, lengths of the rests, the rests. They are put
 * together in `texts`. */
static const char *
read_shared_texts(struct parquet_values *values, struct byte_view page, size_t count,
                  struct parquet_text *to)
{
    int32_t *shared =
        (int32_t *)(void *)parquet_buffer_room(&values->spares, 2 * (count + 8) * sizeof *shared);
    int32_t *lengths = shared + count + 8;
    struct parquet_buffer *texts = &values->texts;
    uint64_t rest = 0;

    if (!delta_read_i32(&page, count, shared) || !delta_read_i32(&page, count, lengths))
        return damaged;
    for (size_t i = 0; i < count; i++) {
        uint32_t before = i == 0 ? 0 : to[i - 1].bytes;
        uint8_t *at;

        if (shared[i] < 0 || lengths[i] < 0 || (uint32_t)shared[i] > before ||
            (uint64_t)lengths[i] > page.size - rest)
            return damaged;
        at = parquet_buffer_room(texts, (size_t)shared[i] + (size_t)lengths[i]);
        if (texts->used + (size_t)shared[i] + (size_t)lengths[i] > UINT32_MAX)
            return "its texts are more than 4 GiB";
        if (shared[i] > 0)
            memcpy(at, texts->data + to[i - 1].offset, (size_t)shared[i]);
        if (lengths[i] > 0)
            memcpy(at + shared[i], page.data + rest, (size_t)lengths[i]);
        to[i] = (struct parquet_text){ (uint32_t)texts->used,
                                       (uint32_t)shared[i] + (uint32_t)lengths[i] };
        texts->used += to[i].bytes;
        rest += (uint64_t)lengths[i];
    }
    return NULL;
}

static const char *
read_split_texts(struct parquet_values *values, struct byte_view page, size_t count,
                 struct parquet_text *to)
{
    size_t width = values->leaf->fixed_bytes;
    struct byte_view joined = { .size = count * width };

    if (width > 0 && page.size / width < count)
        return damaged;
    joined.data = parquet_buffer_room(&values->texts, joined.size);
    split_join(page.data, count, width, values->texts.data + values->texts.used);
    values->texts.used += joined.size;
    return values->texts.used > UINT32_MAX ? "its texts are more than 4 GiB"
                                           : read_fixed_texts(values, joined, count, to);
}

static const char *
read_texts(struct parquet_values *values, int64_t encoding, struct byte_view page, size_t count,
           struct parquet_text *to)
{
    bool is_fixed = values->leaf->type == PARQUET_FIXED;
    const char *reason;

    if (encoding == PARQUET_BYTE_STREAM_SPLIT)
        return read_split_texts(values, page, count, to);
    if (encoding == PARQUET_PLAIN)
        return is_fixed ? read_fixed_texts(values, page, count, to)
                        : read_plain_texts(values, page, count, to);
    if (encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY)
        return read_delta_texts(values, page, count, to);
    reason = read_shared_texts(values, page, count, to);
    for (size_t i = 0; i < count && reason == NULL && is_fixed; i++)
        if (to[i].bytes != values->leaf->fixed_bytes)
            reason = damaged;
    return reason;
}

/* Nanoseconds of the day, then the Julian day; arithmetic wraps. */
static void
change_int96(const uint8_t *from, size_t count, int64_t *to)
{
    const int64_t epoch = 2440588, day_ns = INT64_C(86400000000000);

    for (size_t i = 0; i < count; i++, from += INT96_BYTES)
        to[i] = (int64_t)(((uint64_t)load_u32(from + 8) - (uint64_t)epoch) * (uint64_t)day_ns +
                          load_u64(from));
}

/* Two's complement, highest byte first, of up to 16 bytes: those above the lowest eight must only
 * repeat the sign. */
static bool
number_of_text(const uint8_t *from, uint32_t bytes, int64_t *ret_number)
{
    uint8_t sign = bytes > 0 && from[0] >= 0x80 ? 0xFF : 0;
    uint64_t number = sign == 0 ? 0 : UINT64_MAX;
    uint32_t i = 0;

    for (; bytes - i > 8; i++)
        if (from[i] != sign)
            return false;
    for (; i < bytes; i++)
        number = number << 8 | from[i];
    *ret_number = (int64_t)number;
    return (*ret_number < 0) == (sign != 0);
}

static const char *
change_decimals(const struct parquet_values *values, const void *from, size_t count, int64_t *to)
{
    const struct parquet_text *texts = from;

    if (values->leaf->type == PARQUET_INT32) {
        for (size_t i = 0; i < count; i++)
            to[i] = ((const int32_t *)from)[i];
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (!number_of_text(values->texts.data + texts[i].offset, texts[i].bytes, &to[i]))
            return "a decimal does not fit an int64";
    return NULL;
}

/* Halves lie in texts of two bytes. */
static void
change_halves(const struct parquet_values *values, const struct parquet_text *from, size_t count,
              uint8_t *to)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + 2 * i, values->texts.data + from[i].offset, 2);
}

/* Keep the low bytes of integers: those of 8 and 16 bits lie in 32 (or 64). */
static void
cut_integers(const uint8_t *from, size_t count, size_t from_bytes, size_t bytes, uint8_t *to)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * bytes, from + i * from_bytes, bytes);
}

static bool
is_changed(const struct parquet_values *values)
{
    const struct parquet_leaf *leaf = values->leaf;

    return leaf->change == PARQUET_NANOSECONDS ||
           (leaf->change == PARQUET_DECIMAL && leaf->type != PARQUET_INT64) ||
           type_bytes(leaf) != values->value_bytes;
}

static const char *
change(const struct parquet_values *values, const uint8_t *from, size_t count, void *to)
{
    const struct parquet_leaf *leaf = values->leaf;

    if (leaf->change == PARQUET_DECIMAL)
        return change_decimals(values, from, count, to);
    if (leaf->change == PARQUET_NANOSECONDS)
        change_int96(from, count, to);
    else if (is_text(leaf))
        change_halves(values, (const struct parquet_text *)(const void *)from, count, to);
    else
        cut_integers(from, count, type_bytes(leaf), values->value_bytes, to);
    return NULL;
}

static const char *read_dictionary(const struct parquet_values *values, struct byte_view page,
                                   size_t count, void *to);

static const char *
read_type(struct parquet_values *values, int64_t encoding, struct byte_view page, size_t count,
          void *to)
{
    if (values->leaf->type == PARQUET_BOOLEAN)
        return read_bools(encoding, page, count, to);
    if (is_text(values->leaf))
        return read_texts(values, encoding, page, count, to);
    return read_numbers(values->leaf, encoding, page, count, to);
}

const char *
values_read(struct parquet_values *values, int64_t encoding, struct byte_view page, size_t count,
            void *to)
{
    const char *reason;
    uint8_t *first;

    if (encoding == PARQUET_PLAIN_DICTIONARY || encoding == PARQUET_RLE_DICTIONARY)
        return read_dictionary(values, page, count, to);
    if (!is_changed(values))
        return read_type(values, encoding, page, count, to);
    first = parquet_buffer_room(&values->spare, (count + 8) * type_bytes(values->leaf));
    reason = read_type(values, encoding, page, count, first);
    return reason == NULL ? change(values, first, count, to) : reason;
}

/* The values at some indices. Loops of a constant width, without a call for each. */
static void
gather(const struct parquet_values *values, const uint32_t *indices, size_t count, uint8_t *to)
{
    const uint8_t *from = values->dictionary;

    switch (values->value_bytes) {
    case 1:
        for (size_t i = 0; i < count; i++)
            to[i] = from[indices[i]];
        break;
    case 2:
        for (size_t i = 0; i < count; i++)
            memcpy(to + 2 * i, from + 2 * (size_t)indices[i], 2);
        break;
    case 4:
        for (size_t i = 0; i < count; i++)
            memcpy(to + 4 * i, from + 4 * (size_t)indices[i], 4);
        break;
    default:
        for (size_t i = 0; i < count; i++)
            memcpy(to + 8 * i, from + 8 * (size_t)indices[i], 8);
    }
}

/* The width of the indices, then their runs. */
static const char *
read_dictionary(const struct parquet_values *values, struct byte_view page, size_t count, void *to)
{
    uint32_t indices[BLOCK + 8];
    struct parquet_runs runs;

    if (count == 0)
        return NULL;
    if (values->dictionary == NULL)
        return "its dictionary is missing";
    if (page.size == 0 || page.data[0] > 32)
        return damaged;
    runs_open(&runs, (struct byte_view){ page.data + 1, page.size - 1 }, page.data[0]);
    for (size_t done = 0; done < count;) {
        size_t take = count - done < BLOCK ? count - done : BLOCK;
        uint32_t highest = 0;

        if (!runs_read_u32(&runs, indices, take))
            return damaged;
        for (size_t i = 0; i < take; i++)
            highest = indices[i] > highest ? indices[i] : highest;
        if (highest >= values->dictionary_count)
            return "an index is not in its dictionary";
        if (values->as_numbers)
            memcpy((uint32_t *)to + done, indices, take * sizeof *indices);
        else
            gather(values, indices, take, (uint8_t *)to + done * values->value_bytes);
        done += take;
    }
    return NULL;
}
