/* test_order_filter.c - elements that a predicate lets pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_keeps_those_for_which_it_holds(void **state)
{
    (void)state;
    assert_order("{range: 12}, {filter: 'value % 3 == 1'}", "1 4 7 10");
    assert_order("{range: 5}, {filter: 'value > 100'}", "");
    assert_order("{range: 12}, {batch: 2}, {filter: 'value % 4 == 0'}", "[0 1] [4 5] [8 9]");
}

static void
no_more_is_pulled_than_is_needed_where_it_shows(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{range: 1000}, {shuffle: {buffer_size: 1, seed: 1}}, {filter: 'value % 10 == 4'}");
    fixture_epoch(&fixture, 3, 3);
    assert_int_equal(fixture.pulled[0], 25);
    fixture_close(&fixture);
}

static void
elsewhere_many_are_looked_at_at_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 100000}, {filter: 'value % 10 == 4'}");
    fixture_epoch(&fixture, 1000, 1);
    assert_in_range(fixture.pulled[0], 9985, 9985 + 1024);
    assert_int_equal(fixture.evaluated, fixture.pulled[0]);
    fixture_close(&fixture);
}

static void
bad_elements_fail_one_by_one(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 1}, {filter: 'value % 3 == 1'}");
    fixture.bad = 5;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1] [4] ! [7] [10]");
    assert_string_equal(tnd_error_text(), "5 is bad");
    fixture.bad = 7;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[1] [4] ! [10]");
    fixture.skip_bad = true;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1] [4] [10]");
    fixture_close(&fixture);
}

static void
failures_of_the_input_stand_where_they_were(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {filter: 'value % 3 == 1'}");
    fixture.failing = 6;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "1 4 ! 7 10");
    fixture_close(&fixture);
}

static void
what_was_looked_at_is_given_up_at_close(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 1}, {filter: 'value % 3 == 1'}");
    fixture_epoch(&fixture, 1, 1);
    fixture_close(&fixture);
}

/* Other threads, which look at what came last first. */
static struct order_look *begun;
static uint64_t looks_made;

static void
begin_look(void *context, struct order_look *look)
{
    (void)context;
    look->state = LOOK_WAITS;
    look->next = begun;
    begun = look;
}

static void
make_looks(struct order_services *services)
{
    for (struct order_look *look = begun; look != NULL; look = look->next) {
        const struct frame *frame;

        look->status = look->asks ? services->evaluate_answers(services, look, &frame)
                                  : services->evaluate(services, look->node, look->scope,
                                                       look->words, look->count, &frame);
        if (look->status == TUNDISH_OK)
            look->status = look->take(look, frame);
        look->took_ns = (int64_t)look->count * 30000;
        look->state = LOOK_DONE;
        looks_made++;
    }
    begun = NULL;
}

static tundish_status
await_look(void *context, struct order_look *look)
{
    if (look->state != LOOK_DONE)
        make_looks(context);
    assert_int_equal(look->state, LOOK_DONE);
    return TUNDISH_OK;
}

static void
forget_look(void *context, struct order_look *look)
{
    await_look(context, look);
}

static void
looked(struct order_services *services, struct order_look *look, bool counts)
{
    (void)services;
    (void)counts;
    (void)look;
}

enum { NODES_MAX = 32 };
static uint64_t look_ns[NODES_MAX];

/* The fixture's threads look, as if an element took long. */
static void
let_others_look(struct fixture *fixture, struct order_looks *looks, uint32_t threads)
{
    *looks = (struct order_looks){
        .threads = threads,
        .context = &fixture->services,
        .begin = begin_look,
        .await = await_look,
        .forget = forget_look,
    };
    fixture->services.looks = looks;
    fixture->services.looked = looked;
    fixture->services.look_ns = look_ns;
    for (size_t i = 0; i < NODES_MAX; i++)
        look_ns[i] = 30000;
    looks_made = 0;
}

