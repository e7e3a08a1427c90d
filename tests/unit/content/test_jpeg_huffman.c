/* test_jpeg_huffman.c - the codes of a JPEG, next to the library's own reader. */
#include "content/images/turbo2/jpeg_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../unit_draw.h"
#include "jpeg_fixture.h"
#include "unit/test_file.h"

struct decoding {
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    bool is_ours, is_whole;
    unsigned lines;
    size_t bytes;
    uint8_t *pixels;
};

static void
leave(j_common_ptr info)
{
    longjmp(((struct decoding *)(void *)info->err)->failed, 1);
}

static void
keep_silent(j_common_ptr info, int level)
{
    (void)info;
    (void)level;
}

static void
read_lines(struct jpeg_decompress_struct *info, struct decoding *decoding)
{
    size_t row_bytes = (size_t)info->output_width * (size_t)info->output_components;

    decoding->bytes = row_bytes * info->output_height;
    decoding->pixels = calloc(1, decoding->bytes);
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = decoding->pixels + row_bytes * info->output_scanline;

        if (jpeg_read_scanlines(info, &row, 1) == 0)
            break;
        decoding->lines = info->output_scanline;
    }
    if (decoding->lines == info->output_height)
        jpeg_finish_decompress(info);
}

/* Have all lines come, and the end behind them? */
static bool
decode(const struct jpeg_made *made, bool wants_ours, struct decoding *decoding)
{
    struct jpeg_decompress_struct info = { 0 };

    *decoding = (struct decoding){ 0 };
    info.err = jpeg_std_error(&decoding->errors);
    decoding->errors.error_exit = leave;
    decoding->errors.emit_message = keep_silent;
    if (setjmp(decoding->failed) == 0) {
        jpeg_create_decompress(&info);
        jpeg_mem_src(&info, made->bytes, made->size);
        jpeg_read_header(&info, TRUE);
        jpeg_start_decompress(&info);
        decoding->is_ours = wants_ours && jpeg_huffman_install(&info);
        read_lines(&info, decoding);
        decoding->is_whole = decoding->lines == info.output_height;
    }
    jpeg_destroy_decompress(&info);
    return decoding->is_whole;
}

static void
assert_same(const struct jpeg_made *made, bool is_ours)
{
    struct decoding library, ours;

    assert_true(decode(made, false, &library));
    assert_true(decode(made, true, &ours));
    assert_int_equal(ours.is_ours, is_ours);
    assert_int_equal(ours.bytes, library.bytes);
    assert_memory_equal(ours.pixels, library.pixels, ours.bytes);
    free(library.pixels);
    free(ours.pixels);
}

static const struct jpeg_make makes[] = {
    { .width = 70, .height = 50, .luma_across = 2, .luma_down = 2, .quality = 90, .noise = 20 },
    { .width = 61, .height = 83, .luma_across = 2, .luma_down = 1, .quality = 75, .noise = 5 },
    { .width = 64, .height = 64, .luma_across = 1, .luma_down = 1, .quality = 100, .noise = 127 },
    { .width = 200, .height = 150, .luma_across = 1, .luma_down = 2, .quality = 95, .noise = 60 },
    { .width = 33, .height = 9, .luma_across = 4, .luma_down = 1, .quality = 50 },
    { .width = 300, .height = 40, .luma_across = 1, .luma_down = 1, .quality = 20 },
    { .width = 1, .height = 1, .luma_across = 2, .luma_down = 2, .quality = 90 },
    { .width = 90, .height = 70, .luma_across = 1, .luma_down = 1, .is_gray = true, .quality = 98 },
};

static void
pixels_are_the_librarys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        for (unsigned restart_interval = 0; restart_interval <= 20; restart_interval += 5)
            for (int has_own_codes = 0; has_own_codes < 2; has_own_codes++) {
                struct jpeg_make make = makes[i];
                struct jpeg_made made;

                make.restart_interval = restart_interval == 20 ? 1 : restart_interval;
                make.has_own_codes = has_own_codes != 0;
                made = jpeg_fixture_make(&make, i);
                assert_same(&made, true);
                jpeg_fixture_free(&made);
            }
}

static void
pictures_of_several_scans_are_left_to_the_library(void **state)
{
    struct jpeg_make make = makes[0];
    struct jpeg_made made;

    (void)state;
    make.is_progressive = true;
    made = jpeg_fixture_make(&make, 1);
    assert_same(&made, false);
    jpeg_fixture_free(&made);
}

/* Bytes changed, doubled or cut off behind the header. */
static void
damage(struct jpeg_made *made)
{
    size_t header = 700 < made->size / 2 ? 700 : made->size / 2;
    size_t at = header + draw() % (made->size - header);
    static const uint8_t markers[] = { 0x00, 0xFF, 0xD0, 0xD3, 0xD9, 0xDA };

    switch (draw() % 4) {
    case 0:
        made->bytes[at] = (uint8_t)draw();
        break;
    case 1:
        made->bytes[at] = 0xFF;
        if (at + 1 < made->size)
            made->bytes[at + 1] = markers[draw() % sizeof markers];
        break;
    case 2:
        made->size = at;
        memset(made->bytes + at, 0, 64);
        break;
    default:
        memmove(made->bytes + at, made->bytes + at + 1, made->size - at - 1);
        made->size--;
        break;
    }
}

/* Where ours comes to the end, it is the library's. */
static void
what_is_not_as_it_should_be_is_found_out(void **state)
{
    unsigned stopped = 0, whole = 0;

    (void)state;
    for (size_t i = 0; i < 1500; i++) {
        struct jpeg_make make = makes[i % (sizeof makes / sizeof *makes)];
        struct jpeg_made made;
        struct decoding library, ours;
        bool library_is_whole;

        make.restart_interval = i % 3 == 0 ? 2 : 0;
        make.has_own_codes = i % 2 == 0;
        made = jpeg_fixture_make(&make, i);
        damage(&made);
        library_is_whole = decode(&made, false, &library);
        if (decode(&made, true, &ours)) {
            assert_true(library_is_whole);
            assert_memory_equal(ours.pixels, library.pixels, ours.bytes);
            whole++;
        } else {
            stopped++;
        }
        free(library.pixels);
        free(ours.pixels);
        jpeg_fixture_free(&made);
    }
    assert_true(stopped > 100 && whole > 100);
}

TEST_FILE(test_jpeg_huffman)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_the_librarys),
        cmocka_unit_test(pictures_of_several_scans_are_left_to_the_library),
        cmocka_unit_test(what_is_not_as_it_should_be_is_found_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
