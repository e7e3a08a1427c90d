/* test_cpu.c - levels are asked for as the processor has them, or fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/cpu.h"
#include "unit/test_file.h"

static void
a_level_has_all_that_those_before_it_have(void **state)
{
    (void)state;
    assert_int_equal(tnd_cpu(), tnd_cpu_best());
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        assert_int_equal(tnd_cpu_has((enum tnd_cpu_level)level), level <= (int)tnd_cpu_best());
}

static void
a_test_may_ask_for_less_but_not_for_more(void **state)
{
    (void)state;
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
        bool can = level <= (int)tnd_cpu_best();

        assert_true(tnd_cpu_use(TND_CPU_PORTABLE));
        assert_int_equal(tnd_cpu_use((enum tnd_cpu_level)level), can);
        assert_int_equal(tnd_cpu(), can ? level : TND_CPU_PORTABLE);
    }
    assert_true(tnd_cpu_use(tnd_cpu_best()));
}

TEST_FILE(test_cpu)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_has_all_that_those_before_it_have),
        cmocka_unit_test(a_test_may_ask_for_less_but_not_for_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
