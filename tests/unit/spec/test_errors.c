/* test_errors.c - the list of complaints, and nearest words. */
#include "spec_fixture.h"

#include "spec/errors.h"
#include "unit/test_file.h"

static void
errors_are_listed_by_position_with_the_file_named(void **state)
{
    struct spec_errors errors = { .path = "a.yaml" };
    char *text;

    (void)state;
    assert_int_equal(spec_complain(&errors, 7, 2, "late"), TUNDISH_E_PIPELINE);
    spec_complain(&errors, 3, 9, "second on %d", 3);
    spec_complain(&errors, 3, 1, "first on 3");
    spec_complain(&errors, 0, 0, "the whole");
    text = spec_errors_text(&errors);
    assert_string_equal(text, "a.yaml: the whole\na.yaml:3:1: first on 3\na.yaml:3:9: second on 3\n"
                              "a.yaml:7:2: late\n");
    free(text);
    spec_errors_close(&errors);
    spec_errors_close(&errors);
}

static void
the_same_complaint_is_kept_once(void **state)
{
    struct spec_errors errors = { 0 };

    (void)state;
    spec_complain(&errors, 1, 1, "a");
    spec_complain(&errors, 1, 1, "a");
    spec_complain(&errors, 1, 2, "a");
    assert_int_equal(errors.count, 2);
    spec_errors_close(&errors);
}

static void
after_a_hundred_no_more_are_kept(void **state)
{
    struct spec_errors errors = { .path = "f" };
    char *text;

    (void)state;
    for (unsigned i = 0; i < 500; i++)
        spec_complain(&errors, i + 1, 1, "a");
    assert_int_equal(errors.count, 100);
    text = spec_errors_text(&errors);
    assert_non_null(strstr(text, "there may be more"));
    free(text);
    spec_errors_close(&errors);
}

static void
the_nearest_word_is_a_third_away_at_most(void **state)
{
    static const char *const words[] = { "shuffle", "shard", "skip", "AUTO" };

    (void)state;
    assert_string_equal(spec_nearest("shufle", words, 4), "shuffle");
    assert_string_equal(spec_nearest("hsuffle", words, 4), "shuffle");
    assert_string_equal(spec_nearest("shuffel", words, 4), "shuffle");
    assert_string_equal(spec_nearest("skp", words, 4), "skip");
    assert_string_equal(spec_nearest("auto", words, 4), "AUTO");
    assert_null(spec_nearest("shoe", words, 4));
    assert_null(spec_nearest("", words, 4));
    assert_null(spec_nearest(
        "shuffle_shuffle_shuffle_shuffle_shuffle_shuffle_shuffle_shuffle_shuffle", words, 4));
}

TEST_FILE(test_errors)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_listed_by_position_with_the_file_named),
        cmocka_unit_test(the_same_complaint_is_kept_once),
        cmocka_unit_test(after_a_hundred_no_more_are_kept),
        cmocka_unit_test(the_nearest_word_is_a_third_away_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
