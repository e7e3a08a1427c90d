/* test_view.c - headers and slots that are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "deliver/lane_private.h"
#include "shm/view.h"
#include "unit/test_file.h"

static const double scales[] = { 0.25, 0.5 };

static const tundish_column_spec columns[] = {
    { .name = "x",
      .dtype = TUNDISH_UINT8,
      .kind = TUNDISH_DENSE,
      .rank = 2,
      .shape = { -1, 2 },
      .widen_dtype = TUNDISH_FLOAT32,
      .widen_scale_count = 2,
      .widen_scale = scales,
      .widen_offset_count = 1,
      .widen_offset = scales },
    { .name = "s",
      .dtype = TUNDISH_STRING,
      .kind = TUNDISH_RAGGED,
      .rank = 3,
      .ragged_rank = 2,
      .shape = { -1, -1, -1 } },
    { .name = "i", .dtype = TUNDISH_INT64, .kind = TUNDISH_SPARSE, .rank = 2, .shape = { -1, 9 } },
};

static const tundish_spec spec = { .column_count = 3,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

/* A lane with one batch in its first slot, and a copy of its segment to do harm to. */
struct patient {
    struct lane *lane;
    uint8_t *bytes;
    uint64_t segment_bytes;
    struct tnd_view view;
};

static void
publish_one(struct lane *lane)
{
    struct slot slot;
    int64_t *numbers;

    lane_slot_init(lane, &slot);
    slot.columns[0].shape[0] = 1;
    slot.columns[0].buffers[0].stored_bytes = 2;
    slot.columns[1].shape[0] = 1;
    slot.columns[1].buffers[0].stored_bytes = 16;
    slot.columns[1].buffers[1].stored_bytes = 16;
    slot.columns[1].buffers[2].stored_bytes = 16;
    slot.columns[1].buffers[3].stored_bytes = 3;
    slot.columns[2].shape[0] = 1;
    slot.columns[2].buffers[0].stored_bytes = 16;
    slot.columns[2].buffers[1].stored_bytes = 8;
    assert_int_equal(lane_reserve(lane, &slot), TUNDISH_OK);
    for (uint32_t i = 0; i < slot.buffer_count; i++)
        memset(slot.buffers[i].data, 0, slot.buffers[i].stored_bytes);
    for (int i = 0; i < 3; i++) {
        numbers = slot.columns[1].buffers[i].data;
        numbers[1] = i < 2 ? 1 : 3;
    }
    lane_seal(lane, &slot);
    lane_publish(lane, &slot);
    lane_slot_fini(&slot);
}

static void
open_patient(struct patient *patient)
{
    struct lane_config config = {
        .name = "patient", .slots = 3, .arena_bytes = 4096, .memory = LANE_MEMFD, .spec = &spec
    };

    assert_int_equal(lane_open(&config, &patient->lane), TUNDISH_OK);
    publish_one(patient->lane);
    patient->segment_bytes = patient->lane->segment.segment_bytes;
    patient->bytes = aligned_alloc(4096, (patient->segment_bytes + 4095) / 4096 * 4096);
    memcpy(patient->bytes, patient->lane->segment.bytes, patient->segment_bytes);
}

static void
close_patient(struct patient *patient)
{
    lane_close(patient->lane);
    free(patient->bytes);
}

static tundish_status
look(struct patient *patient)
{
    struct tnd_view_slot slot = { 0 };
    uint32_t index;
    tundish_status status = tnd_view_open(patient->bytes, patient->segment_bytes, &patient->view);

    if (status != TUNDISH_OK)
        return status;
    status = tnd_view_slot_open(&patient->view, &slot);
    if (status == TUNDISH_OK)
        status = tnd_view_entry(&patient->view, 0, 0, &index);
    if (status == TUNDISH_OK)
        status = tnd_view_slot_read(&patient->view, index, &slot);
    if (status == TUNDISH_OK)
        status = tnd_view_slot_check_buffers(&slot, patient->segment_bytes);
    tnd_view_slot_close(&slot);
    tnd_view_close(&patient->view);
    return status;
}

