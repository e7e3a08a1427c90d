/* test_content_images.c - images: what the recorded cases do not say. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <string.h>

static void
stage_says(struct stage_run *run, const char *stage, const char *expected)
{
    stage_run(run, stage);
    if (strstr(run->text, expected) == NULL)
        fail_msg("%s: %s", stage, run->text);
}

static void
file_says(const void *bytes, size_t size, const char *stage, const char *expected)
{
    struct byte_view file = bytes_view(bytes, size);
    struct stage_run *run = stage_run_open(1, 0);

    stage_run_add(run, "x", TUNDISH_STRING, &file, NULL);
    stage_says(run, stage, expected);
    stage_run_close(run);
}

static void
sizes_that_the_bytes_cannot_hold_are_refused(void **state)
{
    static const uint8_t png[] = "\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\x70\0\0\0\x70\0\x08\x02\0\0\0"
                                 "\0\0\0\0\0\0\0\0IDAT";
    static const uint8_t bmp[] = "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\0\x10\0\0\0\x10\0\0\1\0"
                                 "\x18\0\0\0\0\0";
    static const uint8_t gif[] = "GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\xff\xff"
                                 "\xff\xff\0\2\2\x44\1\0;";

    (void)state;
    file_says(png, sizeof png - 1, "decode_png", "PNG");
    file_says(bmp, sizeof bmp - 1, "decode_image", "do not hold");
    file_says(gif, sizeof gif - 1, "decode_image", "GIF");
    file_says("", 0, "decode_image", "empty");
    file_says("BM", 2, "decode_jpeg", "only decode_image");
    file_says("text", 4, "decode_image", "not an image");
}

static void
pixels_lie_between_their_neighbours(void **state)
{
    static const uint8_t x[] = { 0, 10, 20, 30 };
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_UINT8, x, (const int64_t[]){ 1, 4, 1, -1 });
    assert_int_equal(stage_run(run, "resize: {size: [1, 2]}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[[[5] [25]]]");
    assert_int_equal(stage_run(run, "resize: {size: [1, 2], method: nearest}"), TUNDISH_OK);
    assert_string_equal(stage_run_spec(run, "x"), "uint8[1,2,1]");
    assert_int_equal(stage_run(run, "center_crop: {height: 1, width: 2}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[[[10] [20]]]");
    stage_run_close(run);
}

static void
what_is_no_image_is_refused(void **state)
{
    static const float x[] = { 1, 2 };
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_FLOAT32, x, (const int64_t[]){ 2, -1 });
    stage_says(run, "resize: {size: [2, 2]}", "rank 1");
    stage_says(run, "random_flip", "rank 1");
    stage_says(run, "decode_jpeg", "bytes of a file");
    stage_run_close(run);
}

static void
scaled_needs_a_resize_behind_it(void **state)
{
    (void)state;
    file_says("x", 1, "decode_jpeg: {scaled: true}", "needs a later resize");
    file_says("x", 1, "decode_jpeg: {channels: 3, scaled: true, ratio: 2}", "ratio");
}

static void
wav_values_are_parts_of_one(void **state)
{
    static const char wav[] = "RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0"
                              "\x10\0data\4\0\0\0\0\x40\0\x80";
    struct byte_view file = bytes_view(wav, sizeof wav - 1);
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_STRING, &file, NULL);
    assert_int_equal(stage_run(run, "decode_wav: {desired_samples: 3}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[[0.5] [-1] [0]]");
    assert_int_equal(stage_run(run, "decode_wav: {desired_channels: 2}"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[[0.5 0.5] [-1 -1]]");
    assert_int_equal(stage_run(run, "decode_wav: {desired_channels: 0}"), TUNDISH_OK);
    assert_string_equal(stage_run_spec(run, "x"), "float32[-1,0]");
    stage_run_close(run);
    file_says(wav, sizeof wav - 3, "decode_wav", "truncated");
    file_says(wav, sizeof wav - 1,
              "decode_wav: {desired_samples: 2147483647, desired_channels: 1000}", "too much");
}

static void
chunks_before_the_format_are_those_of_broadcasters(void **state)
{
#define FORMAT                                                                                     \
    "fmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"                                     \
    "data\2\0\0\0\0\x40"
    static const char bext[] = "RIFF\x28\0\0\0WAVEbext\3\0\0\0abc" FORMAT;
    static const char list[] = "RIFF\x28\0\0\0WAVELIST\3\0\0\0abc" FORMAT;
    struct byte_view file = bytes_view(bext, sizeof bext - 1);
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_STRING, &file, NULL);
    assert_int_equal(stage_run(run, "decode_wav"), TUNDISH_OK);
    assert_string_equal(stage_run_column(run, "x"), "[[0.5]]");
    stage_run_close(run);
    file_says(list, sizeof list - 1, "decode_wav", "precedes the WAV's format");
}

static void
spectra_are_of_their_columns_dtype(void **state)
{
    static const float narrow[] = { 1, 0, -1, 0, 1, 0 };
    static const double wide[] = { 1, 0, -1, 0, 1, 0 };
    struct stage_run *run = stage_run_open(1, 0);

    (void)state;
    stage_run_add(run, "x", TUNDISH_FLOAT32, narrow, (const int64_t[]){ 6, -1 });
    stage_run_add(run, "y", TUNDISH_FLOAT64, wide, (const int64_t[]){ 6, -1 });
    assert_int_equal(
        stage_run(run, "stft: {columns: [x, y], frame_length: 4, frame_step: 2, window: null}"),
        TUNDISH_OK);
    assert_string_equal(stage_run_spec(run, "y"), "float64[2,3]");
    assert_string_equal(stage_run_column(run, "x"), "[[0 2 0] [0 2 0]]");
    assert_string_equal(stage_run_column(run, "y"), "[[0 2 0] [0 2 0]]");
    stage_run_close(run);
}

enum { HEIGHT = 3, WIDTH = 5, PIXELS = HEIGHT * WIDTH, CHANNELS_MAX = 70 };

/* The image that a stage makes of another. */
static void
make_image(const char *stage, const float *image, int64_t channels, float *ret_image)
{
    static const uint64_t ordinals[] = { 7 };
    struct stage_run *run = stage_run_open(1, 0);

    run->output.ordinals = ordinals;
    stage_run_add(run, "x", TUNDISH_FLOAT32, image,
                  (const int64_t[]){ HEIGHT, WIDTH, channels, -1 });
    if (stage_run(run, stage) != TUNDISH_OK)
        fail_msg("%s", run->text);
    memcpy(ret_image, run->outputs[0].values, (size_t)(PIXELS * channels) * sizeof *ret_image);
    stage_run_close(run);
}

