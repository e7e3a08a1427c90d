/* test_content_parse_example.c - features of every type, and records that are not as they should
 * be. */
#include "../unit_draw.h"
#include "stage_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content/records/example.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "record_builder.h"
#include "unit/test_file.h"

/* Run the stage over records made by `build`, row by row or as one batch. */
static struct stage_run *
parse(void (*const *build)(struct record *), int64_t count, bool is_batch, const char *stage)
{
    struct stage_run *run = stage_run_open(is_batch ? 1 : count, is_batch ? 1 : 0);
    struct byte_view *records = scratch_array(run->input.scratch, (size_t)count, sizeof *records);

    for (int64_t i = 0; i < count; i++) {
        struct record features = { 0 }, record;

        build[i](&features);
        record = whole(&features);
        records[i] = bytes_view(record.bytes, record.size);
    }
    stage_run_add(run, "value", TUNDISH_STRING, records,
                  is_batch ? (int64_t[]){ count, -1 } : NULL);
    stage_run(run, stage);
    return run;
}

#define PARSE(is_batch, stage, ...)                                                                \
    parse((void (*const[])(struct record *)){ __VA_ARGS__ },                                       \
          (int64_t)(sizeof((void (*const[])(struct record *)){ __VA_ARGS__ }) / sizeof(void *)),   \
          is_batch, stage)

static void
nothing(struct record *to)
{
    (void)to;
}

static void
one_of_each(struct record *to)
{
    put_int64s(to, "a", (int64_t[]){ -3 }, 1, 1);
    put_floats(to, "x", (float[]){ 2.5f }, 1, 1);
    put_string(to, "s", "term");
}

static void
unpacked_in_another_order(struct record *to)
{
    put_string(to, "s", "");
    put_string(to, "not wanted at all", "zzz");
    put_floats(to, "x", (float[]){ -1 }, 1, 0);
    put_int64s(to, "a", (int64_t[]){ INT64_MIN }, 1, 0);
}

static void
three_values(struct record *to)
{
    put_int64s(to, "a", (int64_t[]){ 1, 200, 3 }, 3, 1);
}

static void
no_values(struct record *to)
{
    put_int64s(to, "a", NULL, 0, 1);
}

static void
no_kind(struct record *to)
{
    put_feature(to, "a", &(struct record){ 0 });
}

static void
floats_for_a(struct record *to)
{
    put_floats(to, "a", (float[]){ 1 }, 1, 1);
}

static void
a_twice(struct record *to)
{
    floats_for_a(to);
    put_int64s(to, "a", (int64_t[]){ 7 }, 1, 1);
}

static void
a_and_then_no_kind(struct record *to)
{
    put_int64s(to, "a", (int64_t[]){ 7 }, 1, 1);
    no_kind(to);
}

#define SCALARS                                                                                    \
    "parse_example: {features: {a: {type: FixedLen, dtype: int64, shape: [], default_value: 9}, "  \
    "x: {type: FixedLen, dtype: float32, shape: [], default_value: 0.5}, "                         \
    "s: {type: FixedLen, dtype: string, shape: [], default_value: none}}}"
#define REQUIRED "parse_example: {features: {a: {type: FixedLen, dtype: int64, shape: []}}}"
#define SPARSE "parse_example: {features: {a: {type: VarLen, dtype: int64}}}"

static void
scalars_come_in_any_order_and_missing_ones_have_defaults(void **state)
{
    struct stage_run *run = PARSE(false, SCALARS, one_of_each, unpacked_in_another_order, nothing,
                                  one_of_each, no_kind);

    (void)state;
    assert_string_equal(run->text, "");
    assert_string_equal(stage_run_spec(run, "a"), "int64[]");
    assert_string_equal(stage_run_column(run, "a"), "-3 -9223372036854775808 9 -3 9");
    assert_string_equal(stage_run_column(run, "x"), "2.5 -1 0.5 2.5 0.5");
    assert_string_equal(stage_run_column(run, "s"), "\"term\" \"\" \"none\" \"term\" \"none\"");
    stage_run_close(run);
}

static void
a_batch_keeps_its_dimension(void **state)
{
    struct stage_run *run = PARSE(true, SCALARS, one_of_each, nothing);

    (void)state;
    assert_string_equal(stage_run_spec(run, "a"), "int64[2]");
    assert_string_equal(stage_run_column(run, "a"), "[-3 9]");
    assert_false(run->batch_wide);
    stage_run_close(run);
}

