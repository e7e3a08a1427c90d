/* test_philox.c - known answers, TensorFlow's recorded draws, and skipping. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/philox.h"
#include "unit/test_file.h"

static void
known_answers_come_out(void **state)
{
    const struct {
        struct tnd_philox at;
        uint32_t words[4];
    } known[] = {
        { { { 0, 0 }, { 0, 0, 0, 0 } }, { 0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8 } },
        { { { ~0U, ~0U }, { ~0U, ~0U, ~0U, ~0U } },
          { 0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD } },
        { { { 0xA4093822, 0x299F31D0 }, { 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344 } },
          { 0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t words[4];

        tnd_philox_block(&known[i].at, words);
        assert_memory_equal(words, known[i].words, sizeof words);
    }
}

static void
pairs_of_seeds_are_each_a_generator(void **state)
{
    enum { PAIRS = 53 };
    uint32_t seeds[2 * PAIRS], words[2 * PAIRS + 1];

    (void)state;
    for (uint32_t i = 0; i < 2 * PAIRS; i++)
        seeds[i] = i * 2654435761U;
    for (size_t pairs = 0; pairs <= PAIRS; pairs++) {
        words[2 * pairs] = 77;
        tnd_philox_of_pairs(seeds, pairs, words);
        for (size_t i = 0; i < pairs; i++) {
            struct tnd_philox philox = tnd_philox_of_stateless_seed(seeds[2 * i], seeds[2 * i + 1]);
            uint32_t block[4];

            tnd_philox_block(&philox, block);
            assert_memory_equal(words + 2 * i, block, 2 * sizeof *block);
        }
        assert_int_equal(words[2 * pairs], 77);
    }
}

static void
stateless_draws_are_tensorflows(void **state)
{
    const struct {
        int64_t seed0, seed1;
        float draws[5]; /* 0 behind the last */
    } recorded[] = {
        { 1, 2, { 0.844060421F, 0.192045331F, 0.996223211F, 0.160387397F, 0.27199018F } },
        { 1, 0, { 0.878488183F, 0.459980249F, 0.600291252F } },
        { 42, 0, { 0.282433152F, 0.498416901F } },
        { 42, 1, { 0.528003097F, 0.243384123F } },
        { -1, -1, { 0.82241976F, 0.48861825F } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        struct tnd_philox philox =
            tnd_philox_of_stateless_seed(recorded[i].seed0, recorded[i].seed1);
        uint32_t words[5];

        tnd_philox_words(&philox, 0, 5, words);
        for (size_t j = 0; j < 5 && recorded[i].draws[j] != 0; j++)
            assert_true(fabsf(tnd_uniform_float(words[j]) - recorded[i].draws[j]) < 5e-9F);
    }
}

static void
seeking_gives_the_words_that_counting_gives(void **state)
{
    struct tnd_random counted = tnd_random_of_seeds(87654321, UINT64_C(0x1234567890));
    uint32_t words[64];
    uint32_t some[16];

    (void)state;
    for (size_t i = 0; i < 64; i++)
        words[i] = tnd_random_next(&counted);
    for (size_t from = 0; from < 48; from++) {
        struct tnd_random sought = tnd_random_of_seeds(87654321, UINT64_C(0x1234567890));

        tnd_random_seek(&sought, from);
        for (size_t i = 0; i < 16; i++)
            assert_int_equal(tnd_random_next(&sought), words[from + i]);
        tnd_philox_words(&sought.start, from, 16, some);
        assert_memory_equal(some, words + from, sizeof some);
    }
}

static void
the_counter_carries_through_all_four_words(void **state)
{
    struct tnd_philox philox = { { 1, 2 }, { ~0U, ~0U, ~0U, 0 } };

    (void)state;
    tnd_philox_skip(&philox, 1);
    assert_int_equal(philox.counter[0], 0);
    assert_int_equal(philox.counter[1], 0);
    assert_int_equal(philox.counter[2], 0);
    assert_int_equal(philox.counter[3], 1);
    tnd_philox_skip(&philox, UINT64_MAX);
    tnd_philox_skip(&philox, 2);
    assert_int_equal(philox.counter[0], 1);
    assert_int_equal(philox.counter[2], 1);
}

/* Several blocks are made at a time, but not where the counter carries. */
static void
filling_gives_block_after_block(void **state)
{
    const uint32_t lowest[] = { 0, 5, ~0U - 30, ~0U - 8, ~0U };

    (void)state;
    for (size_t i = 0; i < sizeof lowest / sizeof *lowest; i++) {
        struct tnd_philox filling = { { 1, 2 }, { lowest[i], 3, 4, 5 } };
        struct tnd_philox counting = filling;
        uint32_t filled[4 * 27], counted[4 * 27];

        tnd_philox_fill(&filling, 27, filled);
        for (int block = 0; block < 27; block++)
            tnd_philox_next(&counting, counted + (size_t)4 * (size_t)block);
        assert_memory_equal(filled, counted, sizeof filled);
        assert_memory_equal(&filling, &counting, sizeof filling);
    }
}

static void
uniform_numbers_stay_below_one(void **state)
{
    (void)state;
    assert_true(tnd_uniform_float(0) == 0.0F);
    assert_true(tnd_uniform_float(~0U) < 1.0F);
    assert_true(tnd_uniform_double(0, 0) == 0.0);
    assert_true(tnd_uniform_double(~0U, ~0U) < 1.0);
}

TEST_FILE(test_philox)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers_come_out),
        cmocka_unit_test(stateless_draws_are_tensorflows),
        cmocka_unit_test(seeking_gives_the_words_that_counting_gives),
        cmocka_unit_test(the_counter_carries_through_all_four_words),
        cmocka_unit_test(filling_gives_block_after_block),
        cmocka_unit_test(uniform_numbers_stay_below_one),
        cmocka_unit_test(pairs_of_seeds_are_each_a_generator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
