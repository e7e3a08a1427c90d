/* test_cpu_room.c - processors that this process may not use do not count. The quotas of control
 * groups are tested by system/test_doctor.py. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cpu_room.h"
#include "unit/test_file.h"

static void
affinity_leaves_the_processors_that_it_names(void **state)
{
    struct tnd_cpu_room all, room;
    cpu_set_t mine, one;
    size_t first = 0;

    (void)state;
    tnd_cpu_room(&all);
    assert_in_range(all.count, 1, all.online);
    assert_int_equal(tnd_cpu_count(), all.count);
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    while (!CPU_ISSET(first, &mine))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    tnd_cpu_room(&room);
    assert_int_equal(sched_setaffinity(0, sizeof mine, &mine), 0);
    assert_int_equal(room.count, 1);
    assert_int_equal(room.online, all.online);
    if (all.online > 1)
        assert_non_null(strstr(room.why, "affinity (taskset, a batch system) allows 1"));
    else
        assert_string_equal(room.why, "");
}

TEST_FILE(test_cpu_room)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affinity_leaves_the_processors_that_it_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
