/* test_vector.c - kernels: the same bits from every set, near the true value, and both 16-bit
 * floats through all their values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "column/convert.h"
#include "column/flush.h"
#include "column/vector.h"
#include "column/vector_half.h"
#include "core/cpu.h"
#include "unit/test_file.h"

enum { VALUES = 4096 };

/* A fixed sequence of 64 random bits. */
static uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Random bits: every kind of number, small integers among them. */
static void
fill_random(uint64_t *state, tundish_dtype dtype, void *values)
{
    uint8_t *bytes = values;
    size_t size = tnd_dtype_bytes(dtype);

    for (size_t i = 0; i < VALUES; i++) {
        uint64_t bits = next_random(state);
        double small = (double)(int64_t)(bits % 41) - 20;

        if (dtype == TUNDISH_BOOL)
            bits &= 1;
        memcpy(bytes + i * size, &bits, size);
        if (i % 3 == 0 && dtype != TUNDISH_BOOL)
            convert_values(dtype, bytes + i * size, TUNDISH_FLOAT64, &small, 1);
    }
}

/* NULL as well when this machine lacks the level. */
static const struct vector_kernel *
kernel_of(enum tnd_cpu_level level, enum vector_op op, tundish_dtype dtype)
{
    const struct vector_kernel *kernel = tnd_cpu_use(level) ? vector_kernel(op, dtype) : NULL;

    tnd_cpu_use(tnd_cpu_best());
    return kernel;
}

static void
every_set_gives_the_same_bits(void **state)
{
    static uint64_t a[VALUES], b[VALUES], c[VALUES], first[VALUES], second[VALUES];
    uint64_t random = 1, mode = flush_begin();

    (void)state;
    for (int op = 0; op < VECTOR_OP_COUNT; op++)
        for (tundish_dtype dtype = TUNDISH_BOOL; dtype < TUNDISH_STRING; dtype++) {
            const struct vector_kernel *one =
                kernel_of(TND_CPU_PORTABLE, (enum vector_op)op, dtype);
            const struct vector_kernel *two = kernel_of(TND_CPU_AVX2, (enum vector_op)op, dtype);

            if (one == NULL || two == NULL || op == VECTOR_POWER)
                continue;
            fill_random(&random, op == VECTOR_SELECT ? TUNDISH_BOOL : dtype, a);
            fill_random(&random, dtype, b);
            fill_random(&random, dtype, c);
            memset(first, 0, sizeof first);
            memset(second, 0, sizeof second);
            assert_int_equal(one->run(first, a, b, c, VALUES), two->run(second, a, b, c, VALUES));
            for (int i = 0; i < VALUES; i++)
                if (first[i] != second[i] && dtype == TUNDISH_FLOAT64 && op != VECTOR_SELECT) {
                    double x, y;

                    memcpy(&x, &first[i], sizeof x);
                    memcpy(&y, &second[i], sizeof y);
                    if (!(x != x && y != y))
                        fail_msg("operation %d on float64: %a and %a", op, x, y);
                } else if (first[i] != second[i] && dtype == TUNDISH_FLOAT32) {
                    for (int k = 0; k < 2; k++) {
                        float x = float_of_bits((uint32_t)(first[i] >> (32 * k)));
                        float y = float_of_bits((uint32_t)(second[i] >> (32 * k)));

                        if (memcmp(&x, &y, sizeof x) != 0 && !(x != x && y != y))
                            fail_msg("operation %d on float32: %a and %a", op, (double)x,
                                     (double)y);
                    }
                } else if (first[i] != second[i])
                    fail_msg("operation %d on %s", op, tnd_dtype_name(dtype));
        }
    flush_end(mode);
}

/* Distance in units in the last place of a double. */
static double
ulps(double value, long double exact)
{
    double magnitude = fabs((double)exact);

    return (double)(fabsl((long double)value - exact) /
                    (long double)(nextafter(magnitude, INFINITY) - magnitude));
}

static double
ulps_float(float value, long double exact)
{
    float magnitude = fabsf((float)exact);

    return (double)(fabsl((long double)value - exact) /
                    (long double)(nextafterf(magnitude, INFINITY) - magnitude));
}

