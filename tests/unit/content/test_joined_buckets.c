/* test_joined_buckets.c - the buckets of several keys: each key's are those of its own boundaries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "content/numbers/joined_buckets.h"
#include "unit/test_file.h"

static void
each_key_has_buckets_of_its_own(void **state)
{
    static const double boundaries[] = { 1, 2, 4, /* of the first key */ -100, 0, 100 };
    static const struct {
        int64_t key;
        float x;
        int64_t bucket;
    } cases[] = {
        { 0, -50, 0 }, { 0, 0.5F, 0 },  { 0, 1.5F, 1 },   { 0, 3, 2 },
        { 0, 5, 3 },   { 0, 1e30F, 3 }, { 1, -200, 0 },   { 1, -50, 1 },
        { 1, 50, 2 },  { 1, 1e30F, 3 }, { 1, -1e30F, 0 },
    };
    struct joined_buckets buckets;

    (void)state;
    joined_buckets_open(boundaries, 2, 3, &buckets);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(joined_buckets_find(&buckets, cases[i].key, cases[i].x), cases[i].bucket);
    joined_buckets_close(&buckets);
    joined_buckets_close(&(struct joined_buckets){ 0 });
}

static void
boundaries_that_are_all_the_same_part_two_buckets(void **state)
{
    static const double boundaries[] = { 3, 3, 3, 5, 6, 7 };
    struct joined_buckets buckets;

    (void)state;
    joined_buckets_open(boundaries, 2, 3, &buckets);
    assert_int_equal(joined_buckets_find(&buckets, 0, 2), 0);
    assert_int_equal(joined_buckets_find(&buckets, 0, 4), 3);
    assert_int_equal(joined_buckets_find(&buckets, 1, 6.5F), 2);
    joined_buckets_close(&buckets);
}

TEST_FILE(test_joined_buckets)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_buckets_of_its_own),
        cmocka_unit_test(boundaries_that_are_all_the_same_part_two_buckets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
