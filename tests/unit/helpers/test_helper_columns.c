/* test_helper_columns.c - a helper's columns are taken if they fit together, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "batch/portable.h"
#include "helpers/helper_wire.h"
#include "session/fill.h"
#include "session/session_spec.h"
#include "unit/test_file.h"

enum { DENSE, TEXTS, RAGGED, SPARSE, COLUMNS };

/* A stream of a column of each kind, and an answer of two rows of it. */
struct world {
    struct plan plan;
    struct plan_widen widen[COLUMNS];
    struct fill_column columns[COLUMNS];
    struct fill fill;
    tundish_spec spec;
    struct slot sent, came;
    struct portable_bytes bytes;
};

static int32_t dense[4] = { 1, 2, 3, 4 };
static int64_t offsets[3] = { 0, 2, 5 };
static char texts[] = "abcde";
static int64_t splits[3] = { 0, 1, 3 };
static float ragged[3] = { 1, 2, 3 };
static int64_t indices[4] = { 0, 1, 1, 0 };
static int64_t sparse[2] = { 8, 9 };

static void
add_column(struct world *world, const char *name, tundish_dtype dtype, tundish_kind kind)
{
    struct column_spec *column = schema_add(&world->plan.element_spec, name, dtype);

    column->kind = kind;
    column->rank = kind == TUNDISH_DENSE && dtype == TUNDISH_STRING ? 1 : 2;
    column->shape[0] = -1;
    column->shape[1] = kind == TUNDISH_RAGGED ? -1 : 2;
    column->ragged_rank = kind == TUNDISH_RAGGED;
}

static void
set_buffer(struct world *world, uint32_t column, uint32_t buffer, void *data, size_t bytes)
{
    struct slot_buffer *to = &world->sent.columns[column].buffers[buffer];

    to->data = data;
    to->stored_bytes = to->decoded_bytes = bytes;
}

static int
open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    *state = world;
    add_column(world, "dense", TUNDISH_INT32, TUNDISH_DENSE);
    add_column(world, "texts", TUNDISH_STRING, TUNDISH_DENSE);
    add_column(world, "ragged", TUNDISH_FLOAT32, TUNDISH_RAGGED);
    add_column(world, "sparse", TUNDISH_INT64, TUNDISH_SPARSE);
    world->plan.widen = world->widen;
    world->fill = (struct fill){ .plan = &world->plan, .columns = world->columns };
    assert_int_equal(session_spec_open(&world->plan, &world->spec), TUNDISH_OK);
    lane_slot_init_as(&world->spec, &world->sent);
    lane_slot_init_as(&world->spec, &world->came);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        world->sent.columns[i].shape[0] = 2;
        world->sent.columns[i].shape[1] = i == RAGGED ? -1 : 2;
    }
    set_buffer(world, DENSE, 0, dense, sizeof dense);
    set_buffer(world, TEXTS, 0, offsets, sizeof offsets);
    set_buffer(world, TEXTS, 1, texts, 5);
    set_buffer(world, RAGGED, 0, splits, sizeof splits);
    set_buffer(world, RAGGED, 1, ragged, sizeof ragged);
    set_buffer(world, SPARSE, 0, indices, sizeof indices);
    set_buffer(world, SPARSE, 1, sparse, sizeof sparse);
    return 0;
}

static int
close_world(void **state)
{
    struct world *world = *state;

    lane_slot_fini(&world->sent);
    lane_slot_fini(&world->came);
    session_spec_close(&world->spec);
    schema_close(&world->plan.element_spec);
    free(world->bytes.bytes);
    free(world);
    return 0;
}

static tundish_status
read_bytes(struct world *world, size_t bytes)
{
    uint64_t head_bytes = helper_head_bytes(&world->came);
    uint8_t *copy = malloc(bytes + 1); /* so that a sanitizer sees its end */
    struct byte_view heads, buffers;
    tundish_status status;

    memcpy(copy, world->bytes.bytes, bytes);
    heads = (struct byte_view){ copy, head_bytes < bytes ? head_bytes : bytes };
    buffers = (struct byte_view){ copy + heads.size, bytes - heads.size };
    status = helper_read_columns(&world->fill, &heads, &buffers, &world->came);
    if (status == TUNDISH_OK && buffers.size > 0)
        status = TUNDISH_E_CORRUPT;
    if (status == TUNDISH_OK)
        assert_memory_equal(world->came.columns[TEXTS].buffers[1].data, texts,
                            world->came.columns[TEXTS].buffers[1].stored_bytes);
    free(copy);
    return status;
}

/* The answer as it is now, sent and read. */
static tundish_status
send_and_read(struct world *world)
{
    world->bytes.used = 0;
    helper_write_head(&world->sent, &world->bytes);
    assert_int_equal(world->bytes.used, helper_head_bytes(&world->sent));
    for (uint32_t i = 0; i < world->sent.buffer_count; i++)
        portable_add(&world->bytes, world->sent.buffers[i].data,
                     world->sent.buffers[i].stored_bytes);
    return read_bytes(world, world->bytes.used);
}

static void
columns_of_every_kind_are_taken(void **state)
{
    struct world *world = *state;

    assert_int_equal(send_and_read(world), TUNDISH_OK);
    assert_int_equal(world->came.columns[SPARSE].shape[0], 2);
}

