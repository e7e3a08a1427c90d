/* test_fill.c - slices that are made whole: where their values lie, and what leaves a slot that was
 * reserved at the wrong size. */
#include "../source/source_fixture.h"
#include "unit/test_file.h"

#include "session/fill.h"

enum { COLUMNS = 4, ROOM = 4096 };

/* A slot of dense columns of numbers, whose buffers have room each. */
struct room {
    uint64_t reserved[COLUMNS];
    struct slot_column columns[COLUMNS];
    struct slot_buffer buffers[COLUMNS];
    uint8_t bytes[COLUMNS][ROOM];
    struct slot slot;
};

static void
room_open(struct room *room)
{
    memset(room, 0, sizeof *room);
    memset(room->bytes, 0xA5, sizeof room->bytes);
    room->slot.columns = room->columns;
    room->slot.buffers = room->buffers;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        room->columns[i].buffer_count = 1;
        room->columns[i].buffers = &room->buffers[i];
        room->buffers[i].data = room->bytes[i];
    }
}

/* The next slice of a stream, made for the room. Without `wanted`: for no room at all. */
static void
make_next(struct pipeline *pipeline, const struct fill *fill, struct room *room, bool wanted,
          struct filled *ret_filled)
{
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;
    struct deal_slice slice = { .present = true, .words = words };
    uint32_t width = pipeline->node->width;

    assert_int_equal(order_next(pipeline->iterator, words, 1, &count), ORDER_OK);
    scratch_reset(pipeline->evaluation.scratch);
    *ret_filled = (struct filled){ .reserved = wanted ? room->reserved : NULL };
    assert_int_equal(fill_make(fill, &pipeline->evaluation, NULL, &slice, &room->slot, ret_filled),
                     TUNDISH_OK);
    run_words_release(words, 1, width, pipeline->node->run_words);
}

/* The slices of `stages`, which are all of one size. */
static void
assert_made_in_place(const char *stages, uint32_t column_count)
{
    struct folder folder;
    struct pipeline plain, placed;
    struct fill fill;
    struct filled filled;
    struct room *expected = tnd_zalloc(1, sizeof *expected), *room = tnd_zalloc(1, sizeof *room);

    folder_open(&folder);
    put_text(&folder, "series", "aabbccddeeffgghhiijjkkllmmnnooppqqrrssttuuvvwwxx");
    assert_int_equal(pipeline_open(&plain, &folder, 0, stages), TUNDISH_OK);
    assert_int_equal(pipeline_open(&placed, &folder, 0, stages), TUNDISH_OK);
    fill_open(placed.plan, &fill);
    assert_true(fill_expects(&fill));
    assert_int_equal(fill.plan->element_spec.count, column_count);
    for (int step = 0; step < 2; step++) {
        room_open(expected);
        make_next(&plain, &fill, expected, false, &filled);
        fill_copy(&fill, &filled, &expected->slot);
        room_open(room);
        for (uint32_t i = 0; i < column_count; i++)
            room->reserved[i] = expected->buffers[i].stored_bytes;
        make_next(&placed, &fill, room, true, &filled);
        assert_ptr_equal(filled.columns[column_count - 1].values, room->bytes[column_count - 1]);
        assert_true(fill_fits(&fill, placed.evaluation.scratch, &filled, &room->slot));
        fill_copy(&fill, &filled, &room->slot);
        for (uint32_t i = 0; i < column_count; i++)
            assert_memory_equal(room->bytes[i], expected->bytes[i], ROOM);
    }
    fill_close(&fill);
    pipeline_close(&placed);
    pipeline_close(&plain);
    folder_close(&folder);
    free(room);
    free(expected);
}

#define SERIES "{fixed_length_record: {filenames: series, record_bytes: 2}}, {decode_raw: uint8}"

static void
batches_are_made_in_the_slot_of_one_as_large(void **state)
{
    (void)state;
    assert_made_in_place("[" SERIES ", {batch: 3}]", 1);
    assert_made_in_place("[" SERIES ", enumerate, {batch: 3}]", 2);
    assert_made_in_place("[" SERIES ", {batch: 3}, {batch: 2}]", 1);
    assert_made_in_place("[{fixed_length_record: {filenames: series, record_bytes: 2}}, "
                         "{decode_raw: {out_type: int16, little_endian: false}}, {batch: 4}]",
                         1);
}

static void
windows_are_made_in_the_slot_of_some_as_large(void **state)
{
    (void)state;
    assert_made_in_place("[" SERIES ", {window: {size: 4, shift: 1, drop_remainder: true}}, "
                         "{batch: 5}]",
                         1);
    assert_made_in_place("[" SERIES ", {window: {size: 2, shift: 3, drop_remainder: true}}, "
                         "enumerate, {batch: 3}]",
                         2);
}

/* Of two columns that are one, the second lies where the first is wanted. */
static void
what_does_not_fit_leaves_the_slot(void **state)
{
    static const char stages[] =
        "[{from_tensor_slices: {v: [ab, cd], w: [a, abcd]}}, {decode_raw: {columns: [v, w], "
        "out_type: uint8}}, {batch: 1}, {map: {u: v}}]";
    static const char *const texts[] = { "cd", "abcd", "cd" };
    struct folder folder;
    struct pipeline pipeline;
    struct fill fill;
    struct filled filled;
    struct room *room = tnd_zalloc(1, sizeof *room);

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    fill_open(pipeline.plan, &fill);
    room_open(room);
    make_next(&pipeline, &fill, room, false, &filled);
    for (uint32_t i = 0; i < 3; i++)
        room->reserved[i] = room->buffers[i].stored_bytes;
    make_next(&pipeline, &fill, room, true, &filled);
    assert_memory_equal(room->bytes[0], "cd", 2);
    assert_false(fill_fits(&fill, pipeline.evaluation.scratch, &filled, &room->slot));
    memset(room->bytes, 0xA5, sizeof room->bytes);
    for (uint32_t i = 0; i < 3; i++)
        assert_memory_equal(filled.columns[i].values, texts[i], strlen(texts[i]));
    fill_close(&fill);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(room);
}

static void
columns_of_varying_bytes_have_no_slot_before_they_are_made(void **state)
{
    static const char *const stages[] = {
        "[{from_tensor_slices: {v: [ab, cd]}}, {batch: 2}, {batch: 1}]",
        "[{from_tensor_slices: {v: [a b, c]}}, {string_split: {columns: v}}, {ragged_batch: 2}]",
    };
    struct folder folder;

    (void)state;
    folder_open(&folder);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct pipeline pipeline;
        struct fill fill;

        assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages[i]), TUNDISH_OK);
        fill_open(pipeline.plan, &fill);
        assert_false(fill_expects(&fill));
        fill_close(&fill);
        pipeline_close(&pipeline);
    }
    folder_close(&folder);
}

TEST_FILE(test_fill)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_made_in_the_slot_of_one_as_large),
        cmocka_unit_test(windows_are_made_in_the_slot_of_some_as_large),
        cmocka_unit_test(what_does_not_fit_leaves_the_slot),
        cmocka_unit_test(columns_of_varying_bytes_have_no_slot_before_they_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