static void
functions_are_within_three_units_in_the_last_place(void **state)
{
    static const struct {
        enum vector_op op;
        double low, high;
        long double (*exact)(long double);
    } cases[] = {
        { VECTOR_EXP, -86, 88, expl },         { VECTOR_LOG, 1e-30, 1000, logl },
        { VECTOR_LOG, 0.5, 2, logl },          { VECTOR_LOG1P, -0.99, 50, log1pl },
        { VECTOR_LOG1P, -1e-3, 1e-3, log1pl }, { VECTOR_LOG1P, 0, 1e9, log1pl },
        { VECTOR_EXPM1, -3, 3, expm1l },       { VECTOR_EXPM1, -40, 80, expm1l },
        { VECTOR_SIN, -1e5, 1e5, sinl },       { VECTOR_COS, -1e5, 1e5, cosl },
        { VECTOR_TANH, -9, 9, tanhl },         { VECTOR_SQUARE_ROOT, 0, 10, sqrtl },
    };
    static double x[VALUES], y[VALUES];
    static float narrow[VALUES], z[VALUES];
    uint64_t random = 7;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (int i = 0; i < VALUES; i++) {
            x[i] = cases[k].low + (cases[k].high - cases[k].low) *
                                      ((double)(next_random(&random) >> 11) * 0x1p-53);
            narrow[i] = (float)x[i];
        }
        vector_kernel(cases[k].op, TUNDISH_FLOAT64)->run(y, x, NULL, NULL, VALUES);
        vector_kernel(cases[k].op, TUNDISH_FLOAT32)->run(z, narrow, NULL, NULL, VALUES);
        for (int i = 0; i < VALUES; i++) {
            if (ulps(y[i], cases[k].exact(x[i])) > 3)
                fail_msg("operation %d of %a is %a", cases[k].op, x[i], y[i]);
            if (ulps_float(z[i], cases[k].exact(narrow[i])) > 3)
                fail_msg("operation %d of %a is %a", cases[k].op, (double)narrow[i], (double)z[i]);
        }
    }
}

static void
large_angles_lose_nothing(void **state)
{
    /* Known to need all the bits: 2^1000, and the double closest to a multiple of pi/2. */
    static const double x[] = { 0x1p1000, 6381956970095103.0 * 0x1p797, -1e22, 1e300 };
    double sine[4];

    (void)state;
    vector_kernel(VECTOR_SIN, TUNDISH_FLOAT64)->run(sine, x, NULL, NULL, 4);
    assert_true(fabs(sine[1]) > 0.99999);
    assert_true(fabs(sine[2] - 0.8522008497671888) < 1e-15);
    assert_true(fabs(sine[3] + 0.8178819121159085) < 1e-15);
}

static void
powers_of_small_integers_are_exact(void **state)
{
    (void)state;
    for (int base = 2; base <= 10; base++) {
        double exact = base;

        for (int exponent = 1; exponent <= 15; exponent++, exact *= base) {
            double x = base, y = exponent, power;

            vector_kernel(VECTOR_POWER, TUNDISH_FLOAT64)->run(&power, &x, &y, NULL, 1);
            if (power != exact)
                fail_msg("%d to the %d is %.17g", base, exponent, power);
        }
    }
}

static void
powers_follow_c_where_they_are_special(void **state)
{
    static const double specials[] = { 0.0, -0.0,  1,      -1,       2,         -2,  0.5,  -0.5, 3,
                                       -3,  1e300, -1e300, INFINITY, -INFINITY, NAN, 1e16, -1e16 };
    size_t count = sizeof specials / sizeof *specials;

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double power, expected = pow(specials[i], specials[j]);

            vector_kernel(VECTOR_POWER, TUNDISH_FLOAT64)
                ->run(&power, &specials[i], &specials[j], NULL, 1);
            if (expected != expected ? power == power
                                     : fabs(power - expected) > 1e-15 * fabs(expected) ||
                                           signbit(power) != signbit(expected))
                fail_msg("%g to the %g is %g, not %g", specials[i], specials[j], power, expected);
        }
}