static void
an_answer_that_is_cut_off_or_too_long_is_refused(void **state)
{
    struct world *world = *state;

    assert_int_equal(send_and_read(world), TUNDISH_OK);
    for (size_t bytes = 0; bytes < world->bytes.used; bytes++)
        assert_int_equal(read_bytes(world, bytes), TUNDISH_E_CORRUPT);
    portable_add(&world->bytes, "", 1);
    assert_int_equal(read_bytes(world, world->bytes.used), TUNDISH_E_CORRUPT);
}

/* One value of the answer is a lie. */
static void
assert_refused(struct world *world, int64_t *value, int64_t lie)
{
    int64_t truth = *value;

    *value = lie;
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
    *value = truth;
    assert_int_equal(send_and_read(world), TUNDISH_OK);
}

static void
steps_that_make_no_sense_are_refused(void **state)
{
    struct world *world = *state;

    assert_refused(world, &offsets[0], 1);
    assert_refused(world, &offsets[1], 6);
    assert_refused(world, &offsets[2], 6);
    assert_refused(world, &offsets[2], INT64_MAX);
    assert_refused(world, &splits[1], -1);
    assert_refused(world, &splits[2], 2);
    assert_refused(world, &splits[2], 4);
}

static void
shapes_that_do_not_fit_are_refused(void **state)
{
    struct world *world = *state;

    for (uint32_t i = 0; i < COLUMNS; i++) {
        int64_t *rows = &world->sent.columns[i].shape[0];

        assert_refused(world, rows, -1);
        if (i == SPARSE)
            continue; /* its shape does not say how many values there are */
        assert_refused(world, rows, 3);
        assert_refused(world, rows, INT64_MAX);
    }
    assert_refused(world, &world->sent.columns[DENSE].shape[1], 3);
    assert_refused(world, &world->sent.columns[RAGGED].shape[0], 1);
    assert_refused(world, &world->sent.columns[RAGGED].shape[1], 2);
}

/* Two rows of one value have two values, as one row of two has. */
static void
a_dimension_that_is_known_is_not_smaller(void **state)
{
    struct world *world = *state;

    set_buffer(world, DENSE, 0, dense, sizeof dense / 2);
    world->sent.columns[DENSE].shape[1] = 1;
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
    world->sent.columns[DENSE].shape[0] = 1;
    world->sent.columns[DENSE].shape[1] = 2;
    assert_int_equal(send_and_read(world), TUNDISH_OK);
}

static void
indices_outside_of_the_column_are_refused(void **state)
{
    struct world *world = *state;

    assert_refused(world, &indices[0], 2);
    assert_refused(world, &indices[1], INT64_MAX);
    assert_refused(world, &indices[3], -1);
    assert_refused(world, &world->sent.columns[SPARSE].shape[1], 1);
}

/* Trainers would decode offsets that are none. */
static void
a_codec_of_offsets_is_refused(void **state)
{
    struct world *world = *state;
    size_t head = sizeof(struct tnd_codec) + 2 * sizeof(uint64_t);
    size_t shape = sizeof world->sent.columns->shape;

    assert_int_equal(send_and_read(world), TUNDISH_OK);
    world->bytes.bytes[shape + head + shape] = TND_CODEC_ZSTD;
    assert_int_equal(read_bytes(world, world->bytes.used), TUNDISH_E_CORRUPT);
    world->bytes.bytes[shape + head + shape] = 0;
    assert_int_equal(read_bytes(world, world->bytes.used), TUNDISH_OK);
    world->bytes.bytes[shape + head + shape + sizeof(struct tnd_codec)] = 1; /* decoded */
    assert_int_equal(read_bytes(world, world->bytes.used), TUNDISH_E_CORRUPT);
}

static void
sizes_that_lie_are_refused(void **state)
{
    struct world *world = *state;

    for (uint32_t i = 0; i < world->sent.buffer_count; i++) {
        struct slot_buffer *buffer = &world->sent.buffers[i];
        uint64_t truth = buffer->stored_bytes;

        buffer->stored_bytes = truth - 1;
        assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
        buffer->stored_bytes = buffer->decoded_bytes = 0;
        assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
        buffer->stored_bytes = buffer->decoded_bytes = truth;
    }
    slot_values(&world->sent, DENSE)->decoded_bytes = 1 << 20;
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
}

static void
a_codec_that_was_not_asked_for_is_refused(void **state)
{
    const struct tnd_codec narrow = { .number = TND_CODEC_NARROW, .value_bytes = 4, .width = 1 };
    struct world *world = *state;
    struct slot_buffer *values = slot_values(&world->sent, DENSE);

    values->codec = narrow;
    values->stored_bytes = 4;
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
    world->columns[DENSE].codec = narrow;
    assert_int_equal(send_and_read(world), TUNDISH_OK);
    values->stored_bytes = 3; /* of four values */
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
    values->stored_bytes = 4;
    values->codec.base = 5;
    assert_int_equal(send_and_read(world), TUNDISH_E_CORRUPT);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

TEST_FILE(test_helper_columns)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(columns_of_every_kind_are_taken),
        IN_WORLD(an_answer_that_is_cut_off_or_too_long_is_refused),
        IN_WORLD(steps_that_make_no_sense_are_refused),
        IN_WORLD(shapes_that_do_not_fit_are_refused),
        IN_WORLD(a_dimension_that_is_known_is_not_smaller),
        IN_WORLD(indices_outside_of_the_column_are_refused),
        IN_WORLD(a_codec_of_offsets_is_refused),
        IN_WORLD(sizes_that_lie_are_refused),
        IN_WORLD(a_codec_that_was_not_asked_for_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
