/* test_parquet_thrift.c - fields as writers write them, and bytes that lie. */
#include "parquet_fixture.h"

#include "unit/test_file.h"

static struct thrift
thrift_of(const struct bytes *bytes)
{
    return (struct thrift){ .at = bytes->data, .end = bytes->data + bytes->used };
}

static void
fields_are_read_in_both_forms_of_their_head(void **state)
{
    struct bytes bytes = { 0 };
    struct thrift_field field = { 0 };
    struct thrift thrift;

    (void)state;
    bytes_add(&bytes, "\x36\x03", 2); /* field 3 by a difference: -2 */
    add_integer(&bytes, 1000, INT64_MIN);
    add_stop(&bytes);
    thrift = thrift_of(&bytes);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(field.id, 3);
    assert_int_equal(thrift_integer(&thrift, &field), -2);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(field.id, 1000);
    assert_true(thrift_integer(&thrift, &field) == INT64_MIN);
    assert_false(thrift_next(&thrift, &field));
    assert_false(thrift.is_damaged);
    free(bytes.data);
}

static void
a_value_of_another_type_is_passed_over(void **state)
{
    struct bytes bytes = { 0 };
    struct thrift_field field = { 0 };
    struct thrift thrift;

    (void)state;
    add_binary(&bytes, 1, "text");
    bytes_add(&bytes, "\x1B\x01\x58\x07\x02ok", 7); /* a map of an integer to a text */
    add_integer(&bytes, 9, 7);
    add_stop(&bytes);
    thrift = thrift_of(&bytes);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(thrift_integer(&thrift, &field), 0);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(thrift_structs(&thrift, &field), 0);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(thrift_integer(&thrift, &field), 7);
    free(bytes.data);
}

static void
bytes_that_end_early_are_damage_wherever_it_is(void **state)
{
    struct bytes bytes = { 0 };

    (void)state;
    add_binary(&bytes, 4, "a name");
    add_integer(&bytes, 5, 123456789);
    add_structs(&bytes, 6, 1);
    add_stop(&bytes);
    add_stop(&bytes);
    for (size_t cut = 0; cut < bytes.used; cut++) {
        struct thrift thrift = { .at = bytes.data, .end = bytes.data + cut };
        struct thrift_field field = { 0 };

        while (thrift_next(&thrift, &field))
            thrift_skip(&thrift, &field);
        assert_true(thrift.is_damaged);
    }
    free(bytes.data);
}

static void
lists_that_claim_more_than_there_is_make_no_long_loop(void **state)
{
    struct bytes bytes = { 0 };
    struct thrift_field field = { 0 };
    struct thrift thrift;

    (void)state;
    add_structs(&bytes, 1, UINT32_MAX);
    thrift = thrift_of(&bytes);
    assert_true(thrift_next(&thrift, &field));
    assert_int_equal(thrift_structs(&thrift, &field), 0);
    assert_true(thrift.is_damaged);
    free(bytes.data);
}

/* Writers that build footers by hand give it type 0, or any other. */
static void
a_list_without_items_may_have_any_type(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 16; type++) {
        struct bytes bytes = { 0 };
        struct thrift_field field = { 0 };
        struct thrift thrift;

        add_field(&bytes, 1, THRIFT_LIST);
        bytes_add(&bytes, &(uint8_t){ (uint8_t)type }, 1);
        add_field(&bytes, 2, THRIFT_SET);
        bytes_add(&bytes, &(uint8_t){ (uint8_t)type }, 1);
        add_integer(&bytes, 3, 7);
        add_stop(&bytes);
        thrift = thrift_of(&bytes);
        assert_true(thrift_next(&thrift, &field));
        assert_int_equal(thrift_structs(&thrift, &field), 0);
        assert_true(thrift_next(&thrift, &field));
        thrift_skip(&thrift, &field);
        assert_true(thrift_next(&thrift, &field));
        assert_int_equal(thrift_integer(&thrift, &field), 7);
        assert_false(thrift_next(&thrift, &field));
        assert_false(thrift.is_damaged);
        free(bytes.data);
    }
}

static void
structs_within_structs_without_end_are_damage(void **state)
{
    struct bytes bytes = { 0 };
    struct thrift_field field = { 0 };
    struct thrift thrift;

    (void)state;
    for (int i = 0; i < 100000; i++)
        bytes_add(&bytes, "\x1C", 1);
    thrift = thrift_of(&bytes);
    assert_true(thrift_next(&thrift, &field));
    thrift_skip(&thrift, &field);
    assert_true(thrift.is_damaged);
    free(bytes.data);
}

TEST_FILE(test_parquet_thrift)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read_in_both_forms_of_their_head),
        cmocka_unit_test(a_value_of_another_type_is_passed_over),
        cmocka_unit_test(bytes_that_end_early_are_damage_wherever_it_is),
        cmocka_unit_test(lists_that_claim_more_than_there_is_make_no_long_loop),
        cmocka_unit_test(a_list_without_items_may_have_any_type),
        cmocka_unit_test(structs_within_structs_without_end_are_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
