/* test_file_name.c - the names that tf.Transform 1.21 gives. */
#include "spec_fixture.h"

#include "spec/file_name.h"
#include "unit/test_file.h"

static void
names_are_tf_transforms(void **state)
{
    static const char *const pairs[][2] = {
        { "my vocab", "my-vocab" },
        { "  a  b ", "a-b" },
        { "a - b", "a-b" },
        { "-a", "-a" },
        { "- a", "-a" },
        { "a -", "a-" },
        { "a- ", "a-" },
        { "a--b", "a-b" },
        { "a_b9", "a_b9" },
        { "a.b/c", "a_b_c" },
        { "..", "__" },
        { "\xc3\xa4 b", "\xc3\xa4-b" },     /* ä */
        { "\xe6\x97\xa5", "\xe6\x97\xa5" }, /* 日 */
        { "a\xc2\xa0"
          "b",
          "a-b" }, /* a blank that does not break */
        { "a\xe3\x80\x80"
          "b",
          "a-b" }, /* an ideographic one */
        { "a\xe2\x80\x93"
          "b",
          "a_b" },                    /* a dash */
        { "x\xc2\xb2", "x\xc2\xb2" }, /* ² */
        { "a\xe2\x80\x8b"
          "b",
          "a_b" },             /* a blank without width */
        { "e\xcc\x81", "e_" }, /* an accent of its own */
        { "a\tb\nc", "a-b-c" },
        { "\x1c"
          "a\x1f"
          "b",
          "a-b" },
        { "\xff", "_" },
        { "", "" },
        { "   ", "" },
    };
    struct spec_memory *memory = spec_memory_open();

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(file_name_of(pairs[i][0], strlen(pairs[i][0]), memory), pairs[i][1]);
    spec_memory_close(memory);
}

static void
a_name_that_is_none_is_refused(void **state)
{
    (void)state;
    assert_error_has(
        STREAM_OF("from_tensors: {x: [a]}", "compute_and_apply_vocabulary: {vocab_filename: ' '}"),
        "vocab_filename of compute_and_apply_vocabulary must have 1 to 200 bytes");
}

TEST_FILE(test_file_name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_tf_transforms),
        cmocka_unit_test(a_name_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
