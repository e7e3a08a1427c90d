/* test_run.c - batches of references, counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "order_fixture.h"
#include "unit/test_file.h"

static struct run *
run_of(uint64_t first, uint64_t count)
{
    uint64_t words[64];

    for (uint64_t i = 0; i < count; i++)
        words[i] = first + i;
    return run_new(words, count, 1, 0);
}

static void
a_view_keeps_its_batch(void **state)
{
    struct run *run = run_of(0, 10);
    struct run *view = run_slice(run, 4, 3);
    struct run *of_view = run_slice(view, 1, 2);
    struct run *empty = run_slice(run, 10, 0);

    (void)state;
    run_release(run);
    run_release(view);
    assert_int_equal(of_view->row_count, 2);
    assert_int_equal(of_view->words[0], 5);
    assert_ptr_equal(of_view->parent, empty->parent);
    assert_int_equal(empty->row_count, 0);
    run_release(of_view);
    run_release(empty);
}

static void
a_window_of_a_series_is_a_batch(void **state)
{
    struct run *series = run_begin_series(1, 1, 8, 0);
    struct run *window, *slice, *empty;

    (void)state;
    while (series->element_count < 4)
        series->storage[series->element_count++] = run_word(run_of(0, 1));
    assert_true(run_is_unshared(series));
    window = run_of_series(series, 1, 3);
    assert_false(run_is_unshared(series));
    while (series->element_count < 8)
        series->storage[series->element_count++] = run_word(run_of(0, 1));
    slice = run_slice(window, 1, 2);
    empty = run_slice(window, 3, 0);
    run_release(series);
    assert_int_equal(window->row_count, 3);
    assert_ptr_equal(window->words, series->words + 1);
    assert_ptr_equal(slice->parent, window);
    assert_ptr_equal(slice->words, window->words + 1);
    assert_int_equal(slice->repeated, 0);
    assert_ptr_equal(empty->parent, window);
    run_release(window);
    run_release(slice);
    run_release(empty);
}

/* The third has memory of its own, and outlives the series. */
static void
windows_lie_in_their_series_while_there_is_room(void **state)
{
    struct run *series = run_begin_series(2, 0, 4, 2);
    struct run *windows[3];
    const uint8_t *end = (const uint8_t *)(series->storage + 8) + 2 * sizeof *series;

    (void)state;
    for (; series->element_count < 4; series->element_count++)
        series->storage[2 * series->element_count] = series->element_count;
    for (uint64_t i = 0; i < 3; i++)
        windows[i] = run_of_series(series, i, 2);
    for (uint64_t i = 0; i < 3; i++) {
        const uint8_t *at = (const uint8_t *)windows[i];

        assert_int_equal(at >= (const uint8_t *)(series->storage + 8) && at < end, i < 2);
        assert_int_equal(windows[i]->words[0], i);
        assert_int_equal(windows[i]->row_count, 2);
        assert_int_equal(windows[i]->repeated, 0);
    }
    run_release(series);
    run_release(windows[0]);
    run_release(windows[1]);
    assert_int_equal(windows[2]->words[2], 3);
    run_release(windows[2]);
}

static void
a_series_that_no_window_is_of_grows(void **state)
{
    struct run *series = run_begin_series(1, 1, 2, 1);

    (void)state;
    series->storage[series->element_count++] = run_word(run_of(0, 1));
    run_release(run_of_series(series, 0, 1));
    series = run_grow_series(series, 3, 2);
    while (series->element_count < 3)
        series->storage[series->element_count++] = run_word(run_of(0, 1));
    for (uint64_t i = 0; i < 2; i++) {
        struct run *window = run_of_series(series, i, 2);

        assert_true((const uint64_t *)window >= series->storage + 3);
        assert_ptr_equal(window->words, series->storage + i);
        run_release(window);
    }
    series = run_grow_series(series, 1, 1);
    assert_int_equal(series->room, 3);
    run_release(series);
}

static void
a_joined_run_is_cut_by_rows(void **state)
{
    uint64_t pieces[3] = { run_word(run_of(0, 2)), run_word(run_of(10, 3)),
                           run_word(run_of(20, 1)) };
    struct run *joined = run_join(pieces, 3, 1, 1, 6);
    struct run *slice = run_slice(joined, 1, 3);
    struct run *empty = run_slice(joined, 6, 0);
    struct run *none = run_join(NULL, 0, 1, 1, 0);

    (void)state;
    assert_int_equal(joined->row_count, 6);
    assert_int_equal(slice->row_count, 3);
    assert_int_equal(slice->element_count, 2);
    assert_int_equal(run_of_word(slice->words[0])->words[0], 1);
    assert_int_equal(run_of_word(slice->words[1])->words[0], 10);
    assert_int_equal(run_of_word(slice->words[1])->row_count, 2);
    assert_int_equal(empty->element_count, 1);
    assert_int_equal(empty->row_count, 0);
    assert_int_equal(none->row_count, 0);
    run_release(joined);
    run_release(slice);
    run_release(empty);
    run_release(none);
}

static void
rows_must_agree(void **state)
{
    uint64_t words[3] = { run_word(run_of(0, 2)), 7, run_word(run_of(0, 3)) };
    uint64_t rows;

    (void)state;
    assert_false(run_words_rows(words, 3, 5, &rows));
    assert_true(run_words_rows(words, 3, 1, &rows));
    assert_int_equal(rows, 2);
    assert_false(run_words_rows(words, 3, 0, &rows));
    run_words_release(words, 1, 3, 5);
}

/* The kernel's pages, and those that were freed in between, would not hold it. */
static void
a_large_run_leaves_its_memory_to_the_next(void **state)
{
    enum { COUNT = 1 << 20, OTHER = COUNT + 1 };
    struct run *run = run_begin(1, 0, COUNT), *other = run_begin(1, 0, OTHER);

    (void)state;
    run->element_count = COUNT;
    other->element_count = OTHER;
    run->storage[4321] = 42;
    other->storage[4321] = 43;
    run_release(run_finish(run, COUNT));
    run_release(run_finish(other, OTHER));
    run = run_begin(1, 0, COUNT);
    other = run_begin(1, 0, OTHER);
    assert_int_equal(run->storage[4321], 42);
    assert_int_equal(other->storage[4321], 43);
    assert_int_equal(run->element_count, 0);
    run_release(run);
    run_release(other);
    run_drop_spares();
}

TEST_FILE(test_run)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_keeps_its_batch),
        cmocka_unit_test(a_window_of_a_series_is_a_batch),
        cmocka_unit_test(windows_lie_in_their_series_while_there_is_room),
        cmocka_unit_test(a_series_that_no_window_is_of_grows),
        cmocka_unit_test(a_joined_run_is_cut_by_rows),
        cmocka_unit_test(rows_must_agree),
        cmocka_unit_test(a_large_run_leaves_its_memory_to_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
