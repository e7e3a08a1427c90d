/* test_stages.c - the table agrees with itself. */
#include "spec_fixture.h"

#include "content/content.h"
#include "order/order.h"
#include "source/source.h"
#include "spec/check.h"
#include "spec/stages.h"
#include "unit/test_file.h"

static const struct stage_info *
row(uint32_t index)
{
    static const struct stage_info *const sections[] = {
        &section_file,         &section_stream, &section_distribute,
        &section_deliver,      &section_widen,  &section_tensor,
        &section_program_spec, &section_field,  &section_remote,
    };
    enum { SECTIONS = sizeof sections / sizeof sections[0] };

    if (index < stage_count)
        return &stage_table[index];
    index -= stage_count;
    if (index < SECTIONS)
        return sections[index];
    index -= SECTIONS;
    return index < feature_count ? &feature_table[index] : NULL;
}

static void
every_default_is_a_value_its_parameter_takes(void **state)
{
    struct spec_errors errors = { .path = "table" };
    struct check check = { .memory = spec_memory_open(), .errors = &errors };

    (void)state;
    for (uint32_t i = 0; row(i) != NULL; i++) {
        for (uint32_t j = 0; j < row(i)->parameter_count; j++) {
            const struct parameter_info *parameter = &row(i)->parameters[j];
            const struct spec_value *value = check_default(&check, parameter, 1, 1);

            if (value != NULL)
                check_value(&check, row(i), parameter, value);
        }
    }
    if (errors.count > 0)
        fail_msg("%s", errors.list[0].text);
    spec_memory_close(check.memory);
}

/* The name of what runs for the stage. */
static const char *
name_of_ops(const struct stage_info *stage)
{
    switch (stage->kind) {
    case STAGE_SOURCE:
        return source_find(stage->name) == NULL ? NULL : source_find(stage->name)->name;
    case STAGE_ORDER:
        return order_find(stage->name) == NULL ? NULL : order_find(stage->name)->name;
    case STAGE_CONTENT:
        return content_find(stage->name) == NULL ? NULL : content_find(stage->name)->name;
    }
    return NULL;
}

static void
every_stage_runs_under_its_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        const char *name = name_of_ops(&stage_table[i]);

        assert_string_equal(name != NULL ? name : "nothing", stage_table[i].name);
    }
}

static void
names_are_unique_and_parameters_fit_the_mask(void **state)
{
    (void)state;
    for (uint32_t i = 0; row(i) != NULL; i++) {
        const struct stage_info *stage = row(i);

        assert_true(stage->parameter_count <= 64);
        if (i < stage_count)
            assert_ptr_equal(stage_find(stage->name), stage);
        for (uint32_t j = 0; j < stage->parameter_count; j++)
            assert_int_equal(stage_parameter(stage, stage->parameters[j].name), (int)j);
    }
    assert_null(stage_find("no_such_stage"));
    assert_int_equal(stage_parameter(stage_find("batch"), "no_such_parameter"), -1);
}

static void
a_needed_parameter_has_no_default_and_every_row_has_help(void **state)
{
    (void)state;
    for (uint32_t i = 0; row(i) != NULL; i++) {
        const struct stage_info *stage = row(i);

        assert_true(strlen(stage->help) > 0);
        for (uint32_t j = 0; j < stage->parameter_count; j++) {
            const struct parameter_info *parameter = &stage->parameters[j];

            assert_false(parameter->required && parameter->default_value != NULL);
            assert_true(parameter->types != 0);
            assert_true(strlen(parameter->help) > 0);
            assert_true(parameter->help[strlen(parameter->help) - 1] == '.');
            if (parameter->required)
                assert_false(parameter->types & TYPE_UNSET);
        }
    }
}

static void
only_some_content_stages_have_a_short_form(void **state)
{
    static const char *const shorts[] = { "decode_raw", "select",  "drop",
                                          "cast",       "reshape", "one_hot" };
    static const char *const wholes[] = { "map", "rename", "from_tensors", "from_tensor_slices",
                                          "values" };

    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        const struct stage_info *stage = &stage_table[i];
        bool is_short = stage->kind != STAGE_CONTENT && stage->parameter_count > 0;
        bool is_whole = false;

        for (size_t j = 0; j < sizeof shorts / sizeof shorts[0]; j++)
            is_short = is_short || strcmp(stage->name, shorts[j]) == 0;
        for (size_t j = 0; j < sizeof wholes / sizeof wholes[0]; j++)
            is_whole = is_whole || strcmp(stage->name, wholes[j]) == 0;
        assert_int_equal(stage->is_whole, is_whole);
        assert_int_equal(stage->has_short_form, is_short && !is_whole);
    }
}

static void
sources_and_joining_stages_stand_first(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        const struct stage_info *stage = &stage_table[i];
        bool joins = stage_parameter(stage, "datasets") >= 0;

        assert_int_equal(stage->stands_first, stage->kind == STAGE_SOURCE || joins);
    }
}

/* Only sources read: a form that was left out would be theirs. */
static void
every_order_stage_says_its_form(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < stage_count; i++) {
        const struct stage_info *stage = &stage_table[i];

        if (stage->kind == STAGE_ORDER)
            assert_int_not_equal(order_find(stage->name)->form, ORDER_READS);
        if (stage->kind == STAGE_SOURCE)
            assert_int_equal(source_find(stage->name)->order.form, ORDER_READS);
    }
}

TEST_FILE(test_stages)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_stage_says_its_form),
        cmocka_unit_test(every_default_is_a_value_its_parameter_takes),
        cmocka_unit_test(every_stage_runs_under_its_name),
        cmocka_unit_test(names_are_unique_and_parameters_fit_the_mask),
        cmocka_unit_test(a_needed_parameter_has_no_default_and_every_row_has_help),
        cmocka_unit_test(only_some_content_stages_have_a_short_form),
        cmocka_unit_test(sources_and_joining_stages_stand_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