static void
every_half_comes_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = half_to_float((uint16_t)bits);
        double exponent = (double)(bits >> 10 & 31), mantissa = (double)(bits & 1023);
        double exact =
            exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, (int)exponent - 25);

        if ((bits >> 10 & 31) == 31)
            exact = mantissa == 0 ? INFINITY : NAN;
        if (bits >> 15)
            exact = -exact;
        if (exact != exact) {
            assert_true(value != value);
            assert_int_equal(half_of_float(value) & 0x7E00, 0x7E00);
            continue;
        }
        assert_true((double)value == exact && !signbit(value) == !signbit(exact));
        assert_int_equal(half_of_float(value), bits);
    }
}

/* Between two neighbours the nearer wins, and in the middle the even one. */
static void
every_rounding_to_half_is_to_the_nearest(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7BFF; bits++) {
        double low = (double)half_to_float((uint16_t)bits);
        double high = (double)half_to_float((uint16_t)(bits + 1)), middle = (low + high) / 2;

        assert_int_equal(half_of_float((float)middle), bits + (bits & 1));
        assert_int_equal(half_of_float(nextafterf((float)middle, 0)), bits);
        assert_int_equal(half_of_float(nextafterf((float)middle, INFINITY)), bits + 1);
    }
    assert_int_equal(half_of_float(65519.996F), 0x7BFF);
    assert_int_equal(half_of_float(65520), 0x7C00);
}

static void
every_rounding_to_bfloat_is_to_the_nearest(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = bfloat_to_float((uint16_t)bits);
        uint32_t middle = bits << 16 | 0x8000;

        if (value != value) {
            assert_int_equal(bfloat_of_float(value), (bits & 0x8000) | 0x7FC0);
            continue;
        }
        assert_int_equal(bfloat_of_float(value), bits);
        if ((bits & 0x7FFF) == 0x7F80)
            continue;
        assert_int_equal(bfloat_of_float(float_of_bits(middle)), bits + (bits & 1));
        assert_int_equal(bfloat_of_float(float_of_bits(middle - 1)), bits);
        assert_int_equal(bfloat_of_float(float_of_bits(middle + 1)), bits + 1);
    }
}

static void
floats_out_of_range_convert_as_on_x86(void **state)
{
    static const float x[] = { 3e9F, -3e9F, 1e20F, NAN, INFINITY, -INFINITY, -1.5F, 2147483520.0F };
    int32_t i32[8];
    int64_t i64[8];
    uint32_t u32[8];
    uint64_t u64[8];

    (void)state;
    convert_values(TUNDISH_INT32, i32, TUNDISH_FLOAT32, x, 8);
    convert_values(TUNDISH_INT64, i64, TUNDISH_FLOAT32, x, 8);
    convert_values(TUNDISH_UINT32, u32, TUNDISH_FLOAT32, x, 8);
    convert_values(TUNDISH_UINT64, u64, TUNDISH_FLOAT32, x, 8);
    for (int i = 0; i < 6; i++)
        assert_int_equal(i32[i], INT32_MIN);
    assert_int_equal(i32[6], -1);
    assert_int_equal(i32[7], 2147483520);
    assert_int_equal(i64[0], 3000000000);
    assert_true(i64[2] == INT64_MIN && i64[3] == INT64_MIN);
    assert_int_equal(u32[0], 3000000000U);
    assert_int_equal(u32[6], UINT32_MAX);
    assert_true(u64[6] == UINT64_MAX);
}

TEST_FILE(test_vector)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_gives_the_same_bits),
        cmocka_unit_test(functions_are_within_three_units_in_the_last_place),
        cmocka_unit_test(large_angles_lose_nothing),
        cmocka_unit_test(powers_of_small_integers_are_exact),
        cmocka_unit_test(powers_follow_c_where_they_are_special),
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(every_rounding_to_half_is_to_the_nearest),
        cmocka_unit_test(every_rounding_to_bfloat_is_to_the_nearest),
        cmocka_unit_test(floats_out_of_range_convert_as_on_x86),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
