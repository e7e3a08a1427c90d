/* test_door.c - descriptors that readers share, and that are closed when others are needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "source/files/door.h"
#include "unit/test_file.h"

enum { DOORS = 4, LIMIT = 2 };

struct house {
    struct doors doors;
    struct door door[DOORS];
};

static int
some_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(descriptor >= 0);
    return descriptor;
}

static bool
is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

static int
open_house(void **state)
{
    static struct house house;

    house = (struct house){ 0 };
    doors_open(&house.doors);
    house.doors.limit = LIMIT;
    *state = &house;
    return 0;
}

static int
close_house(void **state)
{
    struct house *house = *state;

    for (int i = 0; i < DOORS; i++)
        door_close(&house->doors, &house->door[i]);
    doors_close(&house->doors);
    return 0;
}

/* The door's descriptor, which nobody uses any more. */
static int
open_and_leave(struct house *house, int which)
{
    int descriptor = -1;

    door_open(&house->doors, &house->door[which], some_descriptor(), &descriptor);
    door_leave(&house->door[which]);
    return descriptor;
}

static void
an_open_door_is_entered_by_its_descriptor(void **state)
{
    struct house *house = *state;
    int entered = -1, descriptor;

    assert_false(door_enter(&house->door[0], &entered));
    descriptor = open_and_leave(house, 0);
    assert_true(door_enter(&house->door[0], &entered));
    assert_int_equal(entered, descriptor);
    door_leave(&house->door[0]);
}

static void
of_two_who_open_the_later_takes_what_is_there(void **state)
{
    struct house *house = *state;
    int first = open_and_leave(house, 0);
    int late = some_descriptor(), entered = -1;

    door_open(&house->doors, &house->door[0], late, &entered);
    assert_int_equal(entered, first);
    assert_false(is_open(late));
    assert_int_equal(house->doors.count, 1);
    door_leave(&house->door[0]);
}

static void
a_door_too_many_closes_another(void **state)
{
    struct house *house = *state;
    int entered = -1;

    for (int i = 0; i < DOORS; i++) {
        int descriptor = open_and_leave(house, i);

        assert_true(house->doors.count <= LIMIT);
        assert_true(door_enter(&house->door[i], &entered));
        assert_int_equal(entered, descriptor);
        door_leave(&house->door[i]);
    }
    assert_false(door_enter(&house->door[0], &entered));
    assert_false(door_enter(&house->door[1], &entered));
}

static void
a_door_with_somebody_inside_stays_open(void **state)
{
    struct house *house = *state;
    int descriptor = open_and_leave(house, 0), entered = -1;

    assert_true(door_enter(&house->door[0], &entered));
    for (int i = 1; i < DOORS; i++)
        (void)open_and_leave(house, i);
    assert_true(is_open(descriptor));
    assert_int_equal(house->doors.count, LIMIT);
    door_leave(&house->door[0]);
}

static void
with_somebody_behind_each_door_there_is_one_more_for_a_while(void **state)
{
    struct house *house = *state;
    int entered = -1;

    for (int i = 0; i < DOORS; i++)
        door_open(&house->doors, &house->door[i], some_descriptor(), &entered);
    assert_int_equal(house->doors.count, DOORS);
    for (int i = 0; i < DOORS; i++)
        door_leave(&house->door[i]);
    door_close(&house->doors, &house->door[1]);
    (void)open_and_leave(house, 1);
    assert_int_equal(house->doors.count, LIMIT);
}

static void
a_closed_door_opens_again(void **state)
{
    struct house *house = *state;
    int descriptor = open_and_leave(house, 2), entered = -1;

    door_close(&house->doors, &house->door[2]);
    assert_false(is_open(descriptor));
    assert_false(door_enter(&house->door[2], &entered));
    (void)open_and_leave(house, 2);
    assert_true(door_enter(&house->door[2], &entered));
    door_leave(&house->door[2]);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_house, close_house)

TEST_FILE(test_door)
{
    const struct CMUnitTest tests[] = {
        test(an_open_door_is_entered_by_its_descriptor),
        test(of_two_who_open_the_later_takes_what_is_there),
        test(a_door_too_many_closes_another),
        test(a_door_with_somebody_inside_stays_open),
        test(with_somebody_behind_each_door_there_is_one_more_for_a_while),
        test(a_closed_door_opens_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
