/* png_stored.c - see png_stored.h. */
#include "content/images/png_stored.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* A chunk is its data's length, its name, the data and a checksum of name and data. */
enum { SIGNATURE_BYTES = 8, WORD_BYTES = 4, FRAME_BYTES = 3 * WORD_BYTES, HEADER_BYTES = 13 };
/* Deflate expands a byte to at most INFLATED_MAX. */
enum { INFLATED_MAX = 1032, BLOCK_BYTES = 65535, BLOCK_HEAD_BYTES = 5 };
/* libpng inflates larger ones row by row: here they would lie in memory twice. */
enum { UNPACKED_BYTES_MAX = 64 << 20 };
/* A stream's first bytes and its checksum. */
enum { STREAM_HEAD_BYTES = 2, STREAM_CHECK_BYTES = 4, FULL_WINDOW = 7 };

struct layout {
    size_t unpacked_bytes;          /* of the pixels' stream */
    const uint8_t *pixels, *behind; /* the chunks that hold it */
    size_t packed_bytes;
};

static uint32_t
word_at(const uint8_t *bytes)
{
    return __builtin_bswap32(load_u32(bytes));
}

static void
put_word(uint8_t *to, uint32_t word)
{
    word = __builtin_bswap32(word);
    memcpy(to, &word, sizeof word);
}

static bool
is_named(const uint8_t *chunk, const char *name)
{
    return memcmp(chunk + WORD_BYTES, name, WORD_BYTES) == 0;
}

/* Is all of the chunk there? libpng itself checks those that a picture can do without. */
static bool
is_whole(const uint8_t *chunk, const uint8_t *end)
{
    size_t left = (size_t)(end - chunk), data;

    if (left < FRAME_BYTES || word_at(chunk) > left - FRAME_BYTES)
        return false;
    data = word_at(chunk);
    return (chunk[WORD_BYTES] & 0x20) != 0 ||
           libdeflate_crc32(0, chunk + WORD_BYTES, WORD_BYTES + data) ==
               word_at(chunk + 2 * WORD_BYTES + data);
}

/* Each row has a byte before its pixels. 0: the picture is interlaced, or impossible. */
static size_t
unpacked_bytes(const uint8_t *header)
{
    static const uint8_t channels[8] = { [0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4 };
    const uint8_t *data = header + 2 * WORD_BYTES;
    uint64_t width, height, bits;

    if (!is_named(header, "IHDR") || word_at(header) != HEADER_BYTES)
        return 0;
    width = word_at(data);
    height = word_at(data + WORD_BYTES);
    bits = data[9] < sizeof channels ? (uint64_t)data[8] * channels[data[9]] : 0;
    if (width > INT32_MAX || height > INT32_MAX || bits > 64 || data[12] != 0)
        return 0;
    return ((width * bits + 7) / 8 + 1) * height;
}

static bool
lay_out(struct byte_view bytes, struct layout *layout)
{
    const uint8_t *end = bytes.data + bytes.size, *chunk = bytes.data + SIGNATURE_BYTES;

    if (bytes.size < SIGNATURE_BYTES + FRAME_BYTES + HEADER_BYTES)
        return false;
    layout->unpacked_bytes = unpacked_bytes(chunk);
    for (; is_whole(chunk, end); chunk += FRAME_BYTES + word_at(chunk)) {
        if (is_named(chunk, "IEND"))
            return layout->pixels != NULL;
        if (!is_named(chunk, "IDAT"))
            continue;
        if (layout->pixels == NULL)
            layout->pixels = layout->behind = chunk;
        if (chunk != layout->behind)
            return false;
        layout->behind = chunk + FRAME_BYTES + word_at(chunk);
        layout->packed_bytes += word_at(chunk);
    }
    return false;
}

/* The stream, whose pieces may be in several chunks. */
static const uint8_t *
gather(const struct layout *layout, struct scratch *scratch)
{
    const uint8_t *chunk = layout->pixels;
    uint8_t *stream;
    size_t bytes = 0;

    if (word_at(chunk) == layout->packed_bytes)
        return chunk + 2 * WORD_BYTES;
    stream = scratch_alloc(scratch, layout->packed_bytes);
    for (; chunk != layout->behind; chunk += FRAME_BYTES + word_at(chunk)) {
        memcpy(stream + bytes, chunk + 2 * WORD_BYTES, word_at(chunk));
        bytes += word_at(chunk);
    }
    return stream;
}

/* zlib refuses to copy from before the window that the stream names, and libdeflate does not. */
static bool
fits_window(const struct layout *layout, const uint8_t *stream)
{
    return stream[0] >> 4 == FULL_WINDOW || layout->unpacked_bytes <= (size_t)256
                                                                          << (stream[0] >> 4);
}

static bool
inflate_all(const struct layout *layout, const uint8_t *stream, uint8_t *to)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    enum libdeflate_result result = LIBDEFLATE_BAD_DATA;

    if (decompressor != NULL)
        result = libdeflate_zlib_decompress(decompressor, stream, layout->packed_bytes, to,
                                            layout->unpacked_bytes, NULL);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS;
}

