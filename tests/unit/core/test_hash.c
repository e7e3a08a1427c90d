/* test_hash.c - FarmHash and SipHash against what TensorFlow recorded, every length from 0. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/bytes.h"
#include "core/decimal.h"
#include "core/hash_decimals.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/modulus.h"
#include "unit/test_file.h"

#define MODULUS UINT64_C(9223372036854775783) /* num_buckets of the recorded cases */

static char *
read_case(const char *name, size_t *ret_bytes)
{
    char path[1024];
    FILE *file;
    char *text = malloc(1 << 20);
    size_t bytes;

    snprintf(path, sizeof path, RECORDED_CASES "/%s", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    bytes = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    text[bytes] = '\0';
    *ret_bytes = bytes;
    return text;
}

static uint64_t
farm_of(struct byte_view term)
{
    return tnd_hash_farm(term.data, term.size);
}

static uint64_t
sip_of(struct byte_view term)
{
    return tnd_hash_sip((const uint64_t[2]){ 1, 2 }, term.data, term.size);
}

/* The records of content_lengths.tfrecord have 0, 1, 2 .. 200 bytes. */
static void
compare_lengths(const char *recorded, uint64_t (*hash)(struct byte_view))
{
    size_t data_bytes, json_bytes, count = 0;
    char *data = read_case("data/content_lengths.tfrecord", &data_bytes);
    char *json = read_case(recorded, &json_bytes);
    char *at = strstr(json, "\"workers\"");
    size_t offset = 0;

    assert_non_null(at);
    at = strchr(strstr(at, "\"values\""), '[') + 1;
    while (offset < data_bytes) {
        struct byte_view term = { (const uint8_t *)data + offset + 12, load_u64(data + offset) };

        assert_int_equal(hash(term) % MODULUS, strtoull(at, &at, 10));
        at++;
        offset += 16 + term.size;
        count++;
    }
    assert_int_equal(count, 201);
    free(json);
    free(data);
}

static void
farm_is_tensorflows_fast_hash_at_every_length(void **state)
{
    (void)state;
    compare_lengths("content/hashing_lengths.json", farm_of);
}

static void
sip_is_tensorflows_strong_hash_at_every_length(void **state)
{
    (void)state;
    compare_lengths("content/hashing_lengths_strong.json", sip_of);
}

static void
recorded_fingerprints_come_out(void **state)
{
    const struct {
        const char *text;
        uint64_t fingerprint;
    } recorded[] = {
        { "", UINT64_C(11160318154034397263) },
        { "a", UINT64_C(12917804110809363939) },
        { "hello", UINT64_C(13009744463427800296) },
        { "-1", UINT64_C(7333874265151076430) },
        { "12345", UINT64_C(16550883754376084728) },
        { "The quick brown fox jumps over the lazy dog", UINT64_C(12375473906752639284) },
        { "0123456789012345678901234567890123456789012345678901234567890123456789",
          UINT64_C(5261878338456922136) },
    };

    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        assert_true(farm_of(bytes_of_text(recorded[i].text)) == recorded[i].fingerprint);
    assert_true(tnd_hash_farm_decimal(-1) == recorded[3].fingerprint);
    assert_true(tnd_hash_farm_decimal(12345) == recorded[4].fingerprint);
    assert_int_equal(farm_of(bytes_of_text("Hello")) % 3, 0);
    assert_int_equal(farm_of(bytes_of_text("TensorFlow")) % 3, 2);
    assert_int_equal(farm_of(bytes_of_text("2.x")) % 3, 2);
    assert_int_equal(sip_of(bytes_of_text("Hello")) % 3, 2);
    assert_int_equal(sip_of(bytes_of_text("TF")) % 3, 0);
}

static void
recorded_salted_bins_come_out(void **state)
{
    const uint64_t pair[2] = { 133, 137 };
    const uint64_t single[2] = { 133, 133 };
    const int pair_bins[] = { 1, 2, 1, 0, 2 };
    const int single_bins[] = { 0, 0, 2, 1, 0 };
    const int plain_bins[] = { 1, 0, 1, 1, 2 };
    const int decimal_bins[] = { 1, 0, 1, 0, 2 };

    (void)state;
    for (int i = 0; i < 5; i++) {
        char term = (char)('A' + i);

        assert_int_equal(tnd_hash_farm(&term, 1) % 3, plain_bins[i]);
        assert_int_equal(tnd_hash_sip(pair, &term, 1) % 3, pair_bins[i]);
        assert_int_equal(tnd_hash_sip(single, &term, 1) % 3, single_bins[i]);
        assert_int_equal(tnd_hash_farm_decimal(i) % 3, decimal_bins[i]);
    }
}

static void
sip_gives_its_authors_vector(void **state)
{
    const uint64_t key[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908) };
    uint8_t data[15];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    assert_true(tnd_hash_sip(key, data, 15) == UINT64_C(0xA129CA6149BE45E5));
    assert_true(tnd_hash_sip_decimal(key, -77) == tnd_hash_sip(key, "-77", 3));
}

