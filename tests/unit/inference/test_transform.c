/* test_transform.c - rows through a pipeline in this process: what comes out. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "inference/transform.h"
#include "unit/test_file.h"

static const char pipeline[] =
    "streams:\n"
    "  rows:\n"
    "    dataset:\n"
    "      - text_line: rows\n"
    "      - decode_csv: {record_defaults: [0, 0.0, \"\", \"\"], column_names: [id, x, a, b]}\n"
    "      - map: {x: \"where(x > 1.0, x * 2.0 + 1.0, sqrt(x))\", id: \"id + 1\"}\n"
    "      - string_lookup: {columns: [a, b], vocabulary: [red, green, a_long_colour]}\n"
    "      - batch: 4\n";

/* Two runs of a stream, of a few rows each. */
struct fixture {
    struct transform *transform;
    struct transformer *transformer;
};

/* NULL, or what is wrong, which the caller frees. */
static char *
open_text(const char *text, const char *until, struct transform **ret_transform)
{
    const struct transform_options options = {
        .path = "rows", .text = text, .root = "/", .until = until
    };
    struct spec_errors errors = { 0 };
    char *wrong = NULL;

    if (transform_open(&options, &errors, ret_transform) != TUNDISH_OK)
        wrong = spec_errors_text(&errors);
    spec_errors_close(&errors);
    return wrong;
}

static int
fixture_open(void **state)
{
    static struct fixture fixture;
    char *wrong = open_text(pipeline, NULL, &fixture.transform);

    if (wrong != NULL) {
        print_error("%s", wrong);
        free(wrong);
        return 1;
    }
    fixture.transformer = transformer_open(fixture.transform);
    *state = &fixture;
    return 0;
}

static int
fixture_close(void **state)
{
    struct fixture *fixture = *state;

    transformer_close(fixture->transformer);
    transform_close(fixture->transform);
    return 0;
}

static const struct output_column *
run_with(struct transformer *transformer, const char *const *lines, int64_t count)
{
    struct scratch *scratch = transformer_begin(transformer);
    struct byte_view *records = scratch_array(scratch, (size_t)count, sizeof *records);
    const struct output_column *columns;

    for (int64_t i = 0; i < count; i++) {
        size_t bytes = strlen(lines[i]);
        uint8_t *copy = scratch_alloc(scratch, bytes);

        memcpy(copy, lines[i], bytes);
        records[i] = (struct byte_view){ copy, bytes };
    }
    return transformer_run_records(transformer, records, count, &columns) == TUNDISH_OK ? columns
                                                                                        : NULL;
}

static const struct output_column *
run(struct fixture *fixture, const char *const *lines, int64_t count)
{
    const struct output_column *columns = run_with(fixture->transformer, lines, count);

    assert_non_null(columns);
    return columns;
}

static const char *const rows[] = { "1,4.0,red,green", "2,0.25,blue,a_long_colour", "3,9.0,,red" };

static void
one_row_and_several_are_the_same(void **state)
{
    static const int64_t ids[] = { 2, 3, 4 }, a[] = { 1, 0, 0 }, b[] = { 2, 3, 1 };
    static const float x[] = { 9.0F, 0.5F, 19.0F };
    const struct output_column *columns = run(*state, rows, 3);

    assert_int_equal(columns[0].rank, 1);
    assert_int_equal(columns[0].shape[0], 3);
    for (int i = 0; i < 3; i++) {
        columns = run(*state, rows, 3);
        assert_int_equal(((const int32_t *)columns[0].values)[i], ids[i]);
        assert_memory_equal((const float *)columns[1].values + i, &x[i], sizeof x[i]);
        assert_int_equal(((const int64_t *)columns[2].values)[i], a[i]);
        assert_int_equal(((const int64_t *)columns[3].values)[i], b[i]);
        columns = run(*state, &rows[i], 1);
        assert_int_equal(columns[0].shape[0], 1);
        assert_int_equal(*(const int32_t *)columns[0].values, ids[i]);
        assert_memory_equal(columns[1].values, &x[i], sizeof x[i]);
        assert_int_equal(*(const int64_t *)columns[2].values, a[i]);
        assert_int_equal(*(const int64_t *)columns[3].values, b[i]);
    }
}

enum { THREADS = 4, CALLS = 200 };

/* One thread of several that share a transform. Returns NULL if all came out right. */
static void *
transform_rows(void *memory)
{
    static const int64_t a[] = { 1, 0, 0 }, b[] = { 2, 3, 1 };
    struct transformer *transformer = transformer_open(memory);
    const char *wrong = NULL;

    for (int i = 0; i < CALLS && wrong == NULL; i++) {
        const struct output_column *columns = run_with(transformer, rows, 3);

        if (columns == NULL || memcmp(columns[2].values, a, sizeof a) != 0 ||
            memcmp(columns[3].values, b, sizeof b) != 0)
            wrong = "three rows";
        columns = run_with(transformer, &rows[i % 3], 1);
        if (columns == NULL || memcmp(columns[2].values, &a[i % 3], sizeof *a) != 0)
            wrong = "one row";
    }
    transformer_close(transformer);
    return (void *)(uintptr_t)wrong;
}