static void
a_sound_segment_is_read(void **state)
{
    struct patient patient;

    (void)state;
    open_patient(&patient);
    assert_int_equal(look(&patient), TUNDISH_OK);
    assert_int_equal(tnd_view_open(patient.bytes, patient.segment_bytes, &patient.view),
                     TUNDISH_OK);
    assert_string_equal(tundish_column_spec_at(&patient.view.spec.spec, 1)->name, "s");
    assert_true(tundish_column_spec_at(&patient.view.spec.spec, 0)->widen_scale[1] == 0.5);
    tnd_view_close(&patient.view);
    close_patient(&patient);
}

static void
another_layout_is_told_apart_from_damage(void **state)
{
    struct patient patient;

    (void)state;
    open_patient(&patient);
    patient.bytes[8]++;
    assert_int_equal(look(&patient), TUNDISH_E_LAYOUT);
    assert_non_null(strstr(tnd_error_text(), "install the same version of both"));
    patient.bytes[8]--;
    /* What a minor version adds is not needed. */
    patient.bytes[10]++;
    assert_int_equal(look(&patient), TUNDISH_OK);
    tnd_view_close(&patient.view);
    patient.bytes[10]--;
    patient.bytes[0]++;
    assert_int_equal(look(&patient), TUNDISH_E_CORRUPT);
    patient.bytes[0]--;
    assert_int_equal(tnd_view_open(patient.bytes, 100, &patient.view), TUNDISH_E_CORRUPT);
    close_patient(&patient);
}

/* Extreme values in every aligned word of header, spec and slot: refused or harmless, never more
 * (the sanitizers watch). */
static void
no_single_word_leads_outside(void **state)
{
    const uint64_t values[] = { 0,
                                1,
                                2,
                                0x7fffffff,
                                0xffffffff,
                                UINT64_MAX,
                                UINT64_MAX - 63,
                                UINT64_C(1) << 63,
                                UINT64_C(1) << 40 };
    struct patient patient;

    (void)state;
    open_patient(&patient);
    for (uint64_t at = 0; at + 8 <= patient.lane->payload_offset; at += 4) {
        uint8_t sound[8];

        memcpy(sound, patient.bytes + at, 8);
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            memcpy(patient.bytes + at, &values[i], i % 2 == 0 ? 8 : 4);
            look(&patient);
            memcpy(patient.bytes + at, sound, 8);
        }
    }
    assert_int_equal(look(&patient), TUNDISH_OK);
    close_patient(&patient);
}

static void
an_entry_is_found_as_the_newest_or_in_its_line(void **state)
{
    struct patient patient;
    struct tnd_batches *batches;
    _Atomic uint32_t *slots;
    uint32_t index = 9;

    (void)state;
    open_patient(&patient);
    batches = (struct tnd_batches *)(void *)patient.bytes;
    assert_int_equal(tnd_view_open(patient.bytes, patient.segment_bytes, &patient.view),
                     TUNDISH_OK);
    slots = (_Atomic uint32_t *)(uintptr_t)(tnd_view_line(&patient.view, 0) + 1);
    atomic_store(&slots[0], 2);
    assert_int_equal(tnd_view_entry(&patient.view, 0, 0, &index), TUNDISH_OK);
    assert_int_equal(index, 0);
    /* The server has gone on to another, or does not say which is the newest. */
    atomic_store(&batches->newest, TND_NEWEST(1, 1));
    assert_int_equal(tnd_view_entry(&patient.view, 0, 0, &index), TUNDISH_OK);
    assert_int_equal(index, 2);
    atomic_store(&batches->newest, 0);
    atomic_store(&slots[0], 1);
    assert_int_equal(tnd_view_entry(&patient.view, 0, 0, &index), TUNDISH_OK);
    assert_int_equal(index, 1);
    atomic_store(&batches->newest, TND_NEWEST(0, 3));
    assert_int_equal(tnd_view_entry(&patient.view, 0, 0, &index), TUNDISH_E_CORRUPT);
    tnd_view_close(&patient.view);
    close_patient(&patient);
}

TEST_FILE(test_view)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_segment_is_read),
        cmocka_unit_test(another_layout_is_told_apart_from_damage),
        cmocka_unit_test(no_single_word_leads_outside),
        cmocka_unit_test(an_entry_is_found_as_the_newest_or_in_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
