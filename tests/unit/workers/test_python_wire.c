/* test_python_wire.c - columns into an arena and back, and answers that are none. */
#include "workers/python_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "unit/test_file.h"

enum { COLUMNS = 4, ELEMENTS = 3, HEAD = 64, RECORD = 192 };

/* Words of a record: see python_wire.c. */
enum { VALUE_COUNT, VALUES, TEXT, TEXT_BYTES, LEVEL_COUNT = 6, UNIFORM = 8, SPLITS = 16 };

struct wire {
    struct schema schema;
    struct scratch *scratch;
    struct column columns[COLUMNS], back[COLUMNS];
    struct frame_errors errors;
    struct frame input, output;
    uint8_t *message;
    size_t bytes;
};

static const uint32_t all[COLUMNS] = { 0, 1, 2, 3 };

static void
make_schema(struct schema *schema)
{
    struct column_spec *column;

    schema_add(schema, "number", TUNDISH_INT64);
    column = schema_add(schema, "grid", TUNDISH_FLOAT32);
    column->rank = 2;
    column->shape[0] = -1;
    column->shape[1] = 2;
    column = schema_add(schema, "words", TUNDISH_STRING);
    column->rank = 1;
    column->shape[0] = -1;
    schema_add(schema, "yes", TUNDISH_BOOL);
}

static int
setup(void **state)
{
    static const int64_t numbers[] = { 7, -8, 9 }, grid_splits[] = { 0, 1, 1, 3 };
    static const int64_t word_splits[] = { 0, 2, 2, 3 };
    static const float grid[] = { 1, 2, 3, 4, 5, 6 };
    static const struct byte_view words[] = { { (const uint8_t *)"ab", 2 },
                                              { NULL, 0 },
                                              { (const uint8_t *)"c", 1 } };
    static const uint8_t yes[] = { 1, 0, 1 };
    struct wire *wire = tnd_zalloc(1, sizeof *wire);
    struct python_request request = { .input = &wire->input,
                                      .columns = all,
                                      .column_count = COLUMNS };

    make_schema(&wire->schema);
    wire->scratch = scratch_open();
    wire->input = wire->output = (struct frame){ .count = ELEMENTS,
                                                 .column_count = COLUMNS,
                                                 .schema = &wire->schema,
                                                 .scratch = wire->scratch,
                                                 .errors = &wire->errors };
    wire->input.columns = wire->columns;
    wire->output.columns = wire->back;
    column_set_scalars(&wire->columns[0], ELEMENTS, numbers);
    wire->columns[1] =
        (struct column){ .count = ELEMENTS, .level_count = 2, .value_count = 6, .values = grid };
    wire->columns[1].levels[0] = (struct level){ -1, grid_splits };
    wire->columns[1].levels[1] = (struct level){ .uniform = 2 };
    wire->columns[2] =
        (struct column){ .count = ELEMENTS, .level_count = 1, .value_count = 3, .values = words };
    wire->columns[2].levels[0] = (struct level){ -1, word_splits };
    column_set_scalars(&wire->columns[3], ELEMENTS, yes);
    wire->bytes = python_wire_write(&request, NULL);
    wire->message = tnd_alloc_aligned(64, wire->bytes);
    memset(wire->message, 0xEE, wire->bytes);
    assert_int_equal(python_wire_write(&request, wire->message), wire->bytes);
    *state = wire;
    return 0;
}

static int
teardown(void **state)
{
    struct wire *wire = *state;

    scratch_close(wire->scratch);
    schema_close(&wire->schema);
    free(wire->message);
    free(wire);
    return 0;
}

static tundish_status
read_back(struct wire *wire)
{
    frame_errors_clear(&wire->errors);
    return python_wire_read(wire->message, wire->bytes, all, COLUMNS, &wire->output);
}

/* Word `word` of the record of a column; the head, where column is -1. */
static uint64_t *
word_of(struct wire *wire, int column, int word)
{
    uint8_t *at = wire->message + (column < 0 ? 0 : HEAD + column * RECORD);

    return (uint64_t *)(void *)at + word;
}

static void
columns_come_back(void **state)
{
    struct wire *wire = *state;
    const struct byte_view *words;

    assert_int_equal(read_back(wire), TUNDISH_OK);
    assert_memory_equal(wire->back[0].values, wire->columns[0].values, 3 * sizeof(int64_t));
    assert_int_equal(wire->back[1].value_count, 6);
    assert_int_equal(wire->back[1].levels[0].uniform, -1);
    assert_memory_equal(wire->back[1].levels[0].splits, wire->columns[1].levels[0].splits, 32);
    assert_memory_equal(wire->back[1].values, wire->columns[1].values, 6 * sizeof(float));
    words = wire->back[2].values;
    assert_memory_equal(words[0].data, "ab", 2);
    assert_int_equal(words[1].size, 0);
    assert_memory_equal(words[2].data, "c", 1);
    assert_memory_equal(wire->back[3].values, "\1\0\1", 3);
}

