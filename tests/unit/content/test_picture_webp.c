/* test_picture_webp.c - WebP files: pixels that are kept to the bit, animations, damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>
#include <cmocka.h>

#include "content/images/picture.h"
#include "unit/test_file.h"

enum { HEIGHT = 5, WIDTH = 7, PIXELS = HEIGHT * WIDTH };

/* Without loss; `channels` is 3 or 4. */
static struct byte_view
encode(const uint8_t *pixels, int channels)
{
    uint8_t *bytes = NULL;
    size_t size = channels == 3 ? WebPEncodeLosslessRGB(pixels, WIDTH, HEIGHT, WIDTH * 3, &bytes)
                                : WebPEncodeLosslessRGBA(pixels, WIDTH, HEIGHT, WIDTH * 4, &bytes);

    assert_true(size > 0);
    return (struct byte_view){ bytes, size };
}

static void
draw(uint8_t *pixels, int channels)
{
    for (int i = 0; i < PIXELS * channels; i++)
        pixels[i] = (uint8_t)(channels == 4 && i % 4 == 3 ? 200 + i % 8 : i * 31 + i / 3);
}

/* Pixels and their file, for WebPFree(). */
static struct byte_view
drawn(uint8_t *pixels, int channels)
{
    draw(pixels, channels);
    return encode(pixels, channels);
}

static bool
read_file(struct byte_view bytes, const struct picture_options *options, uint8_t *values,
          struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct scratch *scratch = scratch_open();
    bool is_good = picture_measure(options, bytes, ret_size, ret_fault) &&
                   picture_read(options, bytes, ret_size, scratch, values, ret_fault);

    scratch_close(scratch);
    return is_good;
}

static void
pixels_are_those_that_were_written(void **state)
{
    static const struct {
        int written, channels, expected;
    } cases[] = { { 3, 0, 3 }, { 3, 3, 3 }, { 4, 0, 4 }, { 4, 4, 4 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct picture_options options = { .stage = "decode_image",
                                           .channels = cases[i].channels,
                                           .dtype = TUNDISH_UINT8,
                                           .takes_everything = true };
        uint8_t pixels[PIXELS * 4], values[PIXELS * 4];
        struct picture_size size;
        struct picture_fault fault;
        struct byte_view file;

        file = drawn(pixels, cases[i].written);
        if (!read_file(file, &options, values, &size, &fault))
            fail_msg("%s", fault.text);
        assert_int_equal(size.rank, 3);
        assert_int_equal(size.dims[0], HEIGHT);
        assert_int_equal(size.dims[1], WIDTH);
        assert_int_equal(size.dims[2], cases[i].expected);
        assert_memory_equal(values, pixels, (size_t)(PIXELS * cases[i].expected));
        WebPFree((void *)(uintptr_t)file.data);
    }
}

static void
a_picture_is_an_animation_of_one_frame(void **state)
{
    const struct picture_options options = { .stage = "decode_image",
                                             .channels = 3,
                                             .dtype = TUNDISH_UINT8,
                                             .takes_everything = true,
                                             .expand_animations = true };
    uint8_t pixels[PIXELS * 3], values[PIXELS * 4];
    struct picture_size size;
    struct picture_fault fault;
    struct byte_view file;

    (void)state;
    file = drawn(pixels, 3);
    if (!read_file(file, &options, values, &size, &fault))
        fail_msg("%s", fault.text);
    assert_int_equal(size.rank, 4);
    assert_int_equal(size.dims[0], 1);
    assert_memory_equal(values, pixels, sizeof pixels);
    WebPFree((void *)(uintptr_t)file.data);
}

static void
another_number_of_channels_is_refused(void **state)
{
    const struct picture_options options = {
        .stage = "decode_image", .channels = 4, .dtype = TUNDISH_UINT8, .takes_everything = true
    };
    uint8_t pixels[PIXELS * 3], values[PIXELS * 4];
    struct picture_size size;
    struct picture_fault fault;
    struct byte_view file;

    (void)state;
    file = drawn(pixels, 3);
    assert_false(read_file(file, &options, values, &size, &fault));
    assert_string_equal(fault.text, "decode_image: the WebP has 3 channels, not 4");
    WebPFree((void *)(uintptr_t)file.data);
}

static void
files_that_end_too_early_are_refused(void **state)
{
    const struct picture_options options = {
        .stage = "decode_image", .channels = 3, .dtype = TUNDISH_UINT8, .takes_everything = true
    };
    uint8_t pixels[PIXELS * 3], values[PIXELS * 4];
    struct picture_size size;
    struct picture_fault fault;
    struct byte_view file;

    (void)state;
    file = drawn(pixels, 3);
    for (size_t bytes = 12; bytes + 1 < file.size; bytes++) {
        /* Memory of exactly that size, so that what is read after it is noticed. */
        uint8_t *copy = malloc(bytes);

        memcpy(copy, file.data, bytes);
        assert_false(read_file((struct byte_view){ copy, bytes }, &options, values, &size, &fault));
        assert_non_null(strstr(fault.text, "decode_image"));
        free(copy);
    }
    WebPFree((void *)(uintptr_t)file.data);
}

TEST_FILE(test_picture_webp)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_that_were_written),
        cmocka_unit_test(a_picture_is_an_animation_of_one_frame),
        cmocka_unit_test(another_number_of_channels_is_refused),
        cmocka_unit_test(files_that_end_too_early_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
