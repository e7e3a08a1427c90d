/* test_arrow_rows.c - rows of Arrow streams, of those that lie too. */
#include "unit/test_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "arrow/arrow_rows.h"
#include "core/status.h"

/* A stream of one batch with one column, `x`, which a test may damage first. */
struct made {
    struct ArrowSchema root, field, inner, *fields[1], *inners[1];
    struct ArrowArray batch, column, values, words, *columns[1], *lists[1];
    const void *no_buffers[1], *buffers[4], *value_buffers[4], *word_buffers[3];
    int batches_left, released;
};

static const int32_t numbers[] = { 7, -1, 3, 9 };
static const int32_t offsets[] = { 0, 2, 2, 5, 5 };
static const uint8_t some_null[] = { 0x0D }; /* value 1 is null */

static void
release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void
release_part(struct ArrowArray *array)
{
    array->release = NULL;
}

static void
release_batch(struct ArrowArray *array)
{
    struct made *made = array->private_data;

    made->released++;
    array->release = NULL;
}

static void
release_stream(struct ArrowArrayStream *stream)
{
    struct made *made = stream->private_data;

    made->released++;
    stream->release = NULL;
}

static int
get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct made *made = stream->private_data;

    *out = made->root;
    return 0;
}

static int
get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct made *made = stream->private_data;

    *out = (struct ArrowArray){ 0 };
    if (made->batches_left < 0)
        return EIO;
    if (made->batches_left-- > 0)
        *out = made->batch;
    return 0;
}

static const char *
last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the disk is on fire";
}

/* Four rows of int32. */
static void
make(struct made *made, const char *format)
{
    *made = (struct made){ .batches_left = 1 };
    made->field = (struct ArrowSchema){ .format = format, .name = "x", .release = release_schema };
    made->inner = (struct ArrowSchema){ .format = "i", .name = "item", .release = release_schema };
    made->fields[0] = &made->field;
    made->inners[0] = &made->inner;
    made->root = (struct ArrowSchema){
        .format = "+s", .n_children = 1, .children = made->fields, .release = release_schema
    };
    made->buffers[1] = numbers;
    made->value_buffers[1] = numbers;
    made->column = (struct ArrowArray){
        .length = 4, .n_buffers = 2, .buffers = made->buffers, .release = release_part
    };
    made->values = (struct ArrowArray){
        .length = 5, .n_buffers = 2, .buffers = made->value_buffers, .release = release_part
    };
    made->words = (struct ArrowArray){
        .length = 2, .n_buffers = 3, .buffers = made->word_buffers, .release = release_part
    };
    made->columns[0] = &made->column;
    made->lists[0] = &made->values;
    made->batch = (struct ArrowArray){ .length = 4,
                                       .n_buffers = 1,
                                       .n_children = 1,
                                       .buffers = made->no_buffers,
                                       .children = made->columns,
                                       .release = release_batch,
                                       .private_data = made };
}

static void
make_texts(struct made *made)
{
    make(made, "u");
    made->buffers[1] = offsets;
    made->buffers[2] = "abcde";
    made->column.n_buffers = 3;
}

static void
make_lists(struct made *made)
{
    static const int32_t five[] = { 1, 2, 3, 4, 5 };

    make(made, "+l");
    made->field.n_children = made->column.n_children = 1;
    made->field.children = made->inners;
    made->column.children = made->lists;
    made->buffers[1] = offsets;
    made->value_buffers[1] = five;
}

static const int8_t indices[] = { 1, 0, 1, 1 };

static void
make_dictionary(struct made *made)
{
    static const int32_t word_offsets[] = { 0, 1, 3 };

    make(made, "c");
    made->inner.format = "u";
    made->field.dictionary = &made->inner;
    made->column.dictionary = &made->words;
    made->buffers[1] = indices;
    made->word_buffers[1] = word_offsets;
    made->word_buffers[2] = "abc";
}

/* All rows; `rows` is open afterwards unless that failed. */
static tundish_status
read_all(struct made *made, struct arrow_rows *rows, const void *fallback)
{
    struct ArrowArrayStream stream = { .get_schema = get_schema,
                                       .get_next = get_next,
                                       .get_last_error = last_error,
                                       .release = release_stream,
                                       .private_data = made };
    tundish_status status = arrow_rows_open(rows, &stream);
    const struct arrow_field *field;

    assert_null(stream.release);
    if (status != TUNDISH_OK)
        return status;
    field = arrow_rows_find(rows, "x");
    assert_non_null(field);
    if (field->obstacle[0] != '\0')
        return tnd_fail(TUNDISH_E_DATA, "%s", field->obstacle);
    assert_int_equal(arrow_rows_take(rows, field, fallback), TUNDISH_OK);
    return arrow_rows_next(rows, 1000);
}

