/* test_tukey.c - Tukey's hh distributions: the inverse undoes them, and a fit finds them again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "content/numbers/tukey.h"
#include "unit/test_file.h"

static void
assert_near(double found, double expected, double within)
{
    if (!(fabs(found - expected) <= within))
        fail_msg("%.17g instead of %.17g", found, expected);
}

static void
the_inverse_undoes_each_side_by_its_own_h(void **state)
{
    static const double us[] = { -6, -2.5, -1, -1e-3, -1e-9, 0, 1e-9, 1e-3, 0.5, 1, 3, 7 };
    static const double hs[] = { 1e-6, 0.01, 0.1, 0.5, 0.9 };

    (void)state;
    for (size_t i = 0; i < sizeof us / sizeof *us; i++)
        for (size_t l = 0; l < 5; l++)
            for (size_t r = 0; r < 5; r++) {
                double h = us[i] < 0 ? hs[l] : hs[r];
                double value = us[i] * exp(h * us[i] * us[i] / 2);

                assert_near(tukey_inverse(value, hs[l], hs[r]), us[i], 1e-7 * fabs(us[i]));
            }
    assert_true(isnan(tukey_inverse(NAN, 0.1, 0.1)));
}

static void
without_long_tails_it_is_the_normal_distribution(void **state)
{
    double left, right, mean, scale;

    (void)state;
    assert_near(tukey_inverse(1.25, 0, 0), 1.25, 0);
    assert_near(tukey_inverse(-1.25, 0, 0), -1.25, 0);
    tukey_moments(0, 0, &mean, &scale);
    assert_near(mean, 0, 1e-15);
    assert_near(scale, 1 / sqrt(3.14159265358979323846), 1e-15); /* its second L-moment */
    tukey_fit(0, 0.1226, &left, &right);
    assert_true(left == 0 && right == 0);
    tukey_fit(0, 0.05, &left, &right);
    assert_true(left == 0 && right == 0);
}

/* L-moments by the definition: means of the values of a normal distribution's quantiles,
 * weighted by shifted Legendre polynomials of the probability. */
static void
find_moments(double left, double right, double ret_moments[4])
{
    enum { STEPS = 200000 };
    const double range = 12;
    double sums[4] = { 0 };

    for (int i = 0; i < STEPS; i++) {
        double u = -range + 2 * range * (i + 0.5) / STEPS;
        double h = u < 0 ? left : right;
        double p = 0.5 * erfc(-u / sqrt(2)), density = exp((h - 1) * u * u / 2);
        double value = u * density;

        sums[0] += value;
        sums[1] += value * (2 * p - 1);
        sums[2] += value * (6 * p * p - 6 * p + 1);
        sums[3] += value * (20 * p * p * p - 30 * p * p + 12 * p - 1);
    }
    for (int k = 0; k < 4; k++)
        ret_moments[k] = sums[k] * 2 * range / STEPS / sqrt(2 * 3.14159265358979323846);
}

static void
moments_are_those_of_the_definition_and_a_fit_finds_their_h(void **state)
{
    static const double cases[][2] = { { 0.1, 0.1 }, { 0.05, 0.2 }, { 0.3, 0.1 }, { 0.25, 0.25 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double moments[4], mean, scale, left, right;

        find_moments(cases[i][0], cases[i][1], moments);
        tukey_moments(cases[i][0], cases[i][1], &mean, &scale);
        assert_near(mean, moments[0], 1e-6);
        assert_near(scale, moments[1], 1e-6);
        tukey_fit(moments[2] / moments[1], moments[3] / moments[1], &left, &right);
        assert_near(left, cases[i][0], 0.02); /* the search stops this near */
        assert_near(right, cases[i][1], 0.02);
    }
}

TEST_FILE(test_tukey)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inverse_undoes_each_side_by_its_own_h),
        cmocka_unit_test(without_long_tails_it_is_the_normal_distribution),
        cmocka_unit_test(moments_are_those_of_the_definition_and_a_fit_finds_their_h),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
