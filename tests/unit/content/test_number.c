/* test_number.c - what is a number, and which. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../unit_draw.h"
#include "content/records/number.h"
#include "unit/test_file.h"

/* The text with room behind it. */
static const uint8_t *
text(const char *from)
{
    static uint8_t buffer[512];

    memset(buffer, 'x', sizeof buffer);
    memcpy(buffer, from, strlen(from));
    return buffer;
}

static void
integers_are_digits_with_a_sign_and_blanks_around(void **state)
{
    static const struct {
        const char *text;
        int64_t number;
    } good[] = { { "0", 0 },
                 { "7", 7 },
                 { "12345678", 12345678 },
                 { "123456789", 123456789 },
                 { "+5", 5 },
                 { "-5", -5 },
                 { " 1\t", 1 },
                 { "\v\f\r\n 42 ", 42 },
                 { "-0", 0 },
                 { "-007", -7 },
                 { "00000000000000000000000001", 1 },
                 { "9223372036854775807", INT64_MAX },
                 { "-9223372036854775808", INT64_MIN } };
    static const char *const bad[] = { "",
                                       " ",
                                       "-",
                                       "+",
                                       "+-5",
                                       "1 5",
                                       "1.0",
                                       "1e3",
                                       "0x1",
                                       "12a",
                                       "a12",
                                       "1,2",
                                       "--1",
                                       "1-",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "18446744073709551616",
                                       "99999999999999999999999" };
    int64_t number;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(number_int64(text(good[i].text), strlen(good[i].text), &number));
        assert_int_equal(number, good[i].number);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(number_int64(text(bad[i]), strlen(bad[i]), &number));
}

static void
every_byte_in_every_place_is_a_digit_or_refused(void **state)
{
    uint64_t value;

    (void)state;
    for (size_t size = 1; size <= 8; size++)
        for (size_t place = 0; place < size; place++)
            for (int byte = 0; byte < 256; byte++) {
                uint8_t buffer[72];
                bool is_digit = byte >= '0' && byte <= '9';

                memset(buffer, '1', sizeof buffer);
                buffer[place] = (uint8_t)byte;
                assert_int_equal(number_digits(buffer, size, &value), is_digit);
                if (is_digit) {
                    char copy[16] = { 0 };

                    memcpy(copy, buffer, size);
                    assert_int_equal(value, strtoull(copy, NULL, 10));
                }
            }
}

static void
int32_does_not_wrap(void **state)
{
    int32_t number;

    (void)state;
    assert_true(number_int32(text("2147483647"), 10, &number));
    assert_int_equal(number, INT32_MAX);
    assert_true(number_int32(text("-2147483648"), 11, &number));
    assert_int_equal(number, INT32_MIN);
    assert_false(number_int32(text("2147483648"), 10, &number));
    assert_false(number_int32(text("-2147483649"), 11, &number));
}

static void
floats_take_every_form_of_the_reference(void **state)
{
    static const struct {
        const char *text;
        double number;
    } good[] = { { "1.", 1 },
                 { ".5", .5 },
                 { "1e3", 1000 },
                 { "1E-3", .001 },
                 { "-.25e+2", -25 },
                 { "0x1p3", 8 },
                 { "+5.5", 5.5 },
                 { " 2.5 ", 2.5 },
                 { "1e400", INFINITY },
                 { "-1e400", -INFINITY },
                 { "1e-400", 0 },
                 { "inf", INFINITY },
                 { "-INF", -INFINITY },
                 { "Infinity", INFINITY },
                 { "123456789012345678901234567890", 123456789012345678901234567890.0 },
                 { "0.1", 0.1 },
                 { "9007199254740993", 9007199254740992.0 } };
    static const char *const bad[] = { "",   ".",   "e5",  "1e", "1e+", "1.5x", "1 5", "+-1",
                                       "0x", "--1", "1..", "in", "na",  "1e5.", "- 1" };
    double number;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(number_float64(text(good[i].text), strlen(good[i].text), &number));
        assert_true(number == good[i].number);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(number_float64(text(bad[i]), strlen(bad[i]), &number));
    assert_true(number_float64(text("-NaN"), 4, &number));
    assert_true(isnan(number));
    assert_true(number_float64(text("-0.0"), 4, &number));
    assert_true(number == 0 && signbit(number));
}

static void
floats_are_rounded_once_as_the_library_does(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        char buffer[128] = { 0 };
        double wide, wide_expected;
        float narrow, narrow_expected;
        size_t size;

        switch (i % 4) {
        case 0:
            snprintf(buffer, 64, "%.*g", (int)(draw() % 20 + 1),
                     (double)(int64_t)draw() / (double)(draw() >> 20));
            break;
        case 1:
            snprintf(buffer, 64, "%llu.%llue%d", (unsigned long long)draw() >> 40,
                     (unsigned long long)draw() >> (20 + draw() % 40), (int)(draw() % 60) - 30);
            break;
        case 2: /* just beside the middle of two floats */
            snprintf(buffer, 64, "%.*f", (int)(draw() % 3) + 15,
                     (double)(draw() >> 39) + 0x1p-1 + (draw() % 2 ? 0x1p-30 : 0));
            break;
        default: /* near float's subnormals */
            snprintf(buffer, 64, "%llue-%d", (unsigned long long)draw() >> 44,
                     (int)(draw() % 20) + 36);
            break;
        }
        size = strlen(buffer);
        wide_expected = strtod(buffer, NULL);
        narrow_expected = strtof(buffer, NULL);
        assert_true(number_float64((uint8_t *)buffer, size, &wide));
        assert_memory_equal(&wide, &wide_expected, sizeof wide);
        assert_true(number_float32((uint8_t *)buffer, size, &narrow));
        assert_memory_equal(&narrow, &narrow_expected, sizeof narrow);
    }
}

TEST_FILE(test_number)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_digits_with_a_sign_and_blanks_around),
        cmocka_unit_test(every_byte_in_every_place_is_a_digit_or_refused),
        cmocka_unit_test(int32_does_not_wrap),
        cmocka_unit_test(floats_take_every_form_of_the_reference),
        cmocka_unit_test(floats_are_rounded_once_as_the_library_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
