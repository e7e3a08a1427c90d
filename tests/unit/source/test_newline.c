/* test_newline.c - the fast ways find what the plain one finds. */
#include "source_fixture.h"

#include "source/scan/newline.h"
#include "unit/test_file.h"

static void
all_ways_agree_for_every_length_and_offset(void **state)
{
    static uint8_t data[700];
    static uint32_t fast[720], plain[720];
    uint32_t seed = 7;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (uint8_t) "\n\r\"ab\n,x0\x8A"[(seed >> 16) % 10];
    }
    for (size_t begin = 0; begin < 70; begin++)
        for (size_t bytes = 0; bytes + begin <= 400; bytes++) {
            size_t count = newline_find_portable(data + begin, bytes, plain);

            assert_int_equal(newline_find(data + begin, bytes, fast), count);
            assert_memory_equal(fast, plain, count * sizeof *fast);
            for (int quotes = 0; quotes < 2; quotes++) {
                count = newline_find_marks_portable(data + begin, bytes, quotes, plain);
                assert_int_equal(newline_find_marks(data + begin, bytes, quotes, fast), count);
                assert_memory_equal(fast, plain, count * sizeof *fast);
            }
        }
}

TEST_FILE(test_newline)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_agree_for_every_length_and_offset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
