/* test_seeds.c - TensorFlow's seeds; the draws are those of CPython's random.Random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/seeds.h"
#include "unit/test_file.h"

static const struct spec_value forty_two = { .kind = SPEC_INTEGER, .integer = 42 };

static struct seed_source
source_of(bool has_seed, int64_t seed)
{
    const struct spec_file file = { .has_seed = has_seed, .seed = seed };
    struct seed_source source;

    seed_source_open(&source, &file, 7);
    return source;
}

static void
assert_pair(struct seed_pair pair, uint64_t seed, uint64_t seed2)
{
    assert_int_equal(pair.seed, seed);
    assert_int_equal(pair.seed2, seed2);
}

static void
a_file_seed_alone_draws_from_pythons_generator(void **state)
{
    struct seed_source small = source_of(true, 42);
    struct seed_source large = source_of(true, INT64_C(9876543210));

    (void)state;
    assert_pair(seed_source_next(&small, NULL, NULL), 42, 478163327);
    assert_pair(seed_source_next(&large, NULL, NULL), 9876543210 % 2147483647, 1590696391);
    assert_pair(seed_source_next(&large, NULL, NULL), 9876543210 % 2147483647, 1304480582);
}

static void
a_stage_seed_alone_goes_with_a_constant(void **state)
{
    struct seed_source source = source_of(false, 0);

    (void)state;
    assert_pair(seed_source_next(&source, &forty_two, NULL), 87654321, 42);
}

static void
both_seeds_are_taken_as_they_are_and_draw_nothing(void **state)
{
    struct seed_source source = source_of(true, 42);

    (void)state;
    assert_pair(seed_source_next(&source, &forty_two, NULL), 42, 42);
    assert_pair(seed_source_next(&source, NULL, NULL), 42, 478163327);
}

static void
inside_a_function_stages_count_from_zero(void **state)
{
    struct seed_source source = source_of(true, 5);
    uint32_t place = 0;

    (void)state;
    assert_pair(seed_source_next(&source, NULL, &place), 5, 0);
    assert_pair(seed_source_next(&source, NULL, &place), 5, 1);
}

static void
seeds_are_reduced_and_never_both_zero(void **state)
{
    const struct spec_value zero = { .kind = SPEC_INTEGER };
    const struct spec_value minus_one = { .kind = SPEC_INTEGER, .integer = -1 };
    struct seed_source source = source_of(true, INT64_C(2147483647));

    (void)state;
    assert_pair(seed_source_next(&source, &zero, NULL), 0, 2147483647);
    assert_pair(seed_source_next(&source, &minus_one, NULL), 0, 2147483646);
}

static void
without_any_seed_the_root_seed_decides(void **state)
{
    struct seed_source one = source_of(false, 0), same = source_of(false, 0);
    struct seed_pair first = seed_source_next(&one, NULL, NULL);
    struct seed_pair second = seed_source_next(&one, NULL, NULL);

    (void)state;
    assert_int_not_equal(first.seed, second.seed);
    assert_int_equal(seed_source_next(&same, NULL, NULL).seed, first.seed);
}

TEST_FILE(test_seeds)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_seed_alone_draws_from_pythons_generator),
        cmocka_unit_test(a_stage_seed_alone_goes_with_a_constant),
        cmocka_unit_test(both_seeds_are_taken_as_they_are_and_draw_nothing),
        cmocka_unit_test(inside_a_function_stages_count_from_zero),
        cmocka_unit_test(seeds_are_reduced_and_never_both_zero),
        cmocka_unit_test(without_any_seed_the_root_seed_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