static void
recorded_crosses_come_out(void **state)
{
    const char *letters[] = { "A", "B", "A", "B", "A" };
    const uint64_t numbers[] = { 101, 101, 101, 102, 102 };
    const uint64_t of_5[] = { 1, 4, 1, 1, 3 };
    const uint64_t of_10[] = { 1, 4, 1, 6, 3 };

    (void)state;
    for (int i = 0; i < 5; i++) {
        uint64_t cross = tnd_hash_farm_cat(TND_HASH_CROSS_KEY, farm_of(bytes_of_text(letters[i])));

        cross = tnd_hash_farm_cat(cross, numbers[i]);
        assert_int_equal(cross % 5, of_5[i]);
        assert_int_equal(cross % 10, of_10[i]);
    }
}

static void
hashes_are_of_the_text(int64_t number)
{
    const uint64_t key[2] = { 133, 137 };
    char text[32];
    size_t bytes = (size_t)sprintf(text, "%" PRId64, number);

    assert_true(tnd_hash_farm_decimal(number) == tnd_hash_farm(text, bytes));
    assert_true(tnd_hash_sip_decimal(key, number) == tnd_hash_sip(key, text, bytes));
}

static void
integers_are_hashed_as_their_text(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int64_t i = -20000; i <= 20000; i++)
        hashes_are_of_the_text(i);
    for (uint64_t power = 1, last = 0; power > last; last = power, power *= 10)
        for (int64_t i = -2; i <= 2; i++) {
            hashes_are_of_the_text((int64_t)(power + (uint64_t)i));
            hashes_are_of_the_text(-(int64_t)(power + (uint64_t)i));
        }
    for (int i = 0; i < 100000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        hashes_are_of_the_text((int64_t)random >> i % 64);
    }
    hashes_are_of_the_text(INT64_MIN);
    hashes_are_of_the_text(INT64_MAX);
}

/* Of any length, mostly like its neighbours. */
static int64_t
any_number(uint64_t *random, unsigned shift)
{
    static const int64_t special[] = { 0,
                                       9,
                                       10,
                                       999,
                                       1000,
                                       9999999,
                                       10000000,
                                       99999999,
                                       100000000,
                                       99999999999999,
                                       100000000000000,
                                       INT64_MAX,
                                       INT64_MIN };
    int64_t number;

    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    number = (int64_t)*random >> (*random >> 60 == 0 ? *random >> 32 & 63 : shift);
    if (*random >> 20 & 31)
        return *random >> 19 & 3 ? (int64_t)(number & INT64_MAX) : number;
    number = special[(*random >> 32) % (sizeof special / sizeof *special)];
    return *random & 1 << 25 ? (int64_t)(0 - (uint64_t)number) : number;
}

static void
many_integers_are_hashed_as_each(void **state)
{
    enum { MANY = 70 };
    const uint64_t key[2] = { 133, 137 };
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t count = (size_t)round % MANY;
        int64_t numbers[MANY];
        uint64_t farm[MANY], sip[MANY];

        for (size_t i = 0; i < count; i++)
            numbers[i] = any_number(&random, (unsigned)round / MANY % 64);
        tnd_hash_farm_decimals(numbers, count, farm);
        tnd_hash_sip_decimals(key, numbers, count, sip);
        for (size_t i = 0; i < count; i++)
            if (farm[i] != tnd_hash_farm_decimal(numbers[i]) ||
                sip[i] != tnd_hash_sip_decimal(key, numbers[i]))
                fail_msg("%" PRId64 " has other hashes among others", numbers[i]);
    }
}

static void
remainders_are_divisions(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t divisor, number;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        divisor = random >> (random >> 58);
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        number = i % 4 == 0   ? random
                 : i % 4 == 1 ? UINT64_MAX - (random >> 60)
                              : random >> (random >> 58);
        if (i % 3 == 0)
            divisor = UINT64_C(1) << (divisor & 63);
        if (i % 4 == 3)
            number = divisor * (random >> 40) + (uint64_t)(i % 3) - 1;
        if (divisor == 0)
            divisor = 1;
        assert_true(tnd_modulo(tnd_modulus_of(divisor), number) == number % divisor);
    }
}

static void
decimals_are_printfs(void **state)
{
    const int64_t numbers[] = { 0,     7,  10,  42,   99,        100,      101,
                                12345, -1, -10, -100, INT64_MAX, INT64_MIN };

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char expected[32], text[TND_DECIMAL_BYTES];
        int bytes = snprintf(expected, sizeof expected, "%lld", (long long)numbers[i]);

        assert_int_equal(tnd_decimal(numbers[i], text), bytes);
        assert_memory_equal(text, expected, (size_t)bytes);
    }
}

TEST_FILE(test_hash)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(farm_is_tensorflows_fast_hash_at_every_length),
        cmocka_unit_test(sip_is_tensorflows_strong_hash_at_every_length),
        cmocka_unit_test(recorded_fingerprints_come_out),
        cmocka_unit_test(recorded_salted_bins_come_out),
        cmocka_unit_test(sip_gives_its_authors_vector),
        cmocka_unit_test(recorded_crosses_come_out),
        cmocka_unit_test(integers_are_hashed_as_their_text),
        cmocka_unit_test(many_integers_are_hashed_as_each),
        cmocka_unit_test(remainders_are_divisions),
        cmocka_unit_test(decimals_are_printfs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
