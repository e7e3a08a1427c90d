/* test_order_deal_split.c - the guide's rebatching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static void
append_deal(struct fixture *fixture, int64_t slices)
{
    const struct slices_arguments arguments = { .slices = slices };

    fixture_append(fixture, &order_deal_split, &arguments);
}

static void
each_batch_gives_every_replica_one_slice(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 8}, {batch: 4}");
    append_deal(&fixture, 3);
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[0 1] [2 3] [] [4 5] [6 7] []");
    assert_string_equal(fixture_epoch(&fixture, 100, 100), "[0 1] [2 3] [] [4 5] [6 7] []");
    fixture_close(&fixture);
}

static void
tails_are_cut_too(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 10}, {batch: 4}");
    append_deal(&fixture, 2);
    assert_string_equal(fixture_epoch(&fixture, 100, 5), "[0 1] [2 3] [4 5] [6 7] [8] [9]");
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 9}, {batch: 4}");
    append_deal(&fixture, 4);
    assert_string_equal(fixture_epoch(&fixture, 100, 5),
                        "[0] [1] [2] [3] [4] [5] [6] [7] [8] [] [] []");
    fixture_close(&fixture);
}

/* Also in mid-epoch, and where it is gone on from a place. */
static void
batches_that_leave_a_slice_empty_can_be_left_out(void **state)
{
    const struct slices_arguments arguments = { .slices = 3, .whole_only = true };
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 10}, {batch: 5}, {repeat: 2}");
    fixture_append(&fixture, &order_deal_split, &arguments);
    assert_string_equal(fixture_epoch(&fixture, 100, 1),
                        "[0 1] [2 3] [4] [5 6] [7 8] [9] [0 1] [2 3] [4] [5 6] [7 8] [9]");
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 8}, {batch: 6}, {repeat: 2}");
    fixture_append(&fixture, &order_deal_split, &arguments);
    assert_string_equal(fixture_epoch(&fixture, 100, 1), "[0 1] [2 3] [4 5] [0 1] [2 3] [4 5]");
    fixture_close(&fixture);
    fixture_open(&fixture, "{range: 10}, {batch: 6}");
    fixture_append(&fixture, &order_deal_split, &arguments);
    assert_string_equal(fixture_epoch(&fixture, 100, 5), "[0 1] [2 3] [4 5]");
    fixture_close(&fixture);
}