/* Nothing that is read may lie in memory that the other side can still change. */
static void
no_view_into_the_message_is_left(void **state)
{
    struct wire *wire = *state;

    assert_int_equal(read_back(wire), TUNDISH_OK);
    memset(wire->message, 0xFF, wire->bytes);
    assert_int_equal(((const int64_t *)wire->back[0].values)[1], -8);
    assert_int_equal(wire->back[1].levels[0].splits[3], 3);
    assert_memory_equal(((const struct byte_view *)wire->back[2].values)[0].data, "ab", 2);
}

static void
booleans_are_0_or_1(void **state)
{
    struct wire *wire = *state;

    wire->message[*word_of(wire, 3, VALUES)] = 0xC0;
    assert_int_equal(read_back(wire), TUNDISH_OK);
    assert_memory_equal(wire->back[3].values, "\1\0\1", 3);
}

static void
sentences_reject_elements(void **state)
{
    struct wire *wire = *state;
    static const char text[] = "it\x1b is torn";
    uint64_t *list = (uint64_t *)(void *)(wire->message + *word_of(wire, 0, VALUES));

    /* In the place of the numbers, which are three words. */
    *word_of(wire, -1, 4) = 1;
    *word_of(wire, -1, 5) = *word_of(wire, 0, VALUES);
    memcpy(wire->message + *word_of(wire, 1, VALUES), text, sizeof text);
    list[0] = 1;
    list[1] = *word_of(wire, 1, VALUES);
    list[2] = sizeof text - 1;
    assert_int_equal(read_back(wire), TUNDISH_OK);
    assert_int_equal(wire->errors.bad_count, 1);
    assert_int_equal(wire->errors.first_bad, 1);
    assert_string_equal(wire->errors.text, "it\\x1b is torn");
    list[0] = ELEMENTS;
    assert_int_equal(read_back(wire), TUNDISH_E_CORRUPT);
    list[0] = 1;
    list[2] = wire->bytes;
    assert_int_equal(read_back(wire), TUNDISH_E_CORRUPT);
}

static void
what_is_no_answer_is_refused(void **state)
{
    static const struct {
        int column, word;
        uint64_t value;
    } wrong[] = {
        { -1, 0, ELEMENTS + 1 },
        { -1, 1, COLUMNS - 1 },
        { -1, 4, 4 },
        { -1, 4, UINT64_MAX },
        { 0, VALUE_COUNT, 2 },
        { 0, VALUE_COUNT, UINT64_MAX },
        { 0, VALUES, UINT64_MAX - 7 },
        { 0, LEVEL_COUNT, 1 },
        { 1, LEVEL_COUNT, 9 },
        { 1, UNIFORM + 1, 3 },
        { 1, UNIFORM + 1, UINT64_MAX },
        { 1, UNIFORM, INT64_MAX },
        { 1, SPLITS, UINT64_MAX },
        { 1, SPLITS, 0 },
        { 2, TEXT, UINT64_MAX },
        { 2, TEXT_BYTES, 2 },
        { 2, TEXT_BYTES, UINT64_MAX },
        { 2, VALUES, 0 },
    };
    struct wire *wire = *state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t *word = word_of(wire, wrong[i].column, wrong[i].word), before = *word;

        *word = wrong[i].value;
        assert_int_equal(read_back(wire), TUNDISH_E_CORRUPT);
        *word = before;
    }
    for (size_t bytes = 0; bytes < HEAD + COLUMNS * RECORD; bytes += 8)
        assert_int_equal(python_wire_read(wire->message, bytes, all, COLUMNS, &wire->output),
                         TUNDISH_E_CORRUPT);
    assert_int_equal(read_back(wire), TUNDISH_OK);
}

