/* test_place.c - what a place carries survives the trip, and nothing else is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "session/place.h"

static const struct place example = {
    .fingerprint = UINT64_C(0x123456789abcdef0),
    .root_seed = 99,
    .worker_count = 3,
    .state_count = 4,
    .state = { 1, 2, UINT64_MAX, 4 },
};

static void
bytes_bring_the_same_place_back(void **state)
{
    uint8_t      bytes[sizeof(struct place)];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_OK);
    assert_memory_equal(&back, &example, sizeof back);
}

static void
a_place_is_small(void **state)
{
    struct place plain = example;

    (void)state;
    plain.state_count = 0;
    assert_true(place_bytes(&plain) < 64);
    assert_int_equal(place_bytes(&example) - place_bytes(&plain), 2 * 16);
}

static void
every_shortening_is_refused(void **state)
{
    uint8_t      bytes[sizeof(struct place)];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    for (size_t count = 0; count < place_bytes(&example); count++)
        assert_int_equal(place_read(bytes, count, &back), TUNDISH_E_PLACE);
    assert_int_equal(place_read(bytes, place_bytes(&example) + 1, &back), TUNDISH_E_PLACE);
}

static void
a_lying_count_is_refused(void **state)
{
    uint8_t        bytes[sizeof(struct place)];
    const uint32_t lie = UINT32_MAX;
    struct place   back;

    (void)state;
    place_write(&example, bytes);
    memcpy(bytes + 28, &lie, sizeof lie);
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_E_PLACE);
}

static void
another_version_is_refused(void **state)
{
    uint8_t      bytes[sizeof(struct place)];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    bytes[4]++;
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_E_PLACE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_bring_the_same_place_back),
        cmocka_unit_test(a_place_is_small),
        cmocka_unit_test(every_shortening_is_refused),
        cmocka_unit_test(a_lying_count_is_refused),
        cmocka_unit_test(another_version_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