static void
assert_rows(struct made *made, const void *fallback, const void *bytes, size_t count)
{
    struct arrow_rows rows = { 0 };
    tundish_status status = read_all(made, &rows, fallback);

    if (status != TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
    assert_int_equal(rows.byte_count, count);
    assert_memory_equal(rows.bytes.data, bytes, count);
    assert_int_equal(arrow_rows_next(&rows, 1000), TUNDISH_END);
    arrow_rows_close(&rows);
    assert_int_equal(made->released, 2);
}

static void
assert_refused(struct made *made, const char *words)
{
    struct arrow_rows rows = { 0 };
    tundish_status status = read_all(made, &rows, NULL);

    assert_true(status < TUNDISH_OK);
    if (strstr(tnd_error_text(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tnd_error_text());
    arrow_rows_close(&rows);
}

static void
numbers_texts_lists_and_dictionaries_become_rows(void **state)
{
    static const char texts[] =
        "\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0cde\0\0\0\0\0\0\0\0";
    static const char lists[] = "\2\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0"
                                "\3\0\0\0\0\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0";
    static const char words[] = "\2\0\0\0\0\0\0\0bc\1\0\0\0\0\0\0\0a\2\0\0\0\0\0\0\0bc"
                                "\2\0\0\0\0\0\0\0bc";
    struct made made;

    (void)state;
    make(&made, "i");
    assert_rows(&made, NULL, numbers, sizeof numbers);
    make_texts(&made);
    assert_rows(&made, NULL, texts, sizeof texts - 1);
    make_lists(&made);
    assert_rows(&made, NULL, lists, sizeof lists - 1);
    make_dictionary(&made);
    assert_rows(&made, NULL, words, sizeof words - 1);
}

static void
offsets_of_arrays_and_of_batches_count(void **state)
{
    struct made made;

    (void)state;
    make(&made, "i");
    made.column.offset = 1;
    made.column.length = 3;
    made.batch.offset = 1;
    made.batch.length = 2;
    assert_rows(&made, NULL, &numbers[2], 8);
}

static void
a_null_is_told_or_is_the_fallback(void **state)
{
    static const int32_t filled[] = { 7, 5, 3, 9 }, five = 5;
    struct arrow_rows rows = { 0 };
    struct made made;

    (void)state;
    make(&made, "i");
    made.buffers[0] = some_null;
    made.column.null_count = 1;
    assert_rows(&made, &five, filled, sizeof filled);
    make(&made, "i");
    made.buffers[0] = some_null;
    made.column.null_count = -1;
    assert_int_equal(read_all(&made, &rows, NULL), TUNDISH_OK);
    assert_int_equal(((const uint32_t *)(const void *)rows.nulls.data)[0], 0);
    assert_int_equal(((const uint32_t *)(const void *)rows.nulls.data)[1], 1);
    arrow_rows_close(&rows);
}

/* Writers may leave values in a list that is null. */
static void
a_list_that_is_null_is_empty(void **state)
{
    static const uint8_t second_only[] = { 0x0E };
    static const char lists[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                "\3\0\0\0\0\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0";
    struct made made;

    (void)state;
    make_lists(&made);
    made.buffers[0] = second_only;
    made.column.null_count = 1;
    assert_rows(&made, NULL, lists, sizeof lists - 1);
}

static void
other_types_are_refused_by_name(void **state)
{
    static const struct {
        const char *format, *words;
    } cases[] = {
        { "+s", "struct" },      { "+m", "map" },        { "+us:0", "union" },
        { "+r", "run-end" },     { "+vl", "list view" }, { "tin", "interval" },
        { "n", "nulls" },        { "d:19,2", "19 dig" }, { "d:9,2,7", "'d:9,2,7'" },
        { "w:-1", "'w:-1'" },    { "i2", "'i2'" },       { "", "''" },
        { "+w:-1", "of lists" },
    };
    struct made made;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(&made, cases[i].format);
        assert_refused(&made, cases[i].words);
    }
    make_lists(&made);
    made.inner.format = "+l";
    assert_refused(&made, "list of lists");
    make_dictionary(&made);
    made.field.format = "f";
    assert_refused(&made, "dictionary is damaged");
}

static void
a_schema_that_lies_is_refused(void **state)
{
    struct made made;

    (void)state;
    make(&made, "i");
    made.root.format = "i";
    assert_refused(&made, "not that of a table");
    make(&made, "i");
    made.root.format = NULL;
    assert_refused(&made, "not that of a table");
    make(&made, "i");
    made.root.n_children = -1;
    assert_refused(&made, "damaged");
    make(&made, "i");
    made.root.children = NULL;
    assert_refused(&made, "damaged");
    make(&made, "i");
    made.fields[0] = NULL;
    assert_refused(&made, "damaged");
    make_lists(&made);
    made.field.n_children = 2;
    assert_refused(&made, "damaged");
    make_lists(&made);
    made.inners[0] = NULL;
    assert_refused(&made, "damaged");
}

static void
arrays_that_lie_are_refused(void **state)
{
    static const int32_t falling[] = { 0, 3, 2, 5, 5 }, negative[] = { -1, 2, 2, 5, 5 },
                         beyond[] = { 0, 2, 2, 6, 6 };
    static const int8_t outside[] = { 1, 0, 2, 1 }, below[] = { 1, -1, 0, 1 };
    struct made made;

    (void)state;
#define CASE(maker, change, words)                                                                 \
    do {                                                                                           \
        maker;                                                                                     \
        change;                                                                                    \
        assert_refused(&made, words);                                                              \
    } while (0)
    CASE(make(&made, "i"), made.column.length = 3, "shorter");
    CASE(make(&made, "i"), made.column.offset = -1, "offset");
    CASE(make(&made, "i"), made.column.offset = INT64_MAX, "offset");
    CASE(make(&made, "i"), made.column.null_count = 5, "more nulls");
    CASE(make(&made, "i"), made.column.null_count = 1, "does not say which");
    CASE(make(&made, "i"), made.column.n_buffers = 1, "missing");
    CASE(make(&made, "i"), made.column.n_buffers = 3, "too many");
    CASE(make(&made, "i"), made.column.buffers = NULL, "missing");
    CASE(make(&made, "i"), made.buffers[1] = NULL, "missing");
    CASE(make(&made, "i"), made.column.release = NULL, "missing");
    CASE(make(&made, "i"), made.columns[0] = NULL, "missing");
    CASE(make(&made, "i"), made.batch.length = -1, "damaged");
    CASE(make(&made, "i"), made.batch.offset = 1, "shorter");
    CASE(make(&made, "i"), made.batch.n_children = 2, "damaged");
    CASE(make(&made, "i"), made.batch.children = NULL, "damaged");
    CASE(make(&made, "i"), (made.no_buffers[0] = some_null, made.batch.null_count = 1), "null");
    CASE(make(&made, "i"), made.batches_left = -1, "the disk is on fire");
    CASE(make_texts(&made), made.buffers[1] = falling, "damaged");
    CASE(make_texts(&made), made.buffers[1] = negative, "damaged");
    CASE(make_texts(&made), made.buffers[2] = NULL, "damaged");
    CASE(make_lists(&made), made.buffers[1] = falling, "damaged");
    CASE(make_lists(&made), made.buffers[1] = negative, "damaged");
    CASE(make_lists(&made), made.buffers[1] = beyond, "damaged");
    CASE(make_lists(&made), made.column.n_children = 0, "missing");
    CASE(make_lists(&made), made.column.children = NULL, "missing");
    CASE(make_lists(&made), made.lists[0] = NULL, "missing");
    CASE(make_lists(&made), made.column.n_buffers = 3, "too many");
    CASE(make_dictionary(&made), made.column.dictionary = NULL, "dictionary is missing");
    CASE(make_dictionary(&made), made.buffers[1] = outside, "not in its dictionary");
    CASE(make_dictionary(&made), made.buffers[1] = below, "not in its dictionary");
    CASE(make_dictionary(&made), made.words.n_buffers = 1, "missing");
#undef CASE
}

static void
views_stay_in_their_buffers(void **state)
{
    struct view {
        int32_t bytes;
        char start[4];
        int32_t buffer, offset;
    };
    static const char text[] = "a text that is not short";
    struct view views[4] = { { .bytes = 24 }, { .bytes = 2, .start = "ab" }, { 0 }, { 0 } };
    int64_t lengths[] = { 24 };
    char expected[8 * 4 + 26] = { 24 };
    struct made made;

    (void)state;
    memcpy(expected + 8, text, 24);
    memcpy(expected + 32, "\2\0\0\0\0\0\0\0ab", 10);
    for (int i = 0; i < 5; i++) {
        make(&made, "vu");
        made.column.n_buffers = 4;
        made.buffers[1] = views;
        made.buffers[2] = text;
        made.buffers[3] = lengths;
        if (i == 0) {
            assert_rows(&made, NULL, expected, sizeof expected);
            continue;
        }
        views[0] = (struct view){ .bytes = i == 4 ? -24 : 24,
                                  .buffer = i == 2,
                                  .offset = i == 3 ? -1 : i == 1 };
        assert_refused(&made, "a view of its texts is damaged");
    }
}

TEST_FILE(test_arrow_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_texts_lists_and_dictionaries_become_rows),
        cmocka_unit_test(offsets_of_arrays_and_of_batches_count),
        cmocka_unit_test(a_null_is_told_or_is_the_fallback),
        cmocka_unit_test(a_list_that_is_null_is_empty),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(a_schema_that_lies_is_refused),
        cmocka_unit_test(arrays_that_lie_are_refused),
        cmocka_unit_test(views_stay_in_their_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
