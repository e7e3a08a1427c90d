/* test_stage_help.c - the table of stages as text. */
#include "spec_fixture.h"

#include "spec/stage_help.h"
#include "unit/test_file.h"

static char *
printed(void (*print)(FILE *out))
{
    char *text;
    size_t text_bytes;
    FILE *out = open_memstream(&text, &text_bytes);

    print(out);
    fclose(out);
    return text;
}

static void
print_shuffle(FILE *out)
{
    stage_print_help(stage_find("shuffle"), out);
}

static void
help_tells_every_parameter(void **state)
{
    char *text = printed(print_shuffle);

    (void)state;
    assert_non_null(strstr(text, "tf.data.Dataset.shuffle"));
    assert_non_null(strstr(text, "in short - shuffle: buffer_size"));
    assert_non_null(strstr(text, "buffer_size: an integer of at least -2; needed; may be $name\n"));
    assert_non_null(
        strstr(text, "reshuffle_each_iteration: true or false or null; default true\n"));
    free(text);
}

static void
every_stage_can_be_printed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        char *text;
        size_t text_bytes;
        FILE *out = open_memstream(&text, &text_bytes);

        stage_print_help(&stage_table[i], out);
        fclose(out);
        for (uint32_t j = 0; j < stage_table[i].parameter_count; j++)
            assert_non_null(strstr(text, stage_table[i].parameters[j].help) != NULL
                                ? text
                                : strstr(text, stage_table[i].parameters[j].name));
        free(text);
    }
}

static void
a_name_brings_its_row_or_the_nearest(void **state)
{
    const struct stage_info *stage = NULL;

    (void)state;
    assert_int_equal(stage_help_for("batch", &stage), TUNDISH_OK);
    assert_ptr_equal(stage, stage_find("batch"));
    assert_int_equal(stage_help_for("distribute", &stage), TUNDISH_OK);
    assert_ptr_equal(stage, &section_distribute);
    assert_int_equal(stage_help_for("Ragged", &stage), TUNDISH_OK);
    assert_int_equal(stage_help_for("bacth", &stage), TUNDISH_E_ARGUMENT);
    assert_string_equal(tnd_error_text(), "there is no stage \"bacth\"; did you mean batch?");
    assert_int_equal(stage_help_for("xyzzy", &stage), TUNDISH_E_ARGUMENT);
}

static void
list_names_and_manual_hold_every_stage(void **state)
{
    char *list = printed(stage_print_list);
    char *names = printed(stage_print_names);
    char *manual = printed(stage_print_man);

    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        char heading[64];

        assert_non_null(strstr(list, stage_table[i].name));
        assert_non_null(strstr(names, stage_table[i].name));
        snprintf(heading, sizeof heading, ".SS %s\n", stage_table[i].name);
        assert_non_null(strstr(manual, heading));
    }
    free(list);
    free(names);
    free(manual);
}

static void
the_list_cuts_no_name_at_its_dot(void **state)
{
    char *list = printed(stage_print_list);

    (void)state;
    assert_non_null(strstr(list, "Parses serialized tf.train.Example records\n"));
    free(list);
}

static void
no_line_of_the_manual_is_taken_for_a_request(void **state)
{
    static const char *const requests[] = { ".TH ", ".SH ", ".SS ", ".TP", ".PP", ".B ",
                                            ".BR ", ".IR ", ".nf",  ".fi", ".br" };
    char *manual = printed(stage_print_man);
    char *line = strtok(manual, "\n");

    (void)state;
    for (; line != NULL; line = strtok(NULL, "\n")) {
        bool is_request = false;

        assert_true(line[0] != '\'');
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
            is_request = is_request || strncmp(line, requests[i], strlen(requests[i])) == 0;
        assert_int_equal(line[0] == '.', is_request);
    }
    free(manual);
}

TEST_FILE(test_stage_help)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_tells_every_parameter),
        cmocka_unit_test(every_stage_can_be_printed),
        cmocka_unit_test(a_name_brings_its_row_or_the_nearest),
        cmocka_unit_test(list_names_and_manual_hold_every_stage),
        cmocka_unit_test(the_list_cuts_no_name_at_its_dot),
        cmocka_unit_test(no_line_of_the_manual_is_taken_for_a_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
