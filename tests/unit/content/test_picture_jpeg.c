/* test_picture_jpeg.c - JPEGs that are shrunk while they are read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "content/images/picture.h"
#include "jpeg_fixture.h"
#include "unit/test_file.h"

struct pixels {
    struct picture_size size;
    uint8_t *values;
};

static struct pixels
read_covering(const struct jpeg_made *made, int64_t height, int64_t width)
{
    struct picture_options options = { .stage = "decode_jpeg",
                                       .dtype = TUNDISH_UINT8,
                                       .jpeg = picture_jpeg_default };
    struct byte_view bytes = { made->bytes, made->size };
    struct scratch *scratch = scratch_open();
    struct picture_fault fault;
    struct pixels pixels;

    options.jpeg.cover_height = height;
    options.jpeg.cover_width = width;
    if (!picture_measure(&options, bytes, &pixels.size, &fault))
        fail_msg("%s", fault.text);
    pixels.values =
        malloc((size_t)(pixels.size.dims[0] * pixels.size.dims[1] * pixels.size.dims[2]));
    if (!picture_read(&options, bytes, &pixels.size, scratch, pixels.values, &fault))
        fail_msg("%s", fault.text);
    scratch_close(scratch);
    return pixels;
}

/* The mean of what pixel (y, x) covers, when 8 of the whole picture become `eighths`. */
static double
mean_of(const struct pixels *whole, int64_t y, int64_t x, int64_t c, int64_t eighths)
{
    int64_t height = whole->size.dims[0], width = whole->size.dims[1];
    int64_t channels = whole->size.dims[2];
    double sum = 0, weight = 0;

    for (int64_t v = y * 8; v < y * 8 + 8; v++)
        for (int64_t u = x * 8; u < x * 8 + 8; u++)
            if (v / eighths < height && u / eighths < width) {
                sum += whole->values[(v / eighths * width + u / eighths) * channels + c];
                weight++;
            }
    return sum / weight;
}

/* A pixel is about the mean of what it covers: the fewer pixels are left of a block, the less of
 * its slopes is in them; at an eighth one sample of chroma may stand for two pixels. */
static void
assert_means(const struct pixels *whole, const struct pixels *shrunk, int64_t eighths)
{
    int64_t height = shrunk->size.dims[0], width = shrunk->size.dims[1];
    int64_t channels = shrunk->size.dims[2];
    double bound = eighths == 1 ? 45 : eighths <= 3 ? 25 : 15, sum = 0;

    assert_int_equal(height, (whole->size.dims[0] * eighths + 7) / 8);
    assert_int_equal(width, (whole->size.dims[1] * eighths + 7) / 8);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < channels; c++) {
                double mean = mean_of(whole, y, x, c, eighths);
                int value = shrunk->values[(y * width + x) * channels + c];

                sum += fabs(value - mean);
                if (fabs(value - mean) > bound)
                    fail_msg("%d eighths, (%d, %d, %d) of %d x %d: %d, the mean is %g",
                             (int)eighths, (int)y, (int)x, (int)c, (int)height, (int)width, value,
                             mean);
            }
    if (height * width >= 64)
        assert_true(sum / (double)(height * width * channels) < 3);
}

static void
shrink(const struct jpeg_make *make)
{
    struct jpeg_made made = jpeg_fixture_make(make, make->width);
    struct pixels whole = read_covering(&made, 0, 0);

    for (int64_t eighths = 1; eighths <= 8; eighths++) {
        int64_t height = (whole.size.dims[0] * eighths + 7) / 8;
        int64_t width = (whole.size.dims[1] * eighths + 7) / 8;
        struct pixels shrunk = read_covering(&made, height, width);

        /* A small picture may be as large by fewer eighths. */
        if (whole.size.dims[0] >= 8 || whole.size.dims[1] >= 8)
            assert_means(&whole, &shrunk, eighths);
        free(shrunk.values);
    }
    free(whole.values);
    jpeg_fixture_free(&made);
}

