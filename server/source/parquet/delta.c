/* delta.c - see delta.h.
 *
 *     block size | miniblocks | count | first value      then blocks of
 *     least difference | a width for each miniblock | miniblocks
 */
#include "source/parquet/delta.h"

enum { MINIBLOCKS_MAX = 1024, AT_ONCE = 256 };

struct delta {
    struct byte_view bytes; /* not read yet */
    uint64_t miniblock_values, miniblock_count;
    uint64_t value; /* the last one */

    /* The current block, and the current miniblock. */
    const uint8_t *widths, *widths_end;
    uint64_t least;
    struct byte_view packed;
    unsigned width;
    uint64_t next; /* value of the miniblock */
};

static bool
take_number(struct byte_view *bytes, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 64 && bytes->size > 0; shift += 7) {
        uint8_t byte = *bytes->data++;

        bytes->size--;
        number |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool
take_signed(struct byte_view *bytes, uint64_t *ret_number)
{
    uint64_t number;

    if (!take_number(bytes, &number))
        return false;
    *ret_number = number >> 1 ^ (0 - (number & 1));
    return true;
}

/* As many of the next bytes as there are. */
static struct byte_view
take_bytes(struct byte_view *bytes, uint64_t count)
{
    struct byte_view taken = { bytes->data, count < bytes->size ? count : bytes->size };

    bytes->data += taken.size;
    bytes->size -= taken.size;
    return taken;
}

static bool
open_delta(struct delta *delta, size_t count)
{
    uint64_t block, values;

    if (!take_number(&delta->bytes, &block) ||
        !take_number(&delta->bytes, &delta->miniblock_count) ||
        !take_number(&delta->bytes, &values) || !take_signed(&delta->bytes, &delta->value))
        return false;
    if (delta->miniblock_count == 0 || delta->miniblock_count > MINIBLOCKS_MAX ||
        block > INT32_MAX || values != count)
        return false;
    delta->miniblock_values = block / delta->miniblock_count;
    delta->next = delta->miniblock_values;
    /* Miniblocks of eights begin and end at bytes. */
    return delta->miniblock_values > 0 && delta->miniblock_values % 8 == 0;
}

static bool
next_miniblock(struct delta *delta)
{
    if (delta->widths == delta->widths_end) {
        struct byte_view widths;

        if (!take_signed(&delta->bytes, &delta->least))
            return false;
        widths = take_bytes(&delta->bytes, delta->miniblock_count);
        if (widths.size < delta->miniblock_count)
            return false;
        delta->widths = widths.data;
        delta->widths_end = widths.data + widths.size;
    }
    delta->width = *delta->widths++;
    if (delta->width > 64)
        return false;
    /* The bytes of values that there are not may be missing. */
    delta->packed = take_bytes(&delta->bytes, delta->miniblock_values / 8 * delta->width);
    delta->next = 0;
    return true;
}

/* The next values, at most AT_ONCE; 0: damaged. Room for 8 more is needed. */
static size_t
read_some(struct delta *delta, size_t wanted, uint64_t *to)
{
    uint64_t left, value = delta->value;
    size_t take;

    if (delta->next == delta->miniblock_values && !next_miniblock(delta))
        return 0;
    left = delta->miniblock_values - delta->next;
    take = left < wanted ? (size_t)left : wanted;
    take = take < AT_ONCE ? take : AT_ONCE;
    if (bits_bytes(delta->next + take, delta->width) > delta->packed.size)
        return 0;
    bits_unpack_u64(delta->packed.data + delta->next / 8 * delta->width, delta->width, take, to);
    for (size_t i = 0; i < take; i++)
        to[i] = value += delta->least + to[i];
    delta->value = value;
    delta->next += take;
    return take;
}

/* `to` has int64s, or int32s if `is_narrow`. */
static bool
read_all(struct byte_view *bytes, size_t count, bool is_narrow, void *to)
{
    struct delta delta = { .bytes = *bytes };
    uint64_t values[AT_ONCE + 8];
    size_t more = 1;

    if (!open_delta(&delta, count))
        return false;
    values[0] = delta.value;
    for (size_t done = 0; done < count; done += more) {
        if (done > 0)
            more = read_some(&delta, count - done, values);
        if (more == 0)
            return false;
        if (is_narrow)
            for (size_t i = 0; i < more; i++)
                ((int32_t *)to)[done + i] = (int32_t)values[i];
        else
            memcpy((int64_t *)to + done, values, more * sizeof *values);
    }
    *bytes = delta.bytes;
    return true;
}

bool
delta_read_i64(struct byte_view *bytes, size_t count, int64_t *to)
{
    return read_all(bytes, count, false, to);
}

bool
delta_read_i32(struct byte_view *bytes, size_t count, int32_t *to)
{
    return read_all(bytes, count, true, to);
}
