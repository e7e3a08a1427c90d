/* test_picture_jxl.c - JPEG XL files: their channels, damaged ones, what cannot be asked of them.
 *
 * libjxl's cjxl wrote the files without loss: 20 by 30 pixels, whose values are those of `drawn`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "content/images/picture.h"
#include "unit/test_file.h"

enum { HEIGHT = 20, WIDTH = 30 };

static const char g_file[] =
    "\xff\x0a\x98\x40\x10\x14\x17\x02\x08\x02\x01\x00\x60\x00\x4b\x28\x24\xc6\x97\x0a"
    "\x12\x02\x0a\x94\x19\x63\xcc\x78\x31\xc7\x00\x76\x02\x80\xa6\x09\x61\x06";
static const char ga_file[] =
    "\xff\x0a\x98\x40\xb0\x28\x2e\x04\x08\x08\x10\x00\x80\x00\x4b\x28\x24\xc6\x97\x0a"
    "\x12\x02\x0a\xe4\x4c\x8c\x31\xe3\xc5\x89\x31\x58\xce\x08\x40\xc5\x00\x68\x80\xd4"
    "\x7b\xb4\xe3\x83\xd1\x1f";
static const char rgb_file[] =
    "\xff\x0a\x98\x40\x10\x50\x5c\x08\x08\x02\x01\x00\x88\x00\x4b\x28\x34\x16\x1e\x89"
    "\x8f\x82\x84\x19\xa0\x58\xcd\xff\x28\x33\xc6\x98\xf1\x62\x1e\xc0\x19\x00\x08\x00"
    "\x30\xbc\xda\xcb\x67\xa1\x80\x00";
static const char rgba_file[] =
    "\xff\x0a\x98\x40\xb0\xa0\xb8\x10\x08\x08\x10\x00\xcc\x00\x4b\x28\x31\xdd\x3c\xab"
    "\x87\x29\xdc\x28\x48\x98\x01\x0a\x54\x17\xe3\x4d\x8c\x89\x32\x63\x8c\x19\x2f\xce"
    "\x01\x1c\x64\xe9\xa4\x05\xd3\x8f\xcf\x75\x01\x60\xa0\x02\x68\x0c\x22\xbc\x69\xd4"
    "\xc3\x40\x49\xc3\x2c";
static const char cont_file[] =
    "\x00\x00\x00\x0c\x4a\x58\x4c\x20\x0d\x0a\x87\x0a\x00\x00\x00\x14\x66\x74\x79\x70"
    "\x6a\x78\x6c\x20\x00\x00\x00\x00\x6a\x78\x6c\x20\x00\x00\x00\x38\x6a\x78\x6c\x63"
    "\xff\x0a\x98\x40\x10\x50\x5c\x08\x08\x02\x01\x00\x88\x00\x4b\x28\x34\x16\x1e\x89"
    "\x8f\x82\x84\x19\xa0\x58\xcd\xff\x28\x33\xc6\x98\xf1\x62\x1e\xc0\x19\x00\x08\x00"
    "\x30\xbc\xda\xcb\x67\xa1\x80\x00";

#define FILE_BYTES(name)                                                                           \
    {                                                                                              \
        (const uint8_t *)name##_file, sizeof name##_file - 1                                       \
    }

static uint8_t
drawn(int y, int x, int channel)
{
    int value = y * 5 + x * 3 + channel * 20;

    return (uint8_t)(value > 255 ? 255 : value);
}

/* A copy of just the bytes, so that reading beyond them is seen. */
static bool
read_file(struct byte_view file, const struct picture_options *options, uint8_t *values,
          struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct scratch *scratch = scratch_open();
    uint8_t *copy = malloc(file.size);
    const struct byte_view bytes = { copy, file.size };
    bool is_good;

    memcpy(copy, file.data, file.size);
    is_good = picture_measure(options, bytes, ret_size, ret_fault) &&
              picture_read(options, bytes, ret_size, scratch, values, ret_fault);
    scratch_close(scratch);
    free(copy);
    return is_good;
}

static void
pixels_have_the_files_own_channels(void **state)
{
    static const struct {
        struct byte_view file;
        int channels;
    } cases[] = { { FILE_BYTES(g), 1 },
                  { FILE_BYTES(ga), 2 },
                  { FILE_BYTES(rgb), 3 },
                  { FILE_BYTES(rgba), 4 },
                  { FILE_BYTES(cont), 3 } };
    static uint8_t values[HEIGHT * WIDTH * 4];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int channels = 0; channels <= 4; channels++) {
            struct picture_options options = { .stage = "decode_image",
                                               .channels = channels,
                                               .dtype = TUNDISH_UINT8,
                                               .takes_everything = true };
            struct picture_size size;
            struct picture_fault fault;
            bool is_good = read_file(cases[i].file, &options, values, &size, &fault);

            assert_int_equal(is_good, channels == 0 || channels == cases[i].channels);
            if (!is_good) {
                assert_non_null(strstr(fault.text, "channels, not"));
                continue;
            }
            assert_int_equal(size.rank, 3);
            assert_true(size.dims[0] == HEIGHT && size.dims[1] == WIDTH);
            assert_int_equal(size.dims[2], cases[i].channels);
            for (int k = 0; k < HEIGHT * WIDTH * cases[i].channels; k++) {
                int pixel = k / cases[i].channels;

                assert_int_equal(values[k],
                                 drawn(pixel / WIDTH, pixel % WIDTH, k % cases[i].channels));
            }
        }
}

static void
damage_and_other_dtypes_are_told(void **state)
{
    static uint8_t values[HEIGHT * WIDTH * 4];
    struct picture_options options = { .stage = "decode_image",
                                       .dtype = TUNDISH_UINT8,
                                       .takes_everything = true };
    struct picture_size size;
    struct picture_fault fault;
    struct byte_view file = FILE_BYTES(rgba);

    (void)state;
    for (file.size = 2; file.size < sizeof rgba_file - 1; file.size++) {
        assert_false(read_file(file, &options, values, &size, &fault));
        assert_non_null(strstr(fault.text, "the JPEG XL"));
    }
    options.dtype = TUNDISH_FLOAT32;
    assert_false(read_file((struct byte_view)FILE_BYTES(rgb), &options, values, &size, &fault));
    assert_non_null(strstr(fault.text, "uint8 only"));
}

TEST_FILE(test_picture_jxl)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_have_the_files_own_channels),
        cmocka_unit_test(damage_and_other_dtypes_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