static void
shrunk_pixels_are_means(void **state)
{
    static const struct jpeg_make makes[] = {
        { .luma_across = 1, .luma_down = 1 },
        { .luma_across = 2, .luma_down = 1 },
        { .luma_across = 2, .luma_down = 2 },
        { .luma_across = 1, .luma_down = 1, .is_gray = true },
        { .luma_across = 2, .luma_down = 2, .is_progressive = true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        for (unsigned side = 1; side <= 40; side++) {
            struct jpeg_make make = makes[i];

            make.width = side;
            make.height = 41 - side;
            make.quality = 95;
            shrink(&make);
        }
}

/* By the library alone, with the settings of picture_jpeg_default. The caller frees. */
static uint8_t *
read_plainly(const struct jpeg_made *made)
{
    struct jpeg_decompress_struct info = { 0 };
    struct jpeg_error_mgr errors;
    size_t row_bytes;
    uint8_t *pixels;

    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, made->bytes, made->size);
    jpeg_read_header(&info, TRUE);
    info.do_fancy_upsampling = picture_jpeg_default.fancy_upscaling ? TRUE : FALSE;
    info.dct_method = picture_jpeg_default.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_start_decompress(&info);
    row_bytes = (size_t)info.output_width * (size_t)info.output_components;
    pixels = malloc(row_bytes * info.output_height);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels + row_bytes * info.output_scanline;

        assert_int_equal(jpeg_read_scanlines(&info, &row, 1), 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return pixels;
}

/* Whether or not parts of the library have been replaced. */
static void
whole_pictures_are_the_librarys(void **state)
{
    static const struct jpeg_make makes[] = {
        { .luma_across = 1, .luma_down = 1, .quality = 95, .noise = 60 },
        { .luma_across = 2, .luma_down = 1, .quality = 50, .restart_interval = 5 },
        { .luma_across = 2, .luma_down = 2, .quality = 80, .noise = 20, .has_own_codes = true },
        { .luma_across = 1, .luma_down = 1, .quality = 90, .is_gray = true },
        { .luma_across = 2, .luma_down = 2, .quality = 90, .is_progressive = true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        for (unsigned side = 1; side <= 97; side += 16) {
            struct jpeg_make make = makes[i];
            struct jpeg_made made;
            struct pixels ours;
            uint8_t *plain;

            make.width = side;
            make.height = 98 - side;
            made = jpeg_fixture_make(&make, side);
            ours = read_covering(&made, 0, 0);
            plain = read_plainly(&made);
            assert_memory_equal(
                ours.values, plain,
                (size_t)(ours.size.dims[0] * ours.size.dims[1] * ours.size.dims[2]));
            free(plain);
            free(ours.values);
            jpeg_fixture_free(&made);
        }
}

/* Arithmetic coding needs no bit a block, so a few bytes may claim any number of them. */
static void
coefficients_that_few_bytes_claim_get_no_memory(void **state)
{
    static const uint8_t head[] = {
        0xff, 0xd8, 0xff, 0xca, 0, 17, 8,    0xff, 0xdc, 0xff, 0xdc, 3,    1,
        0x11, 0,    2,    0x11, 0, 3,  0x11, 0,    0xff, 0xda, 0,    12,   3,
        1,    0,    2,    0,    3, 0,  0,    0,    0,    0,    0,    0xff, 0xd9,
    };
    struct picture_options options = { .stage = "decode_jpeg",
                                       .channels = 3,
                                       .jpeg = picture_jpeg_default };
    struct picture_fault fault = { 0 };
    struct picture_size size;

    (void)state;
    options.jpeg.ratio = 8;
    assert_false(picture_measure(&options, (struct byte_view){ head, sizeof head }, &size, &fault));
    assert_non_null(strstr(fault.text, "cannot hold them"));
}

TEST_FILE(test_picture_jpeg)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pictures_are_the_librarys),
        cmocka_unit_test(shrunk_pixels_are_means),
        cmocka_unit_test(coefficients_that_few_bytes_claim_get_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
