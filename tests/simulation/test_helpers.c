/* test_helpers.c - jobs whose servers have helpers, with faults, each by a seed.
 *
 * SEED=N plays that one alone, SECONDS=N fresh seeds for so long. What fails prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "helpers/help.h"
#include "seeds.h"

#if defined __SANITIZE_ADDRESS__
enum { SEEDS = 2 * HELP_FAULT_COUNT };
#else
enum { SEEDS = 8 * HELP_FAULT_COUNT };
#endif

/* Trainers want twice what the threads of their nodes make. */
static struct help_options
pictures(uint32_t nodes, uint32_t helpers)
{
    return (struct help_options){
        .seed = 1,
        .nodes = nodes,
        .cores = 4,
        .helpers = helpers,
        .threads = 16,
        .rows = 32,
        .part_rows = 4,
        .row_ns = 1000000,
        .row_bytes = 150000,
        .step_ns = 4000000,
        .lasts_ns = INT64_C(3000000000),
        .network = { .latency_ns = 50000, .jitter_ns = 20000, .bytes_per_ns = 10 },
    };
}

/* Parts that take long, and that take no time; networks that are fast, far and slow. */
static struct help_options
job_of_seed(uint64_t seed)
{
    static const uint32_t helpers[] = { 1, 2, 3, 8, 16 };
    static const int64_t row_ns[] = { 1000000, 100000, 4000 };
    static const double bytes_per_ns[] = { 10, 1.25, 0.125 };
    struct help_options options =
        pictures(1 + (uint32_t)(seed % 5), helpers[seed / HELP_FAULT_COUNT % 5]);

    options.seed = seed;
    options.fault = (enum help_fault)(seed % HELP_FAULT_COUNT);
    options.lasts_ns *= options.fault == HELP_GONE ? 2 : 1;
    options.cores = 1 + (uint32_t)(seed / 2 % 4);
    options.threads = 1 + (uint32_t)(seed / 3 % 16);
    options.rows = 32 + (uint32_t)(seed / 7 % 4) * 50;
    options.row_ns = row_ns[seed / 5 % 3];
    options.step_ns = options.rows * options.row_ns / options.cores / 2;
    options.network.bytes_per_ns = bytes_per_ns[seed / 11 % 3];
    options.network.latency_ns = seed / 13 % 2 == 0 ? 50000 : 5000000;
    return options;
}

static struct help_result
play(const struct help_options *options)
{
    struct help_result result;

    help_play(options, &result);
    if (result.text[0] != '\0')
        fail_msg("SEED=%llu: %u nodes, %u helpers, %s: %s", (unsigned long long)options->seed,
                 options->nodes, options->helpers, help_fault_name(options->fault), result.text);
    return result;
}

static void
every_step_comes_once_whatever_helpers_do(void **state)
{
    struct seeds seeds = seeds_begin(SEEDS);
    uint64_t seed;

    (void)state;
    while (seeds_draw(&seeds, &seed)) {
        struct help_options options = job_of_seed(seed);

        (void)play(&options);
    }
    seeds_end(&seeds);
}

static void
helpers_make_what_threads_do_not(void **state)
{
    struct help_options options = pictures(8, 0);
    struct help_result alone = play(&options), helped;

    (void)state;
    assert_int_equal(alone.asked, 0);
    options.helpers = 8;
    helped = play(&options);
    assert_true(helped.rows_a_second > 1.7 * alone.rows_a_second);
    assert_true(helped.waits * 2 < helped.steps);
    assert_true(helped.compared >= 8 * 8 && helped.compared * 20 < helped.made + 20 * 8 * 8 * 16);
    assert_int_equal(helped.remade + helped.lost, 0);
}

/* Parts then come back later than threads here would have made them and all that follows. */
static void
helpers_that_are_too_few_or_too_far_do_no_harm(void **state)
{
    struct help_options alone = pictures(16, 0), few = pictures(16, 8), far = pictures(16, 4);
    double rows_a_second = play(&alone).rows_a_second;

    (void)state;
    few.threads = 2;
    assert_true(play(&few).rows_a_second > rows_a_second);
    far.network.bytes_per_ns = 1.25;
    assert_true(play(&far).rows_a_second > rows_a_second);
}

static void
nothing_is_handed_out_where_threads_keep_up(void **state)
{
    struct help_options options = pictures(8, 8);

    (void)state;
    options.step_ns = 16000000;
    assert_int_equal(play(&options).asked, 0);
}

static void
the_parts_of_lost_helpers_are_made_again(void **state)
{
    struct help_options options = pictures(8, 8);

    (void)state;
    options.lasts_ns = INT64_C(6000000000); /* silence is noticed after two seconds */
    for (enum help_fault fault = HELP_KILLED; fault <= HELP_STALLED; fault++) {
        struct help_result result;

        options.fault = fault;
        result = play(&options);
        assert_true((fault == HELP_KILLED ? result.remade : result.overtaken) > 0);
        assert_true(result.lost >= 8 * 4);
        assert_int_equal(result.barred, 0);
    }
}

/* Not even until their silence is noticed. */
static void
trainers_do_not_wait_for_silent_helpers(void **state)
{
    struct help_options options = pictures(8, 0);
    double rows_a_second;

    (void)state;
    options.lasts_ns = INT64_C(6000000000);
    rows_a_second = play(&options).rows_a_second;
    options.helpers = 8;
    for (enum help_fault fault = HELP_GONE; fault <= HELP_STALLED; fault++) {
        options.fault = fault;
        assert_true(play(&options).rows_a_second > 1.2 * rows_a_second);
    }
}

static void
helpers_that_come_late_help_from_then_on(void **state)
{
    struct help_options options = pictures(8, 8);
    struct help_result late, never;

    (void)state;
    options.lasts_ns = INT64_C(6000000000);
    options.fault = HELP_LATE;
    late = play(&options);
    options.helpers = 0;
    never = play(&options);
    assert_true(late.rows_a_second > 1.2 * never.rows_a_second);
    assert_int_equal(late.remade, 0);
}

static void
a_helper_that_makes_other_bytes_is_found_out_by_every_node(void **state)
{
    struct help_options options = pictures(8, 8);

    (void)state;
    options.fault = HELP_OTHER;
    assert_int_equal(play(&options).barred, 8 * 4);
}

static void
one_seed_gives_one_story(void **state)
{
    struct help_options options = pictures(4, 3);
    struct help_result first, second;

    (void)state;
    options.fault = HELP_KILLED;
    first = play(&options);
    second = play(&options);
    assert_memory_equal(&first, &second, sizeof first);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_comes_once_whatever_helpers_do),
        cmocka_unit_test(helpers_make_what_threads_do_not),
        cmocka_unit_test(helpers_that_are_too_few_or_too_far_do_no_harm),
        cmocka_unit_test(nothing_is_handed_out_where_threads_keep_up),
        cmocka_unit_test(the_parts_of_lost_helpers_are_made_again),
        cmocka_unit_test(trainers_do_not_wait_for_silent_helpers),
        cmocka_unit_test(helpers_that_come_late_help_from_then_on),
        cmocka_unit_test(a_helper_that_makes_other_bytes_is_found_out_by_every_node),
        cmocka_unit_test(one_seed_gives_one_story),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
