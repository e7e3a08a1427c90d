/* test_content_sounds.c - spectrograms of sounds whose spectrum is known. */
#include "stage_fixture.h"
#include "unit/test_file.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 512, BINS = 8, FRAMES = 5 };

/* A tone of so many hertz, at 8000 samples a second. */
static void
play(float hertz, float samples[SAMPLES])
{
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = sinf(2 * 3.14159265F * hertz * (float)i / 8000);
}

#define STAGE(more)                                                                                \
    "mel_spectrogram: {fft_length: 128, sequence_stride: 128, sampling_rate: 8000, "               \
    "num_mel_bins: 8, min_freq: 0.0, max_freq: 4000.0, " more "}"

/* The bin of the most power in the middle frame; *ret_values are all bins of all frames. */
static int
loudest_bin(const float samples[SAMPLES], const char *stage, float ret_values[BINS * FRAMES])
{
    struct stage_run *run = stage_run_open(1, 0);
    int loudest = 0;

    stage_run_add(run, "x", TUNDISH_FLOAT32, samples, (const int64_t[]){ SAMPLES, -1 });
    if (stage_run(run, stage) != TUNDISH_OK)
        fail_msg("%s", run->text);
    assert_string_equal(stage_run_spec(run, "x"), "float32[8,5]");
    memcpy(ret_values, run->outputs[0].values, BINS * FRAMES * sizeof *ret_values);
    for (int bin = 0; bin < BINS; bin++)
        if (ret_values[bin * FRAMES + 2] > ret_values[loudest * FRAMES + 2])
            loudest = bin;
    stage_run_close(run);
    return loudest;
}

/* The bin whose triangle, evenly spaced on HTK's mel scale, has its centre closest. */
static int
bin_of(double hertz)
{
    double mel = 1127 * log(1 + hertz / 700), top = 1127 * log(1 + 4000.0 / 700);

    return (int)lround(mel / (top / (BINS + 1))) - 1;
}

static void
a_tone_is_loudest_in_its_bin(void **state)
{
    static const float tones[] = { 250, 500, 1000, 2000, 3000 };
    float samples[SAMPLES], values[BINS * FRAMES];

    (void)state;
    for (size_t i = 0; i < sizeof tones / sizeof *tones; i++) {
        play(tones[i], samples);
        assert_int_equal(loudest_bin(samples, STAGE("power_to_db: false"), values),
                         bin_of((double)tones[i]));
    }
}

static void
decibels_are_ten_logarithms_of_the_power(void **state)
{
    float samples[SAMPLES], power[BINS * FRAMES], decibels[BINS * FRAMES];

    (void)state;
    play(1000, samples);
    (void)loudest_bin(samples, STAGE("power_to_db: false"), power);
    (void)loudest_bin(samples, STAGE("power_to_db: true, top_db: 200.0"), decibels);
    for (int i = 0; i < BINS * FRAMES; i++) {
        float expected = 10 * log10f(power[i] > 1e-10F ? power[i] : 1e-10F);

        assert_true(fabsf(decibels[i] - expected) < 0.01F);
    }
}

static void
silence_has_no_power(void **state)
{
    static const float samples[SAMPLES];
    float values[BINS * FRAMES];

    (void)state;
    (void)loudest_bin(samples, STAGE("power_to_db: false"), values);
    for (int i = 0; i < BINS * FRAMES; i++)
        assert_true(values[i] == 0);
    (void)loudest_bin(samples, STAGE("power_to_db: true"), values);
    for (int i = 0; i < BINS * FRAMES; i++)
        assert_true(fabsf(values[i] + 100) < 1e-3F); /* min_power: 1e-10 */
}

/* Infinity times a weight of 0 is NaN, as in TensorFlow's product of matrices. */
static void
power_that_overflows_spoils_all_bins_of_its_frame(void **state)
{
    float samples[SAMPLES], values[BINS * FRAMES];

    (void)state;
    play(1000, samples);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] *= 1e18F;
    (void)loudest_bin(samples, STAGE("power_to_db: false"), values);
    for (int bin = 0; bin < BINS; bin++)
        assert_true(bin_of(1000) - 1 <= bin && bin <= bin_of(1000) + 1
                        ? isinf(values[bin * FRAMES + 2]) || isnan(values[bin * FRAMES + 2])
                        : isnan(values[bin * FRAMES + 2]));
}

TEST_FILE(test_content_sounds)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tone_is_loudest_in_its_bin),
        cmocka_unit_test(decibels_are_ten_logarithms_of_the_power),
        cmocka_unit_test(silence_has_no_power),
        cmocka_unit_test(power_that_overflows_spoils_all_bins_of_its_frame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
