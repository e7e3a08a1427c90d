/* test_png_stored.c - PNGs whose pixels are inflated before libpng reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <cmocka.h>

#include "content/images/picture.h"
#include "content/images/png_stored.h"
#include "unit/test_file.h"

enum { WIDTH = 301, HEIGHT = 97, ROW = 1 + 3 * WIDTH, PIXELS = ROW * HEIGHT, ROOM = 2 * PIXELS };

struct made {
    uint8_t bytes[ROOM];
    size_t size;
    size_t pixels_at; /* the first byte of the stream */
};

static void
put_big(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void
add_chunk(struct made *made, const char *name, const uint8_t *data, size_t bytes)
{
    uint8_t *to = made->bytes + made->size;

    put_big(to, (uint32_t)bytes);
    memcpy(to + 4, name, 4);
    if (bytes > 0)
        memcpy(to + 8, data, bytes);
    put_big(to + 8 + bytes, (uint32_t)crc32(0, to + 4, (uInt)(4 + bytes)));
    made->size += 12 + bytes;
}

static void
fill_rows(uint8_t *rows)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int i = 0; i < ROW; i++)
            rows[y * ROW + i] = i == 0 ? (uint8_t)(y % 5) : (uint8_t)(i * 7 + y * y + (i * y) % 11);
}

/* In pieces of at most so many bytes; `rows` of them. */
static void
make(struct made *made, size_t piece, int window, size_t row_bytes, uint8_t interlace)
{
    static const uint8_t signature[] = { 0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a };
    uint8_t header[13] = { [8] = 8, 2, 0, 0, interlace };
    static uint8_t rows[PIXELS], packed[ROOM];
    z_stream stream = {
        .next_in = rows, .avail_in = (uInt)row_bytes, .next_out = packed, .avail_out = sizeof packed
    };

    fill_rows(rows);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    put_big(header, WIDTH);
    put_big(header + 4, HEIGHT);
    memcpy(made->bytes, signature, sizeof signature);
    made->size = sizeof signature;
    add_chunk(made, "IHDR", header, sizeof header);
    add_chunk(made, "tEXt", (const uint8_t *)"a\0b", 3);
    made->pixels_at = made->size + 8;
    for (size_t at = 0; at < stream.total_out; at += piece) {
        size_t left = stream.total_out - at;

        add_chunk(made, "IDAT", packed + at, left < piece ? left : piece);
    }
    add_chunk(made, "IEND", NULL, 0);
}

static bool
can_store(const struct made *made)
{
    struct scratch *scratch = scratch_open();
    struct byte_view stored;
    bool can = png_store((struct byte_view){ made->bytes, made->size }, scratch, &stored);

    scratch_close(scratch);
    return can;
}

/* False: it cannot be read, and the sentence has `fault` in it. */
static bool
reads(const struct made *made, const char *fault, uint8_t *values)
{
    struct picture_options options = { .stage = "decode_png",
                                       .channels = 3,
                                       .dtype = TUNDISH_UINT8 };
    struct byte_view bytes = { made->bytes, made->size };
    struct scratch *scratch = scratch_open();
    struct picture_size size;
    struct picture_fault said;
    bool ok = picture_measure(&options, bytes, &size, &said) &&
              picture_read(&options, bytes, &size, scratch, values, &said);

    scratch_close(scratch);
    if (!ok && strstr(said.text, fault) == NULL)
        fail_msg("%s", said.text);
    return ok;
}

/* As the format says, by plain code. */
static void
undo_filters(uint8_t *values)
{
    static uint8_t rows[PIXELS];

    fill_rows(rows);
    for (int y = 0; y < HEIGHT; y++)
        for (int i = 0; i < ROW - 1; i++) {
            uint8_t *at = values + y * (ROW - 1) + i;
            int left = i >= 3 ? at[-3] : 0, up = y > 0 ? at[-(ROW - 1)] : 0;
            int corner = i >= 3 && y > 0 ? at[-(ROW - 1) - 3] : 0;
            int by_left = abs(up - corner), by_up = abs(left - corner);
            int by_corner = abs(left + up - 2 * corner);
            int paeth = by_left <= by_up && by_left <= by_corner ? left
                        : by_up <= by_corner                     ? up
                                                                 : corner;
            const int predicted[] = { 0, left, up, (left + up) / 2, paeth };

            *at = (uint8_t)(rows[y * ROW + 1 + i] + predicted[rows[y * ROW]]);
        }
}

static void
pixels_are_as_the_format_says(void **state)
{
    static const size_t pieces[] = { ROOM, 8192, 1000 };
    static uint8_t wanted[HEIGHT * (ROW - 1)], values[HEIGHT * (ROW - 1)];
    struct made *made = malloc(sizeof *made);

    (void)state;
    undo_filters(wanted);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        make(made, pieces[i], 15, PIXELS, 0);
        assert_true(can_store(made));
        memset(values, 0, sizeof values);
        assert_true(reads(made, "", values));
        assert_memory_equal(values, wanted, sizeof wanted);
    }
    free(made);
}

/* zlib compares the checksum at the end. */
static void
the_stored_stream_is_whole(void **state)
{
    static uint8_t rows[PIXELS], found[PIXELS];
    struct made *made = malloc(sizeof *made);
    struct scratch *scratch = scratch_open();
    struct byte_view stored;
    z_stream stream = { .next_out = found, .avail_out = sizeof found };

    (void)state;
    fill_rows(rows);
    make(made, 1000, 15, PIXELS, 0);
    assert_true(png_store((struct byte_view){ made->bytes, made->size }, scratch, &stored));
    stream.next_in = (Bytef *)(uintptr_t)stored.data + made->pixels_at;
    stream.avail_in = (uInt)(stored.size - made->pixels_at);
    assert_int_equal(inflateInit(&stream), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    assert_memory_equal(found, rows, sizeof rows);
    scratch_close(scratch);
    free(made);
}

/* So that there is one judge of them, whatever the build. */
static void
damaged_files_are_left_to_libpng(void **state)
{
    static uint8_t values[HEIGHT * (ROW - 1)];
    struct made *made = malloc(sizeof *made);

    (void)state;
    make(made, ROOM, 15, PIXELS, 0);
    made->bytes[made->pixels_at + 100] ^= 1;
    assert_false(can_store(made));
    assert_false(reads(made, "IDAT: incorrect data check", values));

    make(made, ROOM, 15, PIXELS, 0);
    made->bytes[made->size - 13] ^= 1; /* the checksum before the last chunk */
    assert_false(can_store(made));
    assert_false(reads(made, "IDAT: CRC error", values));

    make(made, ROOM, 15, PIXELS - 1, 0);
    assert_false(can_store(made));
    assert_false(reads(made, "Not enough image data", values));

    make(made, 1000, 15, PIXELS, 0);
    made->size = made->pixels_at + 1500;
    assert_false(can_store(made));
    assert_false(reads(made, "truncated", values));

    make(made, ROOM, 15, PIXELS, 1);
    assert_false(can_store(made));
    free(made);
}

/* libdeflate would follow the stream further back than it says it goes. */
static void
streams_of_a_smaller_window_are_left_to_libpng(void **state)
{
    struct made *made = malloc(sizeof *made);

    (void)state;
    make(made, ROOM, 9, PIXELS, 0);
    assert_false(can_store(made));
    free(made);
}

TEST_FILE(test_png_stored)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_as_the_format_says),
        cmocka_unit_test(the_stored_stream_is_whole),
        cmocka_unit_test(damaged_files_are_left_to_libpng),
        cmocka_unit_test(streams_of_a_smaller_window_are_left_to_libpng),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
