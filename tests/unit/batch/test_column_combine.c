/* test_column_combine.c - columns cut, joined and given a batch dimension keep their lists
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "batch/column_combine.h"
#include "unit/test_file.h"

/* Three lists: [1, 2], [], [3, 4, 5]. */
static const int64_t splits[] = { 0, 2, 2, 5 };
static const int32_t values[] = { 1, 2, 3, 4, 5 };

static struct column
three_lists(void)
{
    return (struct column){
        .count = 3,
        .level_count = 1,
        .levels = { { .uniform = -1, .splits = splits } },
        .value_count = 5,
        .values = values,
    };
}

static int
scratch_setup(void **state)
{
    *state = scratch_open();
    return 0;
}

static int
scratch_teardown(void **state)
{
    scratch_close(*state);
    return 0;
}

static void
assert_values(const struct column *column, const int32_t *expected, int64_t count)
{
    assert_int_equal(column->value_count, count);
    assert_memory_equal(column->values, expected, (size_t)count * sizeof *expected);
}

static void
gather_takes_elements_in_any_order_and_again(void **state)
{
    struct column from = three_lists(), to;

    column_gather(&from, TUNDISH_INT32, (const int64_t[]){ 2, 1, 2 }, 3, *state, &to);
    assert_int_equal(to.count, 3);
    assert_values(&to, (const int32_t[]){ 3, 4, 5, 3, 4, 5 }, 6);
    assert_memory_equal(to.levels[0].splits, ((const int64_t[]){ 0, 3, 3, 6 }), 32);
}

static void
join_puts_uniform_and_uneven_lists_behind_each_other(void **state)
{
    struct column parts[2] = { three_lists(), three_lists() }, to;

    parts[1].levels[0] = (struct level){ .uniform = 1 };
    parts[1].count = parts[1].value_count = 2;
    column_join(parts, 2, TUNDISH_INT32, *state, &to);
    assert_int_equal(to.count, 5);
    assert_values(&to, (const int32_t[]){ 1, 2, 3, 4, 5, 1, 2 }, 7);
    assert_memory_equal(to.levels[0].splits, ((const int64_t[]){ 0, 2, 2, 5, 6, 7 }), 48);
}

static void
a_slice_of_a_batch_is_a_batch_of_those_rows(void **state)
{
    struct column rows = three_lists(), batch, slice;

    column_batch(&rows, (const int64_t[]){ 0, 3 }, 1, *state, &batch);
    assert_int_equal(batch.level_count, 2);
    column_slice(&batch, TUNDISH_INT32, 1, 3, *state, &slice);
    assert_int_equal(slice.levels[0].uniform, 2);
    assert_values(&slice, (const int32_t[]){ 3, 4, 5 }, 3);
    assert_memory_equal(slice.levels[1].splits, ((const int64_t[]){ 0, 0, 3 }), 24);
}

static void
unbatch_takes_off_what_batch_put_on(void **state)
{
    struct column rows = three_lists(), batch, back;

    column_batch(&rows, (const int64_t[]){ 0, 1, 3 }, 2, *state, &batch);
    column_unbatch(&batch, *state, &back);
    assert_int_equal(back.count, 3);
    assert_ptr_equal(back.levels[0].splits, splits);
}

/* Two rows of three: [0, 8, 0] and [9, 0, 7]. */
static struct column
sparse_rows(void)
{
    static const int32_t numbers[] = { 8, 9, 7 };
    static const int64_t splits_of_rows[] = { 0, 1, 3 };
    static const int64_t indices[] = { 1, 0, 2 };
    static const int64_t shapes[] = { 3, 3 };

    return (struct column){ .count = 2,
                            .level_count = 1,
                            .value_count = 3,
                            .values = numbers,
                            .indices = indices,
                            .dense_shape = shapes,
                            .levels = { { .uniform = -1, .splits = splits_of_rows } } };
}

static void
sparse_rows_come_back_out_of_their_batch(void **state)
{
    struct column rows = sparse_rows(), batch, back;

    column_batch(&rows, (const int64_t[]){ 0, 2 }, 1, *state, &batch);
    assert_memory_equal(batch.indices, ((const int64_t[]){ 0, 1, 1, 0, 1, 2 }), 48);
    column_unbatch(&batch, *state, &back);
    assert_int_equal(back.count, 2);
    assert_memory_equal(back.indices, rows.indices, 24);
    assert_memory_equal(back.dense_shape, rows.dense_shape, 16);
}

