/* test_learned_table.c - tables of learned numbers, right and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "content/learned/learned.h"
#include "unit/test_file.h"

static tundish_status
parse(const char *text, struct learned_table *ret_table)
{
    size_t bytes = strlen(text);
    char *padded = calloc(bytes + 64, 1);
    tundish_status status;

    memcpy(padded, text, bytes);
    status = learned_table_parse(padded, bytes, ret_table);
    free(padded);
    return status;
}

static void
a_table_has_its_numbers_and_keys(void **state)
{
    struct learned_table table;

    (void)state;
    assert_int_equal(parse("{\"values\": [1.5, \"nan\", \"-inf\", 4e0],\n \"shape\": [2, 2],"
                           "\"keys\": [\"a\\u00e9\", {\"base64\": \"/w==\"}],"
                           "\"dtype\": \"float32\"}",
                           &table),
                     TUNDISH_OK);
    assert_int_equal(table.rank, 2);
    assert_int_equal(table.value_count, 4);
    assert_true(((float *)table.values)[0] == 1.5F && isnan(((float *)table.values)[1]));
    assert_true(isinf(((float *)table.values)[2]) && ((float *)table.values)[3] == 4);
    assert_true(bytes_are_equal(table.keys[0], bytes_of_text("a\xc3\xa9")));
    assert_true(bytes_are_equal(table.keys[1], bytes_of_text("\xff")));
    learned_table_close(&table);
    assert_int_equal(parse("{\"dtype\": \"int64\", \"shape\": [], \"values\": "
                           "[-9223372036854775808]}",
                           &table),
                     TUNDISH_OK);
    assert_true(*(int64_t *)table.values == INT64_MIN);
    learned_table_close(&table);
}

static void
what_is_no_table_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"dtype\": \"float32\", \"shape\": [2], \"values\": [1]}",
        "{\"dtype\": \"float32\", \"shape\": [-1], \"values\": []}",
        "{\"dtype\": \"float32\", \"shape\": [2147483647, 2147483647, 2147483647], \"values\": []}",
        "{\"dtype\": \"string\", \"shape\": [], \"values\": [1]}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [1], \"values\": [1]}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [1], \"keys\": []}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [1], \"more\": 1}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [\"one\"]}",
        "{\"dtype\": \"float32\", \"shape\": [0]}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [x]}",
        "{\"dtype\": \"float32\", \"shape\": [1], \"values\": [1]} more",
        "{\"dtype\": \"float32",
        "{\"dtype\\",
        "{\"dtype\": \"float32\", \"shape\": [1,1,1,1,1,1,1,1,1], \"values\": [1]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct learned_table table;

        assert_int_equal(parse(texts[i], &table), TUNDISH_E_DATA);
    }
}

TEST_FILE(test_learned_table)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_has_its_numbers_and_keys),
        cmocka_unit_test(what_is_no_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
