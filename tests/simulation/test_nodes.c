/* test_nodes.c - jobs of simulated servers with faults, each by a seed.
 *
 * SEED=N plays that one alone, SECONDS=N fresh seeds for so long. What fails prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodes/story.h"
#include "seeds.h"

/* Each fiber's stack costs AddressSanitizer much: there the jobs have at most 17 nodes. */
#if defined __SANITIZE_ADDRESS__
enum { SEEDS = FAULT_COUNT, MANY_NODES = 96, EVALUATIONS = 2 };
#else
enum { SEEDS = 8 * FAULT_COUNT, MANY_NODES = 512, EVALUATIONS = 8 };
#endif

/* Jobs of one level of the tree, of two and of three; networks that are fast or slow. */
static struct story_options
story_of_seed(uint64_t seed)
{
    static const uint32_t sizes[] = { 2, 3, 5, 9, 10, 17, 40, 74, 100 };
    enum fault fault = (enum fault)(seed % FAULT_COUNT);

    return (struct story_options){
        .seed = seed,
        .nodes = sizes[seed / FAULT_COUNT % (sizeof sizes / sizeof *sizes)],
        .files = 30,
        .vocabularies = 2,
        .shared_files = 60,
        .latency_ns = 50000,
        .jitter_ns = seed % 2 == 0 ? 20000 : 20000000,
        .bytes_per_ns = 10,
        .serves_ns = INT64_C(3000000000),
        .step_ns = INT64_C(20000000),
        .steps = 100,
        .are_known = seed / 2 % 3 == 0,
        .ends_with_first = seed / 3 % 2 == 0,
        .is_cut = seed / 5 % 3 == 0,
        .places_differ = seed / 7 % 2 == 0,
        .fault = fault,
        .fault_phase = fault == FAULT_ERROR || fault == FAULT_ORDER
                           ? PHASE_DEAL
                           : PHASE_ROWS + (enum phase)(seed / 11 % (PHASE_COUNT - PHASE_ROWS)),
    };
}

static void
play(const struct story_options *options)
{
    struct story_result result;

    story_play(options, &result);
    if (result.text[0] != '\0')
        fail_msg("SEED=%llu: %u nodes, %s: %s", (unsigned long long)options->seed, options->nodes,
                 fault_name(options->fault), result.text);
}

static void
every_job_agrees_or_all_its_nodes_are_told_the_same(void **state)
{
    struct seeds seeds = seeds_begin(SEEDS);
    uint64_t seed;

    (void)state;
    while (seeds_draw(&seeds, &seed)) {
        struct story_options options = story_of_seed(seed);

        play(&options);
    }
    seeds_end(&seeds);
}

static void
a_job_of_one_node_waits_for_nobody(void **state)
{
    struct story_options options = story_of_seed(1);

    (void)state;
    options.nodes = 1;
    play(&options);
}

/* It hears of the first loss only, and has asked others for rows by then. */
static void
a_node_that_is_cut_off_from_all_ends(void **state)
{
    struct story_options options = story_of_seed(1882994754191407);

    (void)state;
    play(&options);
}

static void
many_nodes_agree_and_are_told_of_a_loss(void **state)
{
    struct story_options options = story_of_seed(1);

    (void)state;
    options.nodes = MANY_NODES;
    options.fault = FAULT_KILLED;
    options.jitter_ns = 20000;
    play(&options);
}

/* Nodes that hand on what others ask for are lost, among them some with what they were to hand on.
 */
static void
an_evaluation_goes_on_without_the_nodes_between(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= EVALUATIONS; seed++) {
        struct story_options options = story_of_seed(seed);

        options.nodes = 74;
        options.fault = FAULT_SEVERAL;
        options.fault_phase = PHASE_EVALUATE;
        play(&options);
    }
}

static void
one_seed_gives_one_story(void **state)
{
    struct story_options options = story_of_seed(FAULT_COUNT * 5 + FAULT_KILLED);
    struct story_result first, second;

    (void)state;
    story_play(&options, &first);
    story_play(&options, &second);
    assert_memory_equal(first.text, second.text, sizeof first.text);
    for (int i = 0; i < PHASE_COUNT; i++) {
        assert_true(first.costs[i].messages == second.costs[i].messages);
        assert_true(first.costs[i].seconds == second.costs[i].seconds);
    }
    assert_int_equal(first.told_ns, second.told_ns);
    assert_true(first.failed && first.told_ns > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_agrees_or_all_its_nodes_are_told_the_same),
        cmocka_unit_test(a_job_of_one_node_waits_for_nobody),
        cmocka_unit_test(a_node_that_is_cut_off_from_all_ends),
        cmocka_unit_test(many_nodes_agree_and_are_told_of_a_loss),
        cmocka_unit_test(an_evaluation_goes_on_without_the_nodes_between),
        cmocka_unit_test(one_seed_gives_one_story),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
