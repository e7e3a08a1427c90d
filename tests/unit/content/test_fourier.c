/* test_fourier.c - transforms of any length are those of the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "content/sounds/fourier.h"
#include "content/sounds/fourier_lanes.h"
#include "core/memory.h"
#include "unit/test_file.h"

struct case_of_length {
    struct fourier *fourier;
    double complex *from, *to, *room;
};

static void
open_case(struct case_of_length *one, int64_t length)
{
    one->fourier = fourier_open(length);
    one->from = tnd_zalloc((size_t)length, sizeof *one->from);
    one->to = tnd_zalloc((size_t)length, sizeof *one->to);
    one->room = tnd_zalloc((size_t)fourier_room(one->fourier), sizeof *one->room);
}

static void
close_case(struct case_of_length *one)
{
    fourier_close(one->fourier);
    free(one->from);
    free(one->to);
    free(one->room);
}

/* exp(-2 pi i k / length) */
static double complex
root_of(int64_t k, int64_t length)
{
    double angle = -2 * M_PI * (double)(k % length) / (double)length;

    return cos(angle) + sin(angle) * (double complex)I;
}

static void
each_length_is_the_definition(void **state)
{
    (void)state;
    for (int64_t length = 1; length < 400; length += length < 260 ? 1 : 17) {
        struct case_of_length one;

        open_case(&one, length);
        for (int64_t k = 0; k < length; k++)
            one.from[k] = sin((double)(k * k % 101)) + cos((double)(3 * k)) * (double complex)I;
        fourier_transform(one.fourier, one.from, one.to, one.room);
        for (int64_t q = 0; q < length; q++) {
            double complex sum = 0;

            for (int64_t k = 0; k < length; k++)
                sum += one.from[k] * root_of(q * k, length);
            assert_true(cabs(sum - one.to[q]) < 1e-11);
        }
        close_case(&one);
    }
}

static void
lengths_with_large_prime_factors_are_hard(void **state)
{
    (void)state;
    assert_false(fourier_is_hard(1));
    assert_false(fourier_is_hard(1 << 20));
    assert_false(fourier_is_hard(400));
    assert_false(fourier_is_hard(6000));
    assert_false(fourier_is_hard(23));
    assert_true(fourier_is_hard(1021));
    assert_true(fourier_is_hard(8 * 8191));
    assert_true(fourier_is_hard(16777213));
}

/* By the definition this would take twenty thousand million products. */
static void
a_large_prime_is_transformed_like_other_lengths(void **state)
{
    enum { LENGTH = 150001, AT = 31 };
    struct case_of_length one;

    (void)state;
    open_case(&one, LENGTH);
    one.from[AT] = 1;
    fourier_transform(one.fourier, one.from, one.to, one.room);
    for (int64_t q = 0; q < LENGTH; q++)
        assert_true(cabs(one.to[q] - root_of(AT * q, LENGTH)) < 1e-11);
    close_case(&one);
}

static float
sample_of(int lane, int64_t k)
{
    return sinf((float)(k * k % 101 + lane)) + (float)lane;
}

/* The magnitudes of all lanes; lane `spoilt` has NaN. */
static lanes_values *
magnitudes_of(int64_t length, int spoilt)
{
    struct fourier_lanes *fourier = fourier_lanes_open(length);
    struct lanes_complex *room = tnd_alloc_aligned(sizeof *room, (size_t)length * sizeof *room);
    lanes_values *magnitudes =
        tnd_alloc_aligned(sizeof *magnitudes, (size_t)(length / 2 + 1) * sizeof *magnitudes);

    for (int64_t k = 0; k < length; k++)
        for (int lane = 0; lane < FOURIER_LANES; lane++)
            (k % 2 == 0 ? &room[k / 2].re : &room[k / 2].im)[0][lane] =
                lane == spoilt ? NAN : sample_of(lane, k);
    fourier_lanes_magnitudes(fourier, room, magnitudes);
    fourier_lanes_close(fourier);
    free(room);
    return magnitudes;
}

static void
four_frames_are_each_the_definition(void **state)
{
    (void)state;
    for (int64_t length = FOURIER_LANES_LEAST; length <= 2048; length *= 2) {
        lanes_values *magnitudes = magnitudes_of(length, -1);
        lanes_values *beside = magnitudes_of(length, 2);

        for (int lane = 0; lane < FOURIER_LANES; lane++)
            for (int64_t q = 0; q <= length / 2; q++) {
                double complex sum = 0;

                for (int64_t k = 0; k < length; k++)
                    sum += (double)sample_of(lane, k) * root_of(q * k, length);
                assert_true(fabs(cabs(sum) - (double)magnitudes[q][lane]) < 1e-6 * (double)length);
                if (lane != 2)
                    assert_true(magnitudes[q][lane] == beside[q][lane]);
                else
                    assert_true(isnan(beside[q][lane]));
            }
        free(magnitudes);
        free(beside);
    }
}

static void
only_powers_of_two_are_taken_four_at_a_time(void **state)
{
    (void)state;
    assert_false(fourier_lanes_takes(4));
    assert_true(fourier_lanes_takes(8));
    assert_false(fourier_lanes_takes(400));
    assert_true(fourier_lanes_takes(1 << 24));
}

TEST_FILE(test_fourier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_length_is_the_definition),
        cmocka_unit_test(lengths_with_large_prime_factors_are_hard),
        cmocka_unit_test(a_large_prime_is_transformed_like_other_lengths),
        cmocka_unit_test(four_frames_are_each_the_definition),
        cmocka_unit_test(only_powers_of_two_are_taken_four_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
