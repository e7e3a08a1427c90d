/* test_crc32c.c - on every kind of processor against published values and a bit-by-bit loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/cpu.h"
#include "core/crc32c.h"
#include "unit/test_file.h"

static uint32_t
bit_by_bit(uint32_t crc, const uint8_t *data, size_t bytes)
{
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1)));
    }
    return ~crc;
}

static void
published_values_come_out(void **state)
{
    uint8_t data[32];

    (void)state;
    assert_int_equal(tnd_crc32c(0, "", 0), 0);
    assert_int_equal(tnd_crc32c(0, "123456789", 9), 0xE3069283);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = 0;
    assert_int_equal(tnd_crc32c(0, data, sizeof data), 0x8A9136AA);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = 0xFF;
    assert_int_equal(tnd_crc32c(0, data, sizeof data), 0x62A8AB43);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    assert_int_equal(tnd_crc32c(0, data, sizeof data), 0x46DD794E);
}

static void
every_length_and_alignment_agrees_on_every_processor(void **state)
{
    uint8_t *data = malloc(8192);

    (void)state;
    srand(7);
    for (size_t i = 0; i < 8192; i++)
        data[i] = (uint8_t)rand();
    for (size_t bytes = 0; bytes < 8000; bytes += bytes < 520 ? 1 : 37) {
        size_t from = bytes % 11;
        uint32_t expected = bit_by_bit(99, data + from, bytes);

        for (int level = 0; level < TND_CPU_LEVELS; level++)
            if (tnd_cpu_use((enum tnd_cpu_level)level))
                assert_int_equal(tnd_crc32c(99, data + from, bytes), expected);
    }
    tnd_cpu_use(tnd_cpu_best());
    free(data);
}

static void
a_checksum_may_be_taken_in_pieces(void **state)
{
    const uint8_t data[] = "the tundish stands between ladle and mould";

    (void)state;
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        uint32_t whole = tnd_crc32c(0, data, sizeof data);
        uint32_t first = tnd_crc32c(0, data, cut);

        assert_int_equal(tnd_crc32c(first, data + cut, sizeof data - cut), whole);
    }
}

static void
unmask_undoes_mask(void **state)
{
    (void)state;
    assert_int_equal(tnd_crc32c_mask(0), 0xA282EAD8);
    for (uint32_t crc = 1; crc != 0; crc <<= 1) {
        assert_int_equal(tnd_crc32c_unmask(tnd_crc32c_mask(crc)), crc);
        assert_int_equal(tnd_crc32c_unmask(tnd_crc32c_mask(~crc)), ~crc);
    }
}

TEST_FILE(test_crc32c)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values_come_out),
        cmocka_unit_test(every_length_and_alignment_agrees_on_every_processor),
        cmocka_unit_test(a_checksum_may_be_taken_in_pieces),
        cmocka_unit_test(unmask_undoes_mask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