/* A layer whose channels are alike does to each what it does to an image of that alone. */
static void
channels_are_changed_each_by_itself(void **state)
{
    static const char *const stages[] = { "random_contrast: {factor: 0.5, seed: 3}",
                                          "random_flip: {seed: 3}",
                                          "random_flip: {seed: 4}",
                                          "random_flip: {seed: 5, mode: horizontal}",
                                          "random_flip: {seed: 6, mode: horizontal}",
                                          "random_brightness: {factor: 0.3, seed: 3}" };
    static const int64_t numbers[] = { 2, 3, 64, CHANNELS_MAX };
    static float image[PIXELS * CHANNELS_MAX], made[PIXELS * CHANNELS_MAX], one[PIXELS],
        each[PIXELS];

    (void)state;
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            int64_t channels = numbers[n];

            for (int64_t i = 0; i < PIXELS * channels; i++)
                image[i] = (float)(i * i % 251) + 0.25F * (float)(i % 7);
            make_image(stages[s], image, channels, made);
            for (int64_t c = 0; c < channels; c++) {
                for (int64_t i = 0; i < PIXELS; i++)
                    one[i] = image[i * channels + c];
                make_image(stages[s], one, 1, each);
                for (int64_t i = 0; i < PIXELS; i++)
                    assert_true(made[i * channels + c] == each[i]);
            }
        }
}

/* More values than their repetitions have, and not a multiple of those. */
static void
means_repeat_along_the_last_axis(void **state)
{
    enum { ROWS = 67 };
    static const float means[] = { 1, 20, 3 }, deviations[] = { 2, 4, 3 };
    float values[3 * ROWS];

    (void)state;
    for (int invert = 0; invert < 2; invert++) {
        struct stage_run *run = stage_run_open(1, 0);

        for (int i = 0; i < 3 * ROWS; i++)
            values[i] = (float)(i * 7 % 31);
        stage_run_add(run, "x", TUNDISH_FLOAT32, values, (const int64_t[]){ ROWS, 3, -1 });
        assert_int_equal(stage_run(run, invert ? "normalization: {mean: [1.0, 20.0, 3.0], "
                                                 "variance: [4.0, 16.0, 9.0], invert: true}"
                                               : "normalization: {mean: [1.0, 20.0, 3.0], "
                                                 "variance: [4.0, 16.0, 9.0]}"),
                         TUNDISH_OK);
        for (int i = 0; i < 3 * ROWS; i++)
            assert_true(((const float *)run->outputs[0].values)[i] ==
                        (invert ? means[i % 3] + values[i] * deviations[i % 3]
                                : (values[i] - means[i % 3]) / deviations[i % 3]));
        stage_run_close(run);
    }
}

TEST_FILE(test_content_images)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_the_bytes_cannot_hold_are_refused),
        cmocka_unit_test(pixels_lie_between_their_neighbours),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(scaled_needs_a_resize_behind_it),
        cmocka_unit_test(wav_values_are_parts_of_one),
        cmocka_unit_test(chunks_before_the_format_are_those_of_broadcasters),
        cmocka_unit_test(spectra_are_of_their_columns_dtype),
        cmocka_unit_test(channels_are_changed_each_by_itself),
        cmocka_unit_test(means_repeat_along_the_last_axis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
