/* test_skips.c - bad rows are all counted, and told about once a second. */
#include "session/skips.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/log.h"
#include "unit/test_file.h"

static const int64_t SECOND_NS = 1000000000;

struct world {
    int64_t now_ns;
    unsigned lines;
    char last[1600];
    struct skips skips;
};

static int64_t
world_now(void *context)
{
    return ((const struct world *)context)->now_ns;
}

static void
count_line(void *user, enum tnd_log_level level, const char *event, const char *sentence)
{
    struct world *world = user;

    assert_int_equal(level, TND_LOG_WARNING);
    assert_string_equal(event, "skip");
    world->lines++;
    strcpy(world->last, sentence);
}

static struct world world;
static struct tnd_clock world_clock = { .now_ns = world_now, .context = &world };

static int
open_world(void **state)
{
    (void)state;
    world = (struct world){ .now_ns = SECOND_NS, .skips = { .stream = "train", .limit = 10000 } };
    tnd_clock_install(&world_clock);
    tnd_log_set_tap(count_line, &world);
    return 0;
}

static int
close_world(void **state)
{
    (void)state;
    tnd_log_set_tap(NULL, NULL);
    tnd_clock_install(NULL);
    return 0;
}

static void
a_line_stands_for_all_of_its_second(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(skips_add(&world.skips, 1, "part-3.csv: row 7"), TUNDISH_OK);
        world.now_ns += SECOND_NS / 1000;
    }
    assert_int_equal(world.lines, 3);
    assert_non_null(strstr(world.last, "1000 bad rows left out, 2001 so far"));
    assert_non_null(strstr(world.last, "part-3.csv: row 7"));
    assert_int_equal(world.skips.count, 3000);
}

static void
the_first_and_the_rest_are_told(void **state)
{
    (void)state;
    skips_tell_rest(&world.skips);
    assert_int_equal(world.lines, 0); /* nothing to tell */
    assert_int_equal(skips_add(&world.skips, 1, "one"), TUNDISH_OK);
    assert_int_equal(world.lines, 1);
    assert_int_equal(skips_add(&world.skips, 2, "two"), TUNDISH_OK);
    skips_tell(&world.skips);
    assert_int_equal(world.lines, 1); /* not yet */
    skips_tell_rest(&world.skips);
    assert_int_equal(world.lines, 2);
    assert_non_null(strstr(world.last, "2 bad rows left out, 3 so far; the last: two"));
    world.now_ns += SECOND_NS;
    skips_tell(&world.skips);
    assert_int_equal(world.lines, 2); /* all is told */
}

static void
more_than_the_limit_are_an_error(void **state)
{
    (void)state;
    world.skips.limit = 3;
    assert_int_equal(skips_add(&world.skips, 3, "x"), TUNDISH_OK);
    assert_int_equal(skips_add(&world.skips, 0, "x"), TUNDISH_OK);
    assert_int_equal(skips_add(&world.skips, 1, "b.csv: row 9"), TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "4 bad rows, more than on_error: skip:3 allows"));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

TEST_FILE(test_skips)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_line_stands_for_all_of_its_second),
        IN_WORLD(the_first_and_the_rest_are_told),
        IN_WORLD(more_than_the_limit_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