static void
each_component_is_cut_by_its_own_count(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{zip: [[{range: {stop: 8, name: a}}, {batch: 4}], [{range: {stop: 16, "
                           "name: b}}, {batch: 8}]]}");
    append_deal(&fixture, 2);
    assert_string_equal(
        fixture_epoch(&fixture, 100, 5),
        "([0 1] [0 1 2 3]) ([2 3] [4 5 6 7]) ([4 5] [8 9 10 11]) ([6 7] [12 13 14 15])");
    fixture_close(&fixture);
}

static void
joined_batches_are_cut_by_rows(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 7}, {batch: 2}, {rebatch: 5}");
    append_deal(&fixture, 3);
    assert_string_equal(fixture_epoch(&fixture, 100, 5), "[0 1] [2 3] [4] [5] [6] []");
    fixture_close(&fixture);
}

static void
batches_of_branches_keep_their_branch(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture,
                 "{concatenate: [[{range: 3}, {batch: 4}], [{range: [10, 13]}, {batch: 4}]]}");
    append_deal(&fixture, 2);
    assert_string_equal(fixture_epoch(&fixture, 100, 5), "[0 1] [2] [10 11] [12]");
    fixture_close(&fixture);
}

static uint64_t
count_repeated(const struct plan_node *root, const uint64_t *words)
{
    for (uint32_t i = 0; i < root->width; i++)
        if ((root->run_words >> i & 1) != 0 && words[i] != 0)
            return run_of_word(words[i])->repeated;
    return 9;
}

/* Of the rows of each slice, how many at its end are repeated. */
static void
assert_even(const char *pipeline, int64_t slices, const char *expected, const char *repeated)
{
    const struct slices_arguments arguments = { .slices = slices, .even = true };
    char counts[64] = "";
    uint64_t words[PLAN_WIDTH_MAX], passed;
    const struct plan_node *root;
    struct fixture fixture;
    size_t count;

    fixture_open(&fixture, pipeline);
    fixture_append(&fixture, &order_deal_split, &arguments);
    root = fixture.graph->root;
    assert_string_equal(fixture_epoch(&fixture, 100, 1), expected);
    assert_string_equal(fixture_epoch(&fixture, 100, 5), expected);
    /* The same after any number of slices was passed over: it stands in the right place. */
    for (uint64_t i = 0; repeated[i] != '\0'; i++) {
        fixture_epoch(&fixture, 0, 1);
        if (i > 0)
            assert_int_equal(order_pass_over(fixture.iterator, i, &passed), ORDER_OK);
        assert_int_equal(order_next(fixture.iterator, words, 1, &count), ORDER_OK);
        counts[i] = (char)('0' + count_repeated(root, words));
        run_words_release(words, 1, root->width, root->run_words);
    }
    assert_string_equal(counts, repeated);
    fixture_close(&fixture);
}

static void
the_last_batch_is_filled_from_the_beginning(void **state)
{
    (void)state;
    assert_even("{range: 9}, {batch: 4}", 4, "[0] [1] [2] [3] [4] [5] [6] [7] [8] [0] [1] [2]",
                "000000000111");
    assert_even("{range: 11}, {batch: 6}", 3, "[0 1] [2 3] [4 5] [6 7] [8 9] [10 0]", "000001");
    assert_even("{range: 8}, {batch: 4}", 2, "[0 1] [2 3] [4 5] [6 7]", "0000");
    assert_even("{range: 2}, {batch: 5}", 5, "[0] [1] [0] [1] [0]", "00111");
    assert_even("{range: 3}, {batch: 3}", 1, "[0 1 2]", "0");
    assert_even("{range: 0}, {batch: 3}", 3, "", "");
    /* Each that is short, as where batches are repeated. */
    assert_even("{range: 3}, {batch: 2}, {repeat: 2}", 2, "[0] [1] [2] [0] [0] [1] [2] [0]",
                "00010001");
}

static void
batches_of_other_kinds_are_filled_too(void **state)
{
    (void)state;
    assert_even("{range: 7}, {batch: 2}, {rebatch: 4}", 4, "[0] [1] [2] [3] [4] [5] [6] [0]",
                "00000001");
    /* The rows of the first batch are of the other branch. */
    assert_even("{concatenate: [[{range: 2}, {batch: 2}], [{range: [10, 13]}, {batch: 4}]]}", 2,
                "[0] [1] [10 11] [12 10]", "0001");
}

static void
slices_know_their_batch(void **state)
{
    struct fixture fixture;
    uint64_t words[2];
    size_t count;

    (void)state;
    fixture_open(&fixture, "{range: 4}, {batch: 4}");
    append_deal(&fixture, 2);
    fixture_epoch(&fixture, 0, 1);
    assert_int_equal(order_next(fixture.iterator, words, 2, &count), ORDER_OK);
    assert_int_equal(count, 2);
    assert_int_equal(run_of_word(words[1])->parent->row_count, 4);
    run_words_release(words, 2, 1, 1);
    fixture_close(&fixture);
}

static void
an_early_close_gives_up_the_batch(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "{range: 40}, {batch: 4}");
    append_deal(&fixture, 3);
    fixture_epoch(&fixture, 2, 1);
    fixture_close(&fixture);
}

TEST_FILE(test_order_deal_split)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_gives_every_replica_one_slice),
        cmocka_unit_test(tails_are_cut_too),
        cmocka_unit_test(batches_that_leave_a_slice_empty_can_be_left_out),
        cmocka_unit_test(each_component_is_cut_by_its_own_count),
        cmocka_unit_test(joined_batches_are_cut_by_rows),
        cmocka_unit_test(batches_of_branches_keep_their_branch),
        cmocka_unit_test(the_last_batch_is_filled_from_the_beginning),
        cmocka_unit_test(batches_of_other_kinds_are_filled_too),
        cmocka_unit_test(slices_know_their_batch),
        cmocka_unit_test(an_early_close_gives_up_the_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
