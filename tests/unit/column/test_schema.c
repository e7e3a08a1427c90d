/* test_schema.c - names of columns are found, few or many, whatever has been done to the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "column/schema.h"
#include "core/memory.h"
#include "unit/test_file.h"

enum { MANY = 1000 };

static char *
name_of(uint32_t number)
{
    return tnd_sprintf("c%u", number);
}

/* Columns c0, c1 ... */
static struct schema
schema_of(uint32_t count)
{
    struct schema schema = { 0 };

    for (uint32_t i = 0; i < count; i++) {
        char *name = name_of(i);

        schema_add(&schema, name, TUNDISH_INT64);
        free(name);
    }
    return schema;
}

static int32_t
find(const struct schema *schema, uint32_t number)
{
    char *name = name_of(number);
    int32_t index = schema_find(schema, name);

    free(name);
    return index;
}

static void
each_is_found(void **state)
{
    (void)state;
    for (uint32_t count = 0; count <= MANY; count = 2 * count + 1) {
        struct schema schema = schema_of(count);

        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(find(&schema, i), i);
        assert_int_equal(find(&schema, count), -1);
        schema_close(&schema);
    }
}

static void
those_after_a_removed_one_move_up(void **state)
{
    (void)state;
    for (uint32_t count = 3; count <= MANY; count *= 3) {
        struct schema schema = schema_of(count);

        schema_remove(&schema, 1);
        assert_int_equal(find(&schema, 0), 0);
        assert_int_equal(find(&schema, 1), -1);
        for (uint32_t i = 2; i < count; i++)
            assert_int_equal(find(&schema, i), i - 1);
        schema_add(&schema, "c1", TUNDISH_INT64);
        assert_int_equal(find(&schema, 1), count - 1);
        schema_close(&schema);
    }
}

static void
the_first_of_one_name_is_found(void **state)
{
    struct schema schema = schema_of(MANY);

    (void)state;
    schema_add(&schema, "c7", TUNDISH_FLOAT32);
    assert_int_equal(find(&schema, 7), 7);
    schema_remove(&schema, 7);
    assert_int_equal(find(&schema, 7), MANY - 1);
    schema_close(&schema);
}

static void
one_passes_on_under_another_name(void **state)
{
    struct schema input = schema_of(MANY), schema = { 0 };

    (void)state;
    schema_pass_all(&schema, &input);
    schema_pass_as(&schema, &input, 5, "five");
    assert_int_equal(schema_find(&schema, "five"), MANY);
    assert_int_equal(schema.columns[MANY].passed_from, 5);
    assert_int_equal(find(&schema, 5), 5);
    schema_close(&schema);
    schema_close(&input);
}

static void
sorting_says_where_each_has_come_to(void **state)
{
    uint32_t places[MANY];

    (void)state;
    for (uint32_t count = 2; count <= MANY; count *= 2) {
        struct schema schema = schema_of(count);

        schema_sort(&schema, places);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(find(&schema, i), places[i]);
        for (uint32_t i = 1; i < count; i++)
            assert_true(strcmp(schema.columns[i - 1].name, schema.columns[i].name) < 0);
        schema_close(&schema);
    }
}

TEST_FILE(test_schema)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found),
        cmocka_unit_test(those_after_a_removed_one_move_up),
        cmocka_unit_test(the_first_of_one_name_is_found),
        cmocka_unit_test(one_passes_on_under_another_name),
        cmocka_unit_test(sorting_says_where_each_has_come_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
