/* test_order_unbatch.c - batches back to rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
it_gives_the_rows(void **state)
{
    (void)state;
    assert_order("{range: 7}, {batch: 3}, unbatch", "0 1 2 3 4 5 6");
    assert_order("{range: 12}, {batch: 2}, {batch: 3}, unbatch",
                 "[0 1] [2 3] [4 5] [6 7] [8 9] [10 11]");
    assert_order("{range: 12}, {batch: 2}, {batch: 3}, unbatch, unbatch",
                 "0 1 2 3 4 5 6 7 8 9 10 11");
}

static void
zipped_batches_give_zipped_rows(void **state)
{
    (void)state;
    assert_order("{zip: [[{range: {stop: 5, name: a}}, {batch: 2}], [{range: {start: 10, stop: 15, "
                 "name: b}}, {batch: 2}]]}, unbatch",
                 "(0 10) (1 11) (2 12) (3 13) (4 14)");
}

static void
zipped_batches_of_unequal_sizes_fail(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{zip: [[{range: {stop: 6, name: a}}, {batch: 2}], [{range: {stop: 9, "
                           "name: b}}, {batch: 3}]]}, {unbatch: {}}");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "! ! !");
    fixture_close(&fixture);
}

static void
rows_know_their_branch(void **state)
{
    (void)state;
    assert_order(
        "{concatenate: [[{range: 3}, {batch: 2}], [{range: [10, 13]}, {batch: 2}]]}, unbatch",
        "0 1 2 10 11 12");
}

static void
joined_batches_come_apart(void **state)
{
    (void)state;
    assert_order("{range: 11}, {batch: 4}, {rebatch: 3}, unbatch", "0 1 2 3 4 5 6 7 8 9 10");
    assert_order("{concatenate: [[{range: 3}, {batch: 2}], [{range: [10, 13]}, {batch: 2}]]}, "
                 "{rebatch: 4}, unbatch",
                 "0 1 2 10 11 12");
    assert_order("{zip: [[{range: {stop: 5, name: a}}, {batch: 2}], [{range: {start: 10, stop: 15, "
                 "name: b}}, {batch: 2}]]}, {rebatch: 3}, unbatch",
                 "(0 10) (1 11) (2 12) (3 13) (4 14)");
}

static void
rows_that_only_content_knows_are_numbered(void **state)
{
    struct fixture fixture;
    uint64_t words[2 * 6];
    size_t count;

    (void)state;
    fixture_open(&fixture, "{range: 5}, {batch: 3}, {unbatch: {}}");
    fixture.graph->root->cuts_content = true;
    fixture.graph->root->width = 2;
    fixture.graph->root->run_words = 1;
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_next(fixture.iterator, words, 6, &count), ORDER_OK);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(words[2 * i + 1], i % 3);
    assert_ptr_equal(run_of_word(words[0]), run_of_word(words[4]));
    run_words_release(words, count, 2, 1);
    fixture_close(&fixture);
}

static void
an_early_close_gives_up_the_batch(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 12}, {batch: 2}, {batch: 3}, {unbatch: {}}");
    fixture_epoch(&fixture, 2, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_unbatch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_the_rows),
        cmocka_unit_test(zipped_batches_give_zipped_rows),
        cmocka_unit_test(zipped_batches_of_unequal_sizes_fail),
        cmocka_unit_test(rows_know_their_branch),
        cmocka_unit_test(joined_batches_come_apart),
        cmocka_unit_test(rows_that_only_content_knows_are_numbered),
        cmocka_unit_test(an_early_close_gives_up_the_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