static void
what_is_wrong_is_said_with_the_features_name(void **state)
{
    static const struct {
        void (*build)(struct record *);
        const char *words;
    } wrong[] = {
        { nothing, "'a' (data type int64) is required" },
        { no_kind, "required" },
        { three_values, "has 3 int64 values, but its shape [] holds 1" },
        { no_values, "has 0 int64 values" },
        { floats_for_a, "of data type float, but int64 is expected" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct stage_run *run = PARSE(false, REQUIRED, a_twice, wrong[i].build);

        assert_int_equal(run->errors.status, TUNDISH_E_DATA);
        assert_int_equal(run->errors.first_bad, 1);
        assert_non_null(strstr(run->text, wrong[i].words));
        stage_run_close(run);
    }
}

static void
a_bad_row_of_a_batch_is_named(void **state)
{
    struct stage_run *run = PARSE(true, REQUIRED, a_twice, a_twice, three_values);

    (void)state;
    assert_int_equal(run->errors.first_bad, 0);
    assert_non_null(strstr(run->text, "in row 2 of the batch"));
    stage_run_close(run);
}

static void
the_last_of_two_counts(void **state)
{
    struct stage_run *run = PARSE(false, REQUIRED, a_twice, a_and_then_no_kind);

    (void)state;
    assert_string_equal(stage_run_column(run, "a"), "7 7");
    stage_run_close(run);
}

/* parse_single_example passes over a last one without a kind, parse_example does not. */
static void
an_empty_last_one_ends_a_list_only_in_a_batch(void **state)
{
    struct stage_run *row = PARSE(false, SPARSE, a_and_then_no_kind);
    struct stage_run *batch = PARSE(true, SPARSE, a_and_then_no_kind, three_values);

    (void)state;
    assert_string_equal(stage_run_column(row, "a"), "[7]");
    assert_string_equal(stage_run_column(batch, "a"), "[[] [1 200 3]]");
    assert_string_equal(stage_run_spec(batch, "a"), "int64[-1,-1] sparse");
    assert_int_equal(batch->outputs[0].dense_shape[1], 3);
    assert_true(batch->batch_wide);
    stage_run_close(row);
    stage_run_close(batch);
}

static void
sequences_are_padded_in_a_batch(void **state)
{
    static const char stage[] =
        "parse_example: {features: {a: {type: FixedLenSequence, dtype: int64, shape: [], "
        "allow_missing: true, default_value: -1}}}";
    struct stage_run *batch = PARSE(true, stage, three_values, nothing, a_twice);
    struct stage_run *rows = PARSE(false, stage, three_values, nothing);

    (void)state;
    assert_string_equal(stage_run_column(batch, "a"), "[[1 200 3] [-1 -1 -1] [7 -1 -1]]");
    assert_string_equal(stage_run_column(rows, "a"), "[1 200 3] []");
    assert_true(batch->batch_wide);
    stage_run_close(batch);
    stage_run_close(rows);
}

static void
ragged(struct record *to)
{
    put_int64s(to, "v", (int64_t[]){ 1, 2, 3, 4 }, 4, 1);
    put_int64s(to, "lengths", (int64_t[]){ 3, 0, 1 }, 3, 1);
    put_int64s(to, "splits", (int64_t[]){ 0, 3, 3, 4 }, 4, 1);
    put_int64s(to, "starts", (int64_t[]){ 0, 3, 3 }, 3, 1);
    put_int64s(to, "limits", (int64_t[]){ 3, 3, 4 }, 3, 1);
    put_int64s(to, "ids", (int64_t[]){ 0, 0, 0, 2 }, 4, 1);
}

static void
every_partition_cuts_alike(void **state)
{
    static const char *const partitions[] = { "RowLengths: lengths", "RowSplits: splits",
                                              "RowStarts: starts", "RowLimits: limits",
                                              "ValueRowIds: ids" };

    (void)state;
    for (size_t i = 0; i < sizeof partitions / sizeof *partitions; i++) {
        char *stage = tnd_sprintf("parse_example: {features: {r: {type: Ragged, dtype: int64, "
                                  "value_key: v, partitions: [{%s}]}}}",
                                  partitions[i]);
        struct stage_run *batch = PARSE(true, stage, ragged, ragged);
        struct stage_run *rows = PARSE(false, stage, ragged, ragged);

        assert_string_equal(stage_run_column(batch, "r"), "[[[1 2 3] [] [4]] [[1 2 3] [] [4]]]");
        assert_string_equal(stage_run_column(rows, "r"), "[[1 2 3] [] [4]] [[1 2 3] [] [4]]");
        stage_run_close(batch);
        stage_run_close(rows);
        free(stage);
    }
}

static void
uniform_rows_inside_a_batch_are_a_dimension(void **state)
{
    static const char stage[] =
        "parse_example: {features: {v: {type: Ragged, dtype: int64, partitions: "
        "[{UniformRowLength: 2}]}}}";
    struct stage_run *run = PARSE(true, stage, ragged, nothing);

    (void)state;
    assert_string_equal(stage_run_spec(run, "v"), "int64[2,-1,2] ragged");
    assert_int_equal(run->schema.columns[0].ragged_rank, 1);
    assert_string_equal(stage_run_column(run, "v"), "[[[1 2] [3 4]] []]");
    stage_run_close(run);
    run = PARSE(false, stage, ragged, nothing);
    assert_string_equal(stage_run_spec(run, "v"), "int64[-1,2]");
    assert_string_equal(stage_run_column(run, "v"), "[[1 2] [3 4]] []");
    stage_run_close(run);
}

static void
partitions_that_do_not_fit_are_refused(void **state)
{
    static const char stage[] =
        "parse_example: {features: {v: {type: Ragged, dtype: int64, partitions: "
        "[{RowLengths: splits}]}}}";
    struct stage_run *run = PARSE(true, stage, ragged);

    (void)state;
    assert_int_equal(run->errors.status, TUNDISH_E_DATA);
    assert_non_null(strstr(run->text, "10"));
    assert_non_null(strstr(run->text, "4 values"));
    stage_run_close(run);
}

/* What is compared of an entry at first is 16 bytes, three of them around the name. One name is
 * another one's first bytes; one's length takes two bytes. */
#define FORTY "a name that is as long as forty letters "
static const char *const names[] = {
    "x",
    "s",
    "a longer name than a word",
    "thirteen long",
    "fourteen longs",
    "fourteen longs and more",
    FORTY FORTY FORTY "12345678",
    "a",
    "a",
    "other",
    "fourteen longs and mire",
};
enum { NAMES = sizeof names / sizeof *names, FEATURES = NAMES - 2, LIST = FEATURES - 1 };

static void
random_record(struct record *to)
{

    for (uint64_t left = draw() % 8; left > 0; left--) {
        const char *name = names[draw() % NAMES];
        int64_t values[3] = { (int64_t)draw() >> draw() % 64, -1, (int64_t)(draw() % 100) };

        switch (draw() % 5) {
        case 0:
            put_floats(to, name, (float[]){ 1, 2, 3 }, draw() % 3, draw() % 2);
            break;
        case 1:
            put_string(to, name, draw() % 2 ? "x" : "a text");
            break;
        case 2:
            put_feature(to, name, &(struct record){ 0 });
            break;
        default:
            put_int64s(to, name, values, draw() % 3, draw() % 2);
            break;
        }
    }
}

static struct example_parser *
some_parser(void)
{
    struct example_feature *features = tnd_zalloc(FEATURES, sizeof *features);

    for (int i = 0; i < FEATURES; i++) {
        features[i] = (struct example_feature){ .name = tnd_strdup(names[i]),
                                                .name_bytes = strlen(names[i]),
                                                .dtype = i == 0   ? TUNDISH_FLOAT32
                                                         : i == 1 ? TUNDISH_STRING
                                                                  : TUNDISH_INT64,
                                                .is_list = i == LIST,
                                                .value_count = 1,
                                                .features_shape_text = tnd_strdup("[]") };
        if (i < LIST)
            features[i].fallback = tnd_zalloc(1, sizeof(struct byte_view));
    }
    return example_parser_open(features, FEATURES);
}

/* Both parsers, one after the other, over the same records; with all instruction sets in turn. */
static void
guessing_finds_what_plain_reading_finds(void **state)
{
    enum { RECORDS = 8 };
    struct example_parser *parsers[TND_CPU_LEVELS];
    int levels = 0;

    (void)state;
    for (; levels < TND_CPU_LEVELS && tnd_cpu_use((enum tnd_cpu_level)levels); levels++)
        parsers[levels] = some_parser();
    for (int round = 0; round < 10000; round++) {
        const struct example_parser *parser = parsers[round % levels];
        uint8_t bytes[RECORDS][4096 + 64];
        struct byte_view records[RECORDS];
        struct example_input input = { records, RECORDS, NULL, draw() % 2 };
        struct frame_errors errors[2] = { { 0 } };
        struct example_values values[2][FEATURES] = { { { 0 } } };
        struct frame frames[2];

        for (int i = 0; i < RECORDS; i++) {
            struct record features = { 0 }, record;

            random_record(&features);
            record = whole(&features);
            for (uint64_t k = draw() % 3 == 0 ? draw() % 3 : 0; k > 0 && record.size > 0; k--)
                record.bytes[draw() % record.size] ^= (uint8_t)(1 << draw() % 8);
            memset(bytes[i], 0x5a, sizeof bytes[i]);
            memcpy(bytes[i], record.bytes, record.size);
            records[i] = (struct byte_view){ bytes[i], record.size };
        }
        for (int p = 0; p < 2; p++) {
            frames[p] =
                (struct frame){ .count = RECORDS, .scratch = scratch_open(), .errors = &errors[p] };
            for (int f = 0; f < LIST; f++)
                values[p][f].values =
                    scratch_array(frames[p].scratch, RECORDS, sizeof(struct byte_view));
            (p == 0 ? example_parse : example_parse_plainly)(parser, &input, &frames[p], values[p]);
        }
        assert_int_equal(errors[0].bad_count, errors[1].bad_count);
        assert_string_equal(errors[0].text, errors[1].text);
        assert_memory_equal(values[0][0].values, values[1][0].values, RECORDS * sizeof(float));
        for (int i = 0; i < RECORDS; i++)
            assert_true(bytes_are_equal(((struct byte_view *)values[0][1].values)[i],
                                        ((struct byte_view *)values[1][1].values)[i]));
        for (int f = 2; f < LIST; f++)
            assert_memory_equal(values[0][f].values, values[1][f].values,
                                RECORDS * sizeof(int64_t));
        assert_memory_equal(values[0][LIST].splits, values[1][LIST].splits,
                            (RECORDS + 1) * sizeof(int64_t));
        if (values[0][LIST].splits[RECORDS] > 0)
            assert_memory_equal(values[0][LIST].values, values[1][LIST].values,
                                (size_t)values[0][LIST].splits[RECORDS] * sizeof(int64_t));
        scratch_close(frames[0].scratch);
        scratch_close(frames[1].scratch);
    }
    for (int i = 0; i < levels; i++)
        example_parser_close(parsers[i]);
}

/* So many that their marks take three words, with names that are alike at one end or the other. */
enum { MANY = 140 };

static struct example_parser *
parser_of_many(void)
{
    struct example_feature *features = tnd_zalloc(MANY, sizeof *features);

    for (int i = 0; i < MANY; i++) {
        char name[32];

        snprintf(name, sizeof name, i % 2 == 0 ? "feature_%d" : "%d_of_a_feature", i);
        features[i] = (struct example_feature){ .name = tnd_strdup(name),
                                                .name_bytes = strlen(name),
                                                .dtype = TUNDISH_INT64,
                                                .value_count = 1,
                                                .features_shape_text = tnd_strdup("[]"),
                                                .fallback = tnd_zalloc(1, sizeof(int64_t)) };
    }
    return example_parser_open(features, MANY);
}

/* Features by number, most of them, from `first` on; the number as the value. */
static void
many_values(const struct example_parser *parser, uint32_t first, struct record *to)
{
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t f = (first + i) % MANY;
        const int64_t value = (int64_t)f << f % 57;

        if (f % 7 != first % 7)
            put_int64s(to, example_parser_feature(parser, f)->name, &value, 1, 1);
    }
}

