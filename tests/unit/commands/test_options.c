/* test_options.c - a command line is read by its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <getopt.h>
#include <cmocka.h>

#include "commands/options.h"
#include "unit/test_file.h"

static const struct command command = { .name = "try", .arguments = "FILE" };

struct read {
    const char *text, *path;
    uint64_t number;
    uint32_t count;
    bool flag, counted;
    int result;
};

/* Words after the command's name, separated by blanks. */
static struct read
read_line(const char *line)
{
    struct read read = { .number = 7 };
    const struct option_row rows[] = {
        { "text", .text = &read.text },
        { "number", .number = &read.number, .maximum = UINT64_MAX },
        { "count", .count = &read.count, .minimum = 1, .maximum = 9, .flag = &read.counted },
        { "flag", .flag = &read.flag },
        { 0 },
    };
    static char words[256];
    char *argv[16] = { "try" };
    int argc = 1;

    strncpy(words, line, sizeof words - 1);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    optind = 0; /* glibc: begin anew */
    read.result = options_read_file(&command, argc, argv, rows, &read.path);
    return read;
}

static void
test_each_kind_is_set(void **state)
{
    struct read read = read_line("--text a --number 18446744073709551615 file --count=9 --flag");

    (void)state;
    assert_int_equal(read.result, EXIT_OK);
    assert_string_equal(read.text, "a");
    assert_true(read.number == UINT64_MAX);
    assert_int_equal(read.count, 9);
    assert_true(read.counted && read.flag);
    assert_string_equal(read.path, "file");
}

static void
test_what_is_not_given_stays(void **state)
{
    struct read read = read_line("file");

    (void)state;
    assert_int_equal(read.result, EXIT_OK);
    assert_null(read.text);
    assert_int_equal(read.number, 7);
    assert_false(read.counted || read.flag);
}

static void
test_what_does_not_fit_is_refused(void **state)
{
    static const char *const lines[] = {
        "--count 0 file",
        "--count 10 file",
        "--count -1 file",
        "--count 1x file",
        "--count 0x1 file",
        "--number 18446744073709551616 file",
        "--number= file",
        "--flag=yes file",
        "--other file",
        "file --text",
        "",
        "file another",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(read_line(lines[i]).result, EXIT_USAGE);
}

TEST_FILE(test_options)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_is_set),
        cmocka_unit_test(test_what_is_not_given_stays),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
