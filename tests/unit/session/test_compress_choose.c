/* test_compress_choose.c - what is taken of offers, by what they cost and save. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "session/compress_choose.h"
#include "unit/test_file.h"

static const struct offer offers[] = {
    { .column = 0, .codec = { .number = TND_CODEC_BITPACK }, .saved = 700, .cost_ns = 100 },
    { .column = 0, .codec = { .number = TND_CODEC_ZSTD }, .saved = 780, .cost_ns = 2000 },
    { .column = 2, .codec = { .number = TND_CODEC_ZSTD }, .saved = 500, .cost_ns = 1500 },
};
enum { COUNT = sizeof offers / sizeof *offers, COLUMNS = 3 };

static void
the_best_offer_saves_most_for_its_time_and_more_than_is_saved_already(void **state)
{
    uint64_t saved[COLUMNS] = { 0 };

    (void)state;
    assert_ptr_equal(compress_offers_best(offers, COUNT, saved), &offers[0]);
    saved[0] = 700;
    assert_ptr_equal(compress_offers_best(offers, COUNT, saved), &offers[2]);
    saved[2] = 500;
    assert_ptr_equal(compress_offers_best(offers, COUNT, saved), &offers[1]);
    saved[0] = 780;
    assert_null(compress_offers_best(offers, COUNT, saved));
}

static void
an_offer_is_taken_whose_saving_is_worth_more_than_it_costs(void **state)
{
    const struct offer *taken[COLUMNS];

    (void)state;
    assert_true(
        compress_offers_paying(offers, COUNT, &(struct saving){ .byte_ns = 1 }, COLUMNS, taken));
    assert_ptr_equal(taken[0], &offers[0]);
    assert_null(taken[1]);
    assert_null(taken[2]);
    assert_true(
        compress_offers_paying(offers, COUNT, &(struct saving){ .byte_ns = 4 }, COLUMNS, taken));
    assert_ptr_equal(taken[0], &offers[0]);
    assert_ptr_equal(taken[2], &offers[2]);
    assert_true(
        compress_offers_paying(offers, COUNT, &(struct saving){ .byte_ns = 40 }, COLUMNS, taken));
    assert_ptr_equal(taken[0], &offers[1]);
}

static void
none_is_taken_if_all_together_do_not_pay_for_the_beginning(void **state)
{
    const struct offer *taken[COLUMNS];

    (void)state;
    assert_false(
        compress_offers_paying(offers, COUNT, &(struct saving){ .byte_ns = 0.1 }, COLUMNS, taken));
    assert_null(taken[0]);
    assert_false(compress_offers_paying(
        offers, COUNT, &(struct saving){ .byte_ns = 1, .begun_ns = 600 }, COLUMNS, taken));
    assert_null(taken[0]);
    assert_true(compress_offers_paying(
        offers, COUNT, &(struct saving){ .byte_ns = 1, .begun_ns = 599 }, COLUMNS, taken));
    assert_false(
        compress_offers_paying(offers, 0, &(struct saving){ .byte_ns = 9 }, COLUMNS, taken));
}

TEST_FILE(test_compress_choose)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_offer_saves_most_for_its_time_and_more_than_is_saved_already),
        cmocka_unit_test(an_offer_is_taken_whose_saving_is_worth_more_than_it_costs),
        cmocka_unit_test(none_is_taken_if_all_together_do_not_pay_for_the_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