static void
tell_many_features_apart(void)
{
    struct example_parser *parser = parser_of_many();
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = MANY, .scratch = scratch_open(), .errors = &errors };
    struct byte_view *records = scratch_array(frame.scratch, MANY, sizeof *records);
    struct example_input input = { records, MANY, NULL, true };
    struct example_values values[MANY] = { { 0 } };

    for (uint32_t i = 0; i < MANY; i++) {
        struct record features = { 0 }, record;
        uint8_t *bytes;

        many_values(parser, i, &features);
        record = whole(&features);
        bytes = scratch_alloc(frame.scratch, record.size + 64);
        memcpy(bytes, record.bytes, record.size);
        records[i] = (struct byte_view){ bytes, record.size };
    }
    for (int f = 0; f < MANY; f++)
        values[f].values = scratch_array(frame.scratch, MANY, sizeof(int64_t));
    example_parse(parser, &input, &frame, values);
    assert_int_equal(errors.bad_count, 0);
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t f = 0; f < MANY; f++)
            assert_int_equal(((int64_t *)values[f].values)[i],
                             f % 7 != i % 7 ? (int64_t)f << f % 57 : 0);
    scratch_close(frame.scratch);
    example_parser_close(parser);
}

static void
many_features_are_told_apart(void **state)
{
    (void)state;
    for (int level = 0; level < TND_CPU_LEVELS; level++)
        if (tnd_cpu_use((enum tnd_cpu_level)level))
            tell_many_features_apart();
}

TEST_FILE(test_content_parse_example)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_come_in_any_order_and_missing_ones_have_defaults),
        cmocka_unit_test(a_batch_keeps_its_dimension),
        cmocka_unit_test(what_is_wrong_is_said_with_the_features_name),
        cmocka_unit_test(a_bad_row_of_a_batch_is_named),
        cmocka_unit_test(the_last_of_two_counts),
        cmocka_unit_test(an_empty_last_one_ends_a_list_only_in_a_batch),
        cmocka_unit_test(sequences_are_padded_in_a_batch),
        cmocka_unit_test(every_partition_cuts_alike),
        cmocka_unit_test(uniform_rows_inside_a_batch_are_a_dimension),
        cmocka_unit_test(partitions_that_do_not_fit_are_refused),
        cmocka_unit_test(guessing_finds_what_plain_reading_finds),
        cmocka_unit_test(many_features_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