static void
it_is_the_same_whoever_looks(void **state)
{
    static const char *const pipelines[] = {
        "{range: 100}, {filter: 'value % 3 == 1'}",
        "{range: 100}, {shuffle: {buffer_size: 10, seed: 1}}, {filter: 'value % 3 == 1'}",
        "{range: 100}, {filter: 'value % 3 == 1'}, {filter: 'value % 2 == 1'}, {take: 9}",
        "{range: 99}, {filter: 'value > 9'}, {filter: 'value % 2 == 1'}, {filter: 'value > 40'}",
        "{range: 99}, {batch: 1}, {filter: 'value % 4 == 1'}, {batch: 5}, {repeat: 2}",
        "{range: 3}, {shuffle: {buffer_size: 3, seed: 2}}, {repeat: 9}, {filter: 'value > 0'}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (uint32_t threads = 1; threads < 5; threads++)
            for (size_t chunk = 1; chunk < 60; chunk += 19) {
                struct fixture here, elsewhere;
                struct order_looks looks;

                fixture_open(&here, pipelines[i]);
                fixture_open(&elsewhere, pipelines[i]);
                let_others_look(&elsewhere, &looks, threads);
                for (int epoch = 0; epoch < 2; epoch++) {
                    char *expected = tnd_strdup(fixture_epoch(&here, 1000, chunk));

                    assert_string_equal(fixture_epoch(&elsewhere, 1000, chunk), expected);
                    free(expected);
                }
                assert_true(looks_made > 0);
                fixture_close(&elsewhere);
                fixture_close(&here);
            }
}

static void
others_look_at_no_more_than_is_needed_where_it_shows(void **state)
{
    struct order_looks looks;
    struct fixture fixture;

    (void)state;
    fixture_open(
        &fixture,
        "{range: 1000}, {shuffle: {buffer_size: 1, seed: 1}}, {filter: 'value % 10 == 4'}");
    let_others_look(&fixture, &looks, 4);
    fixture_epoch(&fixture, 3, 3);
    assert_int_equal(fixture.pulled[0], 25);
    fixture_close(&fixture);
}

/* A pass of `repeat` more would be another iterator of the shuffle. */
static void
others_look_at_no_more_than_was_pulled_at_once(void **state)
{
    struct order_looks looks;
    struct fixture fixture;
    uint64_t opened;

    (void)state;
    fixture_open(&fixture, "{range: 2}, {shuffle: {buffer_size: 2, seed: 1}}, {repeat: 50}, "
                           "{filter: 'value > -1'}");
    fixture_epoch(&fixture, 2, 40);
    opened = fixture.opened[0];
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 2}, {shuffle: {buffer_size: 2, seed: 1}}, {repeat: 50}, "
                           "{filter: 'value > -1'}");
    let_others_look(&fixture, &looks, 4);
    fixture_epoch(&fixture, 2, 40);
    assert_int_equal(fixture.opened[0], opened);
    fixture_close(&fixture);
}

static void
failures_stand_where_they_were_whoever_looks(void **state)
{
    struct order_looks looks;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 60}, {batch: 1}, {filter: 'value % 12 == 1'}");
    let_others_look(&fixture, &looks, 3);
    fixture.bad = 25;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[1] [13] ! [37] [49]");
    assert_string_equal(tnd_error_text(), "25 is bad");
    fixture.skip_bad = true;
    assert_string_equal(fixture_epoch(&fixture, 100, 7), "[1] [13] [37] [49]");
    fixture_close(&fixture);

    fixture_open(&fixture, "{range: 60}, {filter: 'value % 12 == 1'}");
    let_others_look(&fixture, &looks, 3);
    fixture.failing = 40;
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "1 13 25 37 ! 49");
    fixture_close(&fixture);
}

/* The last of them is not right after another: what it looks at is made again. */
#define FILTERS                                                                                    \
    "{range: 90}, {filter: 'value % 2 == 1'}, {filter: 'value > 9'}, {filter: 'value % 3 == 1'}, " \
    "{take: 90}, {filter: 'value % 5 == 1'}"

static void
filters_after_each_other_look_once(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, FILTERS);
    assert_string_equal(fixture_epoch(&fixture, 99, 99), "31 61");
    assert_int_equal(fixture.evaluated, 90 + 13);
    fixture_close(&fixture);
}

static void
what_is_not_foreseen_is_looked_at(void **state)
{
    (void)state;
    for (size_t chunk = 1; chunk < 60; chunk += 19)
        for (int64_t value = 0; value < 64; value++) {
            struct fixture fixture;

            fixture_open(&fixture, FILTERS);
            fixture.unforeseen = value;
            assert_string_equal(fixture_epoch(&fixture, 99, chunk), "31 61");
            assert_true(fixture.evaluated >= 90 + 13);
            assert_true(value != 31 || fixture.evaluated > 90 + 13);
            fixture_close(&fixture);
        }
}

TEST_FILE(test_order_filter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_those_for_which_it_holds),
        cmocka_unit_test(no_more_is_pulled_than_is_needed_where_it_shows),
        cmocka_unit_test(elsewhere_many_are_looked_at_at_once),
        cmocka_unit_test(bad_elements_fail_one_by_one),
        cmocka_unit_test(failures_of_the_input_stand_where_they_were),
        cmocka_unit_test(what_was_looked_at_is_given_up_at_close),
        cmocka_unit_test(it_is_the_same_whoever_looks),
        cmocka_unit_test(others_look_at_no_more_than_is_needed_where_it_shows),
        cmocka_unit_test(others_look_at_no_more_than_was_pulled_at_once),
        cmocka_unit_test(failures_stand_where_they_were_whoever_looks),
        cmocka_unit_test(filters_after_each_other_look_once),
        cmocka_unit_test(what_is_not_foreseen_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