/* Dense: an element's lists of one dimension are equally long. */
static void
lists_of_one_element_are_equally_long(void **state)
{
    struct wire *wire = *state;
    struct column_spec *grid = &wire->schema.columns[1];
    int64_t *splits = (int64_t *)(void *)(wire->message + *word_of(wire, 2, SPLITS));

    grid->shape[1] = -1;
    *word_of(wire, 1, UNIFORM + 1) = UINT64_MAX;
    *word_of(wire, 1, SPLITS + 1) = *word_of(wire, 2, SPLITS);
    memcpy(splits, (int64_t[]){ 0, 2, 4, 6 }, 4 * sizeof *splits);
    wire->schema.columns[2].rank = 0; /* its splits were taken */
    *word_of(wire, 2, LEVEL_COUNT) = 0;
    assert_int_equal(read_back(wire), TUNDISH_OK);
    memcpy(splits, (int64_t[]){ 0, 2, 3, 6 }, 4 * sizeof *splits);
    assert_int_equal(read_back(wire), TUNDISH_E_CORRUPT);
}

/* Sizes of nothing take no bytes of an answer, but loops over them would take for ever. */
static void
lists_without_values_are_bounded(void **state)
{
    struct wire *wire = *state;
    struct column_spec *grid = &wire->schema.columns[1];

    grid->shape[0] = grid->shape[1] = -1;
    *word_of(wire, 1, UNIFORM) = 1 << 22;
    *word_of(wire, 1, UNIFORM + 1) = 0;
    *word_of(wire, 1, VALUE_COUNT) = 0;
    assert_int_equal(read_back(wire), TUNDISH_E_CORRUPT);
    *word_of(wire, 1, UNIFORM) = 1 << 10;
    assert_int_equal(read_back(wire), TUNDISH_OK);
}

/* Two columns as an interpreter describes them. */
struct described {
    uint64_t count;
    uint64_t columns[2][3 + RANK_MAX]; /* bytes of name and dtype, rank, shape */
    char words[17];
} __attribute__((packed));

static const struct described two = {
    .count = 2,
    .columns = { { 4, 7, 2, 3, UINT64_MAX }, { 1, 5, 0 } },
    .words = "gridfloat32yint64",
};

static void
assert_described(const struct described *described, size_t bytes, tundish_status status)
{
    struct schema schema = { 0 };
    uint8_t *copy = tnd_alloc(bytes + 1); /* so that sanitizers see what is read beyond it */

    memcpy(copy, described, bytes);
    assert_int_equal(python_wire_read_columns(copy, bytes, &schema), status);
    free(copy);
    if (status == TUNDISH_OK) {
        assert_int_equal(schema.count, 2);
        assert_string_equal(schema.columns[0].name, "grid");
        assert_int_equal(schema.columns[0].dtype, TUNDISH_FLOAT32);
        assert_int_equal(schema.columns[0].rank, 2);
        assert_int_equal(schema.columns[0].shape[0], 3);
        assert_int_equal(schema.columns[0].shape[1], -1);
        assert_string_equal(schema.columns[1].name, "y");
        assert_int_equal(schema.columns[1].rank, 0);
    }
    schema_close(&schema);
}

static void
columns_are_described(void **state)
{
    (void)state;
    assert_described(&two, sizeof two, TUNDISH_OK);
    for (size_t bytes = 0; bytes < sizeof two; bytes++)
        assert_described(&two, bytes, TUNDISH_E_CORRUPT);
}

static void
descriptions_that_are_none_are_refused(void **state)
{
    struct described changed = two;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            changed.columns[i][k] = UINT64_MAX;
            assert_described(&changed, sizeof changed, TUNDISH_E_CORRUPT);
            changed.columns[i][k] = two.columns[i][k];
        }
    changed.columns[0][3] = (uint64_t)INT32_MAX + 1;
    assert_described(&changed, sizeof changed, TUNDISH_E_CORRUPT);
    changed = two;
    changed.count = UINT64_MAX / 8;
    assert_described(&changed, sizeof changed, TUNDISH_E_CORRUPT);
    changed = two;
    memcpy(changed.words, "gridfloat33", 11); /* no dtype */
    assert_described(&changed, sizeof changed, TUNDISH_E_CORRUPT);
    memcpy(changed.words, "gr\nd", 4);
    assert_described(&changed, sizeof changed, TUNDISH_E_CORRUPT);
    changed = two;
    changed.columns[0][0] = 1; /* both are y */
    memcpy(changed.words, "yfloat32yint64", 14);
    assert_described(&changed, sizeof changed - 3, TUNDISH_E_CORRUPT);
}

TEST_FILE(test_python_wire)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(columns_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(no_view_into_the_message_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(booleans_are_0_or_1, setup, teardown),
        cmocka_unit_test_setup_teardown(sentences_reject_elements, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_answer_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_of_one_element_are_equally_long, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_without_values_are_bounded, setup, teardown),
        cmocka_unit_test(columns_are_described),
        cmocka_unit_test(descriptions_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
