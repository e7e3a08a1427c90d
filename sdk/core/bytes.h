/* bytes.h - views of bytes that another object owns. */
#ifndef TND_CORE_BYTES_H
#define TND_CORE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* `size` bytes at `data`, of any value, without a NUL after them; `data` may be NULL only if `size`
 * is 0. A view into a read buffer has 64 readable bytes after it, so that short terms can be loaded
 * a word at a time. */
struct byte_view {
    const uint8_t *data;
    uint64_t size;
};

/* The bytes of a C string, without its NUL. */
static inline struct byte_view
bytes_of_text(const char *text)
{
    return (struct byte_view){ (const uint8_t *)text, strlen(text) };
}

static inline bool
bytes_are_equal(struct byte_view a, struct byte_view b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Values at any address, least significant byte first as in every format that we read. */
static inline uint64_t
load_u64(const void *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t
load_u32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint16_t
load_u16(const void *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and layouts are little-endian");

#endif
