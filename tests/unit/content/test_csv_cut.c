/* test_csv_cut.c - the same fields whichever way they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../unit_draw.h"
#include "content/records/csv_cut.h"
#include "core/cpu.h"
#include "unit/test_file.h"

enum { CAPACITY = 50 };

/* The one for a level; NULL: this machine has less. */
static csv_cut *
cut_of(enum tnd_cpu_level level)
{
    csv_cut *cut = tnd_cpu_use(level) ? csv_cut_best() : NULL;

    tnd_cpu_use(tnd_cpu_best());
    return cut;
}

/* Cut with every instruction set that this machine has, and with the plain reader. */
static void
compare(const struct csv_rules *rules, struct byte_view record, struct scratch *scratch)
{
    uint32_t ends[2][CAPACITY + CSV_CUT_SLACK];
    struct byte_view fields[CAPACITY];
    const char *problem = NULL;
    int64_t count = cut_of(TND_CPU_PORTABLE)(rules, record, ends[0], CAPACITY);
    int64_t plain = csv_fields(rules, record, scratch, fields, CAPACITY, &problem);

    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
        csv_cut *other = cut_of((enum tnd_cpu_level)level);

        if (other == NULL)
            continue;
        assert_int_equal(other(rules, record, ends[1], CAPACITY), count);
        if (count > 0)
            assert_memory_equal(ends[0], ends[1],
                                (size_t)(count < CAPACITY ? count : CAPACITY) * sizeof **ends);
    }
    if (count < 0 || count > CAPACITY || record.size == 0)
        return;
    assert_int_equal(plain, count);
    for (int64_t i = 0; i < count; i++) {
        uint32_t begin = i == 0 ? 0 : ends[0][i - 1] + 1;

        assert_int_equal(fields[i].size, ends[0][i] - begin);
        if (fields[i].size > 0)
            assert_ptr_equal(fields[i].data, record.data + begin);
    }
}

static void
all_instruction_sets_cut_alike(void **state)
{
    static const char letters[] = "ab01,,,,;\t\"\n\r ";
    struct scratch *scratch = scratch_open();
    uint8_t buffer[400 + 64];

    (void)state;
    for (int i = 0; i < 200000; i++) {
        size_t kinds = draw() % 4 == 0 ? sizeof letters - 1 : 8;
        size_t size = draw() % 300;
        struct csv_rules rules = { .delimiter = ',',
                                   .quotes = draw() % 2,
                                   .is_dataset = draw() % 2 };

        for (size_t k = 0; k < sizeof buffer; k++)
            buffer[k] = (uint8_t)letters[draw() % kinds];
        if (draw() % 2)
            memset(buffer, 'x', draw() % 200);
        compare(&rules, (struct byte_view){ buffer, size }, scratch);
        scratch_reset(scratch);
    }
    scratch_close(scratch);
}

/* The fields as "a|b|c", or the problem. */
static const char *
fields_of(const char *record, struct csv_rules rules)
{
    static char text[512];
    struct scratch *scratch = scratch_open();
    struct byte_view fields[8];
    const char *problem = NULL;
    int64_t count = csv_fields(&rules, bytes_of_text(record), scratch, fields, 8, &problem);
    size_t used = 0;

    text[0] = '\0';
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            text[used++] = '|';
        memcpy(text + used, fields[i].data, fields[i].size);
        used += fields[i].size;
        text[used] = '\0';
    }
    scratch_close(scratch);
    return count < 0 ? problem : text;
}

static void
quotes_follow_the_reference(void **state)
{
    const struct csv_rules rules = { .delimiter = ',', .quotes = true };

    (void)state;
    assert_string_equal(fields_of("1,,\"a \"\"b\"\"\"", rules), "1||a \"b\"");
    assert_string_equal(fields_of("\"\",x", rules), "|x");
    assert_string_equal(fields_of("\"a,b\"", rules), "a,b");
    assert_string_equal(fields_of("\"a\nb\",1", rules), "a\nb|1");
    assert_string_equal(fields_of("\"a\",", rules), "a|");
    assert_string_equal(fields_of("\n1,\r\na", rules), "1|a");
    assert_string_equal(fields_of("1,2,", rules), "1|2|");
    assert_string_equal(fields_of("", rules), "");
    assert_non_null(strstr(fields_of("\"abc", rules), "end with quote"));
    assert_non_null(strstr(fields_of("\"a\"\"", rules), "end with quote"));
    assert_non_null(strstr(fields_of("\"a\"b\",1", rules), "escaped"));
    assert_non_null(strstr(fields_of("a\"b,c", rules), "Unquoted"));
    assert_non_null(strstr(fields_of("1,a\r", rules), "CRLF"));
}

static void
without_quotes_they_are_letters(void **state)
{
    const struct csv_rules rules = { .delimiter = ',' };

    (void)state;
    assert_string_equal(fields_of("\"a\",b\"c", rules), "\"a\"|b\"c");
}

static void
what_is_behind_the_last_selected_field_is_not_looked_at(void **state)
{
    uint32_t select[] = { 1 };
    struct csv_rules rules = {
        .delimiter = ',', .quotes = true, .select_count = 1, .select = select
    };

    (void)state;
    assert_string_equal(fields_of("\"a,\"\"b\",5,x\"y", rules), "5");
    rules.is_dataset = true;
    assert_non_null(strstr(fields_of("a,5,x\"y", rules), "Unquoted"));
}

TEST_FILE(test_csv_cut)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_instruction_sets_cut_alike),
        cmocka_unit_test(quotes_follow_the_reference),
        cmocka_unit_test(without_quotes_they_are_letters),
        cmocka_unit_test(what_is_behind_the_last_selected_field_is_not_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
