/* test_fourier.c - transforms of any length are those of the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "content/sounds/fourier.h"
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

TEST_FILE(test_fourier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_length_is_the_definition),
        cmocka_unit_test(lengths_with_large_prime_factors_are_hard),
        cmocka_unit_test(a_large_prime_is_transformed_like_other_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
