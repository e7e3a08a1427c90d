/* test_place.c - places as bytes and as tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "shm/place.h"
#include "unit/test_file.h"

static void
what_is_written_is_read(void **state)
{
    const uint8_t header[] = "root seed and the rest", bits[] = { 0xa5, 0x01 };
    struct tnd_place place = { .epoch = 3,
                               .step = 1000,
                               .header_epoch = 2,
                               .bit_count = 9,
                               .bits = bits,
                               .header = header,
                               .header_bytes = sizeof header };
    struct tnd_place back;
    uint8_t bytes[256];

    (void)state;
    assert_true(tnd_place_bytes(&place) <= sizeof bytes);
    tnd_place_write(&place, bytes);
    assert_int_equal(tnd_place_read(bytes, tnd_place_bytes(&place), &back), TUNDISH_OK);
    assert_int_equal(back.epoch, 3);
    assert_int_equal(back.step, 1000);
    assert_int_equal(back.header_epoch, 2);
    assert_int_equal(back.bit_count, 9);
    assert_memory_equal(back.bits, bits, 2);
    assert_int_equal(back.header_bytes, sizeof header);
    assert_memory_equal(back.header, header, sizeof header);
}

static void
every_flipped_bit_and_every_cut_is_noticed(void **state)
{
    struct tnd_place place = {
        .epoch = 1, .step = 2, .header = (const uint8_t *)"abc", .header_bytes = 3
    };
    struct tnd_place back;
    uint8_t bytes[128];
    uint64_t count = tnd_place_bytes(&place);

    (void)state;
    tnd_place_write(&place, bytes);
    for (uint64_t i = 0; i < count * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(tnd_place_read(bytes, count, &back), TUNDISH_E_PLACE);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(tnd_place_read(bytes, i, &back), TUNDISH_E_PLACE);
}

static void
another_version_is_refused_by_its_number(void **state)
{
    struct tnd_place place = { .epoch = 1 }, back;
    uint8_t bytes[128];

    (void)state;
    tnd_place_write(&place, bytes);
    bytes[8] = 7;
    assert_int_equal(tnd_place_read(bytes, tnd_place_bytes(&place), &back), TUNDISH_E_PLACE);
    assert_string_equal(tnd_error_text(), "the place has version 7, this library knows 1");
}

static void
tokens_of_every_length_come_back(void **state)
{
    uint8_t bytes[100], back[256];
    char token[256];
    uint64_t count;

    (void)state;
    for (uint64_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (uint64_t length = 0; length <= sizeof bytes; length++) {
        tnd_place_token_write(bytes, length, token);
        assert_int_equal(strlen(token) + 1, tnd_place_token_bytes(length));
        assert_true(tnd_place_token_decoded_bytes(token) >= length);
        assert_int_equal(tnd_place_token_read(token, back, &count), TUNDISH_OK);
        assert_int_equal(count, length);
        assert_memory_equal(back, bytes, length);
    }
}

static void
what_is_no_token_is_refused(void **state)
{
    uint8_t back[64];
    uint64_t count;

    (void)state;
    assert_int_equal(tnd_place_token_read("", back, &count), TUNDISH_E_PLACE);
    assert_int_equal(tnd_place_token_read("tnd2.AAAA", back, &count), TUNDISH_E_PLACE);
    assert_int_equal(tnd_place_token_read("tnd1.AA=A", back, &count), TUNDISH_E_PLACE);
    assert_non_null(strchr(tnd_error_text(), '='));
}

TEST_FILE(test_place)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(every_flipped_bit_and_every_cut_is_noticed),
        cmocka_unit_test(another_version_is_refused_by_its_number),
        cmocka_unit_test(tokens_of_every_length_come_back),
        cmocka_unit_test(what_is_no_token_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