static void
a_slice_of_a_sparse_vector_has_the_values_that_stand_in_it(void **state)
{
    struct column vector = sparse_rows(), slice;

    vector.count = 1; /* of twelve, with 8, 9 and 7 at 1, 4 and 9 */
    vector.levels[0] = (struct level){ .uniform = 3 };
    vector.indices = (const int64_t[]){ 1, 4, 9 };
    vector.dense_shape = (const int64_t[]){ 12 };
    column_slice(&vector, TUNDISH_INT32, 3, 9, *state, &slice);
    assert_int_equal(slice.value_count, 1);
    assert_values(&slice, (const int32_t[]){ 9 }, 1);
    assert_int_equal(slice.indices[0], 1);
    assert_int_equal(slice.dense_shape[0], 6);
    column_slice(&vector, TUNDISH_INT32, 10, 12, *state, &slice);
    assert_int_equal(slice.value_count, 0);
    assert_int_equal(slice.dense_shape[0], 2);
}

static void
sparse_rows_keep_where_they_stood_and_the_shape_of_their_batch(void **state)
{
    static const int32_t cells[] = { 7, 8, 9 };
    static const int64_t ends[] = { 0, 1, 3 }, indices[] = { 0, 4, 1, 0, 1, 2 }, shape[] = { 2, 5 };
    struct column batch = {
        .count = 1,
        .level_count = 2,
        .value_count = 3,
        .values = cells,
        .indices = indices,
        .dense_shape = shape,
        .levels = { { .uniform = 2 }, { .uniform = -1, .splits = ends } },
    };
    struct column rows;

    column_unbatch(&batch, *state, &rows);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.level_count, 1);
    assert_memory_equal(rows.indices, ((const int64_t[]){ 4, 0, 2 }), 24);
    assert_memory_equal(rows.dense_shape, ((const int64_t[]){ 5, 5 }), 16);
}

static void
an_empty_slice_keeps_the_inner_dimension(void **state)
{
    struct column rows = three_lists(), batch, slice;

    rows.levels[0] = (struct level){ .uniform = 2 };
    rows.count = 2;
    rows.value_count = 4;
    column_batch(&rows, (const int64_t[]){ 0, 2 }, 1, *state, &batch);
    column_slice(&batch, TUNDISH_INT32, 2, 2, *state, &slice);
    assert_int_equal(slice.levels[0].uniform, 0);
    assert_int_equal(slice.levels[1].uniform, 2);
    assert_int_equal(slice.value_count, 0);
}

static void
an_empty_slice_keeps_the_length_of_all_rows(void **state)
{
    static const int64_t twos[] = { 0, 2, 4 };
    struct column rows = three_lists(), batch, slice;

    rows.levels[0] = (struct level){ .uniform = -1, .splits = twos };
    rows.count = 2;
    rows.value_count = 4;
    column_batch(&rows, (const int64_t[]){ 0, 2 }, 1, *state, &batch);
    column_slice(&batch, TUNDISH_INT32, 2, 2, *state, &slice);
    assert_int_equal(slice.levels[1].uniform, 2);
    assert_int_equal(slice.value_count, 0);
}

static void
a_sparse_column_states_its_batchs_shape_and_slices_keep_it(void **state)
{
    struct column rows = three_lists(), batch, slice;

    column_batch(&rows, (const int64_t[]){ 0, 3 }, 1, *state, &batch);
    column_state_shape(&batch, *state);
    assert_memory_equal(batch.dense_shape, ((const int64_t[]){ 3, 3 }), 16);
    column_slice(&batch, TUNDISH_INT32, 0, 1, *state, &slice);
    assert_memory_equal(slice.dense_shape, ((const int64_t[]){ 1, 3 }), 16);
}

TEST_FILE(test_column_combine)
{
#define WITH_SCRATCH(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(gather_takes_elements_in_any_order_and_again),
        WITH_SCRATCH(join_puts_uniform_and_uneven_lists_behind_each_other),
        WITH_SCRATCH(a_slice_of_a_batch_is_a_batch_of_those_rows),
        WITH_SCRATCH(unbatch_takes_off_what_batch_put_on),
        WITH_SCRATCH(sparse_rows_come_back_out_of_their_batch),
        WITH_SCRATCH(a_slice_of_a_sparse_vector_has_the_values_that_stand_in_it),
        WITH_SCRATCH(sparse_rows_keep_where_they_stood_and_the_shape_of_their_batch),
        WITH_SCRATCH(an_empty_slice_keeps_the_inner_dimension),
        WITH_SCRATCH(an_empty_slice_keeps_the_length_of_all_rows),
        WITH_SCRATCH(a_sparse_column_states_its_batchs_shape_and_slices_keep_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
