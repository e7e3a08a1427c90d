/* test_source_text_line.c - lines as TensorFlow cuts them. */
#include "source_fixture.h"

#include <zlib.h>

static void
lines_end_at_newlines_and_lose_carriage_returns(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "eins\r\nzw\rei\n\n\rdrei\r\r");
    assert_texts(&folder, "[text_line: a]", "eins|zwei||drei|");
    folder_close(&folder);
}

static void
a_last_line_needs_no_newline_but_some_text(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "eins\nzwei");
    put_text(&folder, "b", "");
    put_text(&folder, "c", "\n");
    put_text(&folder, "d", "drei\n\r\r");
    assert_texts(&folder, "[text_line: [a, b, c, d]]", "eins|zwei||drei|");
    folder_close(&folder);
}

static void
a_missing_file_fails_in_its_place_and_the_next_goes_on(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "eins\n");
    put_text(&folder, "c", "drei\n");
    assert_texts(&folder, "[csv: {filenames: [a, b, c], record_defaults: [string], column_names: [x]}]",
                 "eins|!b: cannot be opened: No such file or directory|drei|");
    folder_close(&folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_newlines_and_lose_carriage_returns),
        cmocka_unit_test(a_last_line_needs_no_newline_but_some_text),
        cmocka_unit_test(a_missing_file_fails_in_its_place_and_the_next_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