static uint8_t *
put_bytes(uint8_t *to, const void *bytes, size_t count)
{
    memcpy(to, bytes, count);
    return to + count;
}

/* Into blocks that are as large as they can be. The checksum is right, because some builds of
 * libpng compare it although they are told not to. Returns what follows it. */
static uint8_t *
put_stored(uint8_t *to, const uint8_t *bytes, size_t count)
{
    static const uint8_t head[STREAM_HEAD_BYTES] = { 0x78, 0x01 };
    uint32_t check = libdeflate_adler32(1, bytes, count);

    to = put_bytes(to, head, sizeof head);
    while (count > 0) {
        uint16_t now = count < BLOCK_BYTES ? (uint16_t)count : BLOCK_BYTES,
                 not_now = (uint16_t)~now;

        *to++ = count == now; /* the last one */
        to = put_bytes(to, &now, sizeof now);
        to = put_bytes(to, &not_now, sizeof not_now);
        to = put_bytes(to, bytes, now);
        bytes += now;
        count -= now;
    }
    put_word(to, check);
    return to + STREAM_CHECK_BYTES;
}

bool
png_store(struct byte_view bytes, struct scratch *scratch, struct byte_view *ret_stored)
{
    struct layout layout = { 0 };
    size_t blocks, stored, before, after;
    const uint8_t *stream;
    uint8_t *unpacked, *to;

    if (!lay_out(bytes, &layout) || layout.unpacked_bytes == 0 || layout.packed_bytes == 0 ||
        layout.unpacked_bytes > UNPACKED_BYTES_MAX ||
        layout.unpacked_bytes / INFLATED_MAX > layout.packed_bytes)
        return false;
    blocks = (layout.unpacked_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    stored =
        STREAM_HEAD_BYTES + BLOCK_HEAD_BYTES * blocks + layout.unpacked_bytes + STREAM_CHECK_BYTES;
    before = (size_t)(layout.pixels - bytes.data);
    after = (size_t)(bytes.data + bytes.size - layout.behind);
    if (scratch_ask(scratch, stored + layout.unpacked_bytes + bytes.size) != TUNDISH_OK)
        return false;
    stream = gather(&layout, scratch);
    unpacked = scratch_alloc(scratch, layout.unpacked_bytes);
    if (!fits_window(&layout, stream) || !inflate_all(&layout, stream, unpacked))
        return false;
    ret_stored->size = before + FRAME_BYTES + stored + after;
    ret_stored->data = to = scratch_alloc(scratch, ret_stored->size);
    to = put_bytes(to, bytes.data, before);
    put_word(to, (uint32_t)stored);
    to =
        put_stored(put_bytes(to + WORD_BYTES, "IDAT", WORD_BYTES), unpacked, layout.unpacked_bytes);
    put_bytes(to + WORD_BYTES, layout.behind, after);
    return true;
}
