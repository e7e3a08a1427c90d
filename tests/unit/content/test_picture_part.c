/* test_picture_part.c - a part of a JPEG, read alone, next to the same part of the whole picture.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "content/images/picture.h"
#include "core/philox.h"
#include "jpeg_fixture.h"
#include "unit/test_file.h"

/* Of one thread ThreadSanitizer has little to tell, and takes long. */
#if defined __SANITIZE_THREAD__
enum { PARTS = 2, DAMAGES = 36 };
#else
enum { PARTS = 24, DAMAGES = 300 };
#endif

static const struct jpeg_make makes[] = {
    { .width = 170, .height = 150, .luma_across = 2, .luma_down = 2, .quality = 90, .noise = 20 },
    { .width = 161, .height = 183, .luma_across = 2, .luma_down = 1, .quality = 75, .noise = 5 },
    { .width = 164, .height = 64, .luma_across = 1, .luma_down = 1, .quality = 99, .noise = 127 },
    { .width = 100, .height = 250, .luma_across = 1, .luma_down = 2, .quality = 95, .noise = 60 },
    { .width = 233, .height = 79, .luma_across = 4, .luma_down = 1, .quality = 50, .noise = 9 },
    { .width = 133, .height = 179, .luma_across = 4, .luma_down = 2, .quality = 80, .noise = 9 },
    { .width = 17, .height = 33, .luma_across = 2, .luma_down = 2, .quality = 90, .noise = 30 },
    { .width = 1, .height = 1, .luma_across = 2, .luma_down = 2, .quality = 90 },
    { .width = 90, .height = 70, .luma_across = 1, .luma_down = 1, .is_gray = true, .quality = 98 },
    { .width = 170,
      .height = 150,
      .luma_across = 2,
      .luma_down = 2,
      .quality = 90,
      .noise = 20,
      .restart_interval = 3 },
    { .width = 170,
      .height = 150,
      .luma_across = 2,
      .luma_down = 2,
      .quality = 90,
      .noise = 20,
      .is_progressive = true },
};

/* The receiver of a part. */
struct reading {
    struct picture_part wanted;
    int64_t channels, rows;
    uint8_t *memory, *values;
};

static uint8_t *
begin(void *context, const struct picture_size *size, size_t bytes, struct picture_part *part)
{
    struct reading *reading = context;

    assert_int_equal(part->height, size->dims[0]);
    assert_int_equal(part->width, size->dims[1]);
    *part = reading->wanted;
    reading->rows = 0;
    reading->channels = size->dims[2];
    free(reading->memory);
    reading->memory = malloc(bytes + 64);
    memset(reading->memory, 0xA5, bytes + 64);
    return reading->memory;
}

static void
take_row(void *context, const uint8_t *row)
{
    struct reading *reading = context;
    size_t bytes = (size_t)(reading->wanted.width * reading->channels);

    assert_true(reading->rows < reading->wanted.height);
    memcpy(reading->values + (size_t)reading->rows++ * bytes, row, bytes);
}

static int64_t
below(struct tnd_random *random, int64_t limit)
{
    return (int64_t)(tnd_random_next(random) % (uint64_t)limit);
}

static struct picture_part
draw_part(struct tnd_random *random, const struct picture_size *size)
{
    struct picture_part part;

    part.height = 1 + below(random, size->dims[0]);
    part.width = 1 + below(random, size->dims[1]);
    part.top = below(random, size->dims[0] - part.height + 1);
    part.left = below(random, size->dims[1] - part.width + 1);
    return part;
}

static void
assert_same_rows(const struct reading *reading, const uint8_t *whole,
                 const struct picture_size *size)
{
    const struct picture_part *part = &reading->wanted;
    size_t bytes = (size_t)(part->width * reading->channels);

    assert_int_equal(reading->rows, part->height);
    for (int64_t y = 0; y < part->height; y++)
        assert_memory_equal(reading->values + (size_t)y * bytes,
                            whole + ((part->top + y) * size->dims[1] + part->left) * size->dims[2],
                            bytes);
}

/* A file that is read whole and one of which parts are read give the same pixels, or the same
 * sentence. */
static void
assert_same(const struct picture_options *options, const struct jpeg_made *made, int parts,
            struct tnd_random *random)
{
    struct byte_view bytes = { made->bytes, made->size };
    struct scratch *scratch = scratch_open();
    struct picture_fault fault = { "" }, other = { "" };
    struct picture_size size;
    uint8_t *whole;
    bool is_good;

    if (!picture_measure(options, bytes, &size, &fault)) {
        scratch_close(scratch);
        return;
    }
    whole = malloc((size_t)(size.dims[0] * size.dims[1] * size.dims[2]));
    is_good = picture_read(options, bytes, &size, scratch, whole, &fault);
    for (int i = 0; i < parts; i++) {
        struct reading reading = { .wanted = draw_part(random, &size) };
        const struct picture_rows rows = { begin, take_row, &reading };

        reading.values =
            malloc((size_t)(reading.wanted.height * reading.wanted.width * size.dims[2]));
        assert_int_equal(picture_read_rows(options, bytes, scratch, &rows, &other), is_good);
        if (is_good)
            assert_same_rows(&reading, whole, &size);
        else
            assert_string_equal(other.text, fault.text);
        free(reading.memory);
        free(reading.values);
    }
    free(whole);
    scratch_close(scratch);
}

static struct picture_options
options_of(int variant)
{
    struct picture_options options = { .stage = "decode_jpeg",
                                       .channels = variant % 3 == 1 ? 1 : 3,
                                       .dtype = TUNDISH_UINT8,
                                       .jpeg = picture_jpeg_default };

    options.jpeg.fancy_upscaling = variant % 2 == 0;
    options.jpeg.ratio = 1 << variant / 6 % 3;
    options.jpeg.accurate_dct = variant % 5 == 0;
    options.jpeg.try_recover_truncated = variant % 4 == 3;
    return options;
}

static void
parts_are_those_of_the_whole_picture(void **state)
{
    struct tnd_random random = tnd_random_of_seeds(7, 11);

    (void)state;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        struct jpeg_made made = jpeg_fixture_make(&makes[i], i);

        for (int variant = 0; variant < 18; variant++) {
            const struct picture_options options = options_of(variant);

            assert_same(&options, &made, PARTS, &random);
        }
        jpeg_fixture_free(&made);
    }
}

/* What lies outside the part is not made, and must be sound all the same. */
static void
damaged_files_are_told_as_whole_ones_are(void **state)
{
    struct tnd_random random = tnd_random_of_seeds(3, 5);

    (void)state;
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        struct jpeg_made made = jpeg_fixture_make(&makes[i], i);

        for (int k = 0; k < DAMAGES; k++) {
            const struct picture_options options = options_of(k);
            struct jpeg_made damaged = made;

            if (k % 3 == 0)
                damaged.size -= (unsigned long)below(&random, (int64_t)made.size);
            damaged.bytes = malloc(damaged.size + 64);
            memcpy(damaged.bytes, made.bytes, damaged.size + 64);
            if (k % 3 != 0)
                damaged.bytes[below(&random, (int64_t)made.size)] = (uint8_t)below(&random, 256);
            assert_same(&options, &damaged, 2, &random);
            free(damaged.bytes);
        }
        jpeg_fixture_free(&made);
    }
}

TEST_FILE(test_picture_part)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_those_of_the_whole_picture),
        cmocka_unit_test(damaged_files_are_told_as_whole_ones_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