/* A batch of any number of rows goes through stages that training gives batches of four. */
static void
sizes_of_batches_are_left_to_training(void **state)
{
    static const char *const batches[] = {
        "batch: {batch_size: 4, drop_remainder: true}",
        "padded_batch: {batch_size: 4, drop_remainder: true}",
        "ragged_batch: {batch_size: 4, drop_remainder: true}",
        "batch: {batch_size: $per_replica_batch_size(4), drop_remainder: true}",
    };
    static const char *const lines[] = { "1", "2", "3", "4", "5" };

    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct transform *transform;
        struct transformer *transformer;
        char text[512], *wrong;

        snprintf(text, sizeof text,
                 "streams: {a: {dataset: [text_line: rows, %s, "
                 "string_to_number: {columns: value}, map: {y: \"value * 2.0\"}], "
                 "distribute: {from_function: true}}}",
                 batches[i]);
        wrong = open_text(text, NULL, &transform);
        if (wrong != NULL)
            fail_msg("%s", wrong);
        assert_int_equal(transform_outputs(transform)->columns[0].shape[0], -1);
        transformer = transformer_open(transform);
        for (int64_t count = 1; count <= 5; count++) {
            const struct output_column *columns = run_with(transformer, lines, count);

            assert_non_null(columns);
            assert_int_equal(columns[1].shape[0], count);
            assert_true(((const float *)columns[1].values)[count - 1] == 2.0F * (float)count);
        }
        transformer_close(transformer);
        transform_close(transform);
    }
}

static void
threads_share_a_transform(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, transform_rows, fixture->transform), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

static void
rows_go_into_what_interleave_runs(void **state)
{
    static const char text[] =
        "streams:\n"
        "  rows:\n"
        "    dataset:\n"
        "      - list_files: {file_pattern: \"*.csv\"}\n"
        "      - interleave:\n"
        "          cycle_length: 2\n"
        "          dataset:\n"
        "            - text_line\n"
        "            - decode_csv: {record_defaults: [0, 0], column_names: [x, y]}\n"
        "            - filter: \"x > 0\"\n"
        "            - map: {y: \"y * 10\"}\n"
        "      - map: {x: \"x + y\"}\n"
        "      - batch: 2\n";
    static const char *const lines[] = { "1,2", "-1,5", "3,4" };
    struct transform *transform;
    struct transformer *transformer;
    const struct output_column *columns;

    (void)state;
    assert_null(open_text(text, NULL, &transform));
    assert_true(transform_takes_records(transform));
    transformer = transformer_open(transform);
    columns = run_with(transformer, lines, 3);
    assert_non_null(columns);
    assert_int_equal(columns[0].shape[0], 3);
    assert_int_equal(((const int32_t *)columns[0].values)[0], 21);
    assert_int_equal(((const int32_t *)columns[0].values)[2], 43);
    transformer_close(transformer);
    transform_close(transform);
}

static void
stages_that_rows_cannot_pass_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "streams: {a: {dataset: [list_files: {file_pattern: x}, interleave: {cycle_length: 1, "
          "dataset: [text_line, map: {f: \"$value\"}]}]}}",
          "interleave: its stages use columns of the outer element" },
        { "streams: {a: {dataset: [zip: {datasets: [[range: 3, map: {a: \"value * 2\"}, select: "
          "a], "
          "[range: 3]]}]}}",
          "select: input rows do not say to which" },
        { "streams: {a: {dataset: [range: 3, batch: 2, unbatch]}}", "unbatch: input rows" },
        { "streams: {a: {dataset: [range: 3, batch: 2, batch: 2]}}", "batch: a second batch" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct transform *transform;
        char *wrong = open_text(cases[i].text, NULL, &transform);

        if (wrong == NULL || strstr(wrong, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].says, wrong);
        free(wrong);
    }
}

static void
rows_without_room_for_a_dimension_more_are_an_error(void **state)
{
    static const char text[] =
        "streams: {a: {dataset: [text_line: rows, decode_csv: {record_defaults: [0], column_names: "
        "[x]}, reshape: {shape: [1, 1, 1, 1, 1, 1, 1, 1]}]}}";
    static const char *const lines[] = { "1", "2" };
    struct transform *transform;
    struct transformer *transformer;

    (void)state;
    assert_null(open_text(text, NULL, &transform));
    transformer = transformer_open(transform);
    assert_null(run_with(transformer, lines, 2));
    assert_non_null(strstr(tnd_error_text(), "column 'x' has 8 dimensions in a row"));
    transformer_close(transformer);
    transform_close(transform);
}

TEST_FILE(test_transform)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_row_and_several_are_the_same),
        cmocka_unit_test(sizes_of_batches_are_left_to_training),
        cmocka_unit_test(threads_share_a_transform),
        cmocka_unit_test(rows_go_into_what_interleave_runs),
        cmocka_unit_test(stages_that_rows_cannot_pass_are_named),
        cmocka_unit_test(rows_without_room_for_a_dimension_more_are_an_error),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
