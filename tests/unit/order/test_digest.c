/* test_digest.c - one order in two places has one hash, and any other order another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "order/digest.h"
#include "order/run.h"
#include "unit/test_file.h"

enum { ROWS = 37, WORDS = 2 * ROWS, INTERVAL = 4 };

static void
fill(uint64_t words[WORDS])
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = i * 8;
}

/* Of one batch of such rows. */
static uint64_t
hash_of_batch(const uint64_t words[WORDS])
{
    struct order_digest digest = { .interval = 1 };
    struct run *run = run_new(words, ROWS, 2, 0);
    uint64_t word = (uint64_t)(uintptr_t)run;

    order_digest_start(&digest);
    order_digest_add(&digest, &word, 1, 1, 1);
    run_release(run);
    assert_int_equal(digest.mark_count, 1);
    return digest.mark_hash;
}

static void
a_batch_has_one_hash_wherever_it_lies(void **state)
{
    uint64_t words[WORDS];

    (void)state;
    fill(words);
    assert_true(hash_of_batch(words) == hash_of_batch(words));
}

static void
any_two_rows_exchanged_are_noticed(void **state)
{
    uint64_t words[WORDS], hash;

    (void)state;
    fill(words);
    hash = hash_of_batch(words);
    for (int i = 0; i < WORDS; i++)
        for (int j = i + 1; j < WORDS; j++) {
            uint64_t kept = words[i];

            words[i] = words[j];
            words[j] = kept;
            assert_true(hash_of_batch(words) != hash);
            words[j] = words[i];
            words[i] = kept;
        }
}

static void
any_other_row_is_noticed(void **state)
{
    uint64_t words[WORDS], hash;

    (void)state;
    fill(words);
    hash = hash_of_batch(words);
    for (int i = 0; i < WORDS; i++)
        for (int bit = 0; bit < 64; bit += 9) {
            words[i] ^= UINT64_C(1) << bit;
            assert_true(hash_of_batch(words) != hash);
            words[i] ^= UINT64_C(1) << bit;
        }
}

/* Nodes pull as many elements at a time as they like. */
static void
marks_do_not_depend_on_how_many_come_at_once(void **state)
{
    struct order_digest one = { .interval = INTERVAL }, other = { .interval = INTERVAL };
    uint64_t words[WORDS];

    (void)state;
    fill(words);
    order_digest_start(&one);
    order_digest_start(&other);
    order_digest_add(&one, words, ROWS, 2, 0);
    for (size_t i = 0; i < ROWS; i++)
        order_digest_add(&other, words + 2 * i, 1, 2, 0);
    assert_int_equal(one.mark_count, ROWS / INTERVAL);
    assert_int_equal(other.mark_count, ROWS / INTERVAL);
    assert_true(one.mark_hash == other.mark_hash);
}

/* Who resumes somewhere hashes from the next interval on, as all others do who did. */
static void
what_was_passed_over_counts_in_whole_intervals(void **state)
{
    struct order_digest one = { .interval = INTERVAL }, other = { .interval = INTERVAL };
    uint64_t words[WORDS];

    (void)state;
    fill(words);
    order_digest_start(&one);
    order_digest_start(&other);
    order_digest_pass_over(&one, INTERVAL + 1);
    order_digest_pass_over(&other, INTERVAL + 3);
    order_digest_add(&one, words + 2 * (INTERVAL + 1), 2 * INTERVAL, 2, 0);
    order_digest_add(&other, words + 2 * (INTERVAL + 3), 2 * INTERVAL - 2, 2, 0);
    assert_int_equal(one.mark_count, 3);
    assert_int_equal(other.mark_count, 3);
    assert_true(one.mark_hash == other.mark_hash && one.mark_hash != 0);
}

TEST_FILE(test_digest)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_one_hash_wherever_it_lies),
        cmocka_unit_test(any_two_rows_exchanged_are_noticed),
        cmocka_unit_test(any_other_row_is_noticed),
        cmocka_unit_test(marks_do_not_depend_on_how_many_come_at_once),
        cmocka_unit_test(what_was_passed_over_counts_in_whole_intervals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
