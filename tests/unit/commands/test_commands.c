/* test_commands.c - commands run in this process: their exit status, and what they print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "command_line.h"
#include "unit/test_file.h"

#define ALL_SAY(sayings) assert_all_say(sayings, sizeof(sayings) / sizeof *(sayings))

/* A table, and pipelines of it. */
static int
write_home(void **state)
{
    if (open_home(state) != 0)
        return 1;
    put_text("rows.csv", "1,red\n2,blue\n3,red\n4,green\n");
    put_text("rows.yaml", "streams:\n  rows:\n    dataset:\n      - csv: {filenames: rows.csv, "
                          "record_defaults: [0, ''], column_names: [x, w]}\n"
                          "      - map: {y: 'x * 2', x: x, w: w}\n      - batch: 3\n");
    put_text("learned.yaml", "streams:\n  rows:\n    dataset:\n      - csv: {filenames: rows.csv, "
                             "record_defaults: [0.0, ''], column_names: [x, w]}\n"
                             "      - scale_to_0_1: {columns: x}\n"
                             "      - string_lookup: {columns: w}\n      - batch: 4\n");
    put_text("lists.yaml", "streams:\n  rows:\n    dataset:\n      - from_tensor_slices: {t: ['a "
                           "b', c]}\n      - string_split: {columns: t}\n"
                           "      - ragged_batch: 2\n");
    put_text("sums.yaml",
             "streams:\n  rows:\n    dataset:\n      - from_tensor_slices: {a: [1], b: "
             "[2]}\n      - map: {sum: 'a + b'}\n");
    put_text("mixed.yaml",
             "streams:\n  rows:\n    dataset:\n      - fixed_length_record: {filenames: "
             "rows.csv, record_bytes: 4, footer_bytes: 3}\n"
             "      - shuffle: 9\n      - batch: 2\n");
    put_text("shards.yaml", "streams:\n  rows:\n    dataset:\n      - range: 9\n      - batch: 2\n"
                            "    distribute: {evaluation_shards: 2}\n");
    put_text("bad.yaml", "streams:\n  rows:\n    dataset:\n      - rnage: 3\n");
    return 0;
}

static void
peek_prints_batches(void **state)
{
    (void)state;
    assert_prints("peek --cache c rows.yaml", "",
                  "worker 0 replica 0 epoch 0 step 0\n"
                  "  x                int32[3] 1, 2, 3\n"
                  "  w                string[3] \"red\", \"blue\", \"red\"\n"
                  "  y                int32[3] 2, 4, 6\n"
                  "worker 0 replica 0 epoch 0 step 1\n"
                  "  x                int32[1] 4\n"
                  "  w                string[1] \"green\"\n"
                  "  y                int32[1] 8\n"
                  "worker 0: epoch 0 ends\n"
                  "worker 0: end\n");
    assert_says("peek --cache c --json --steps 1 rows.yaml", "", EXIT_OK, "[2, 4, 6]");
    assert_says("peek --cache c --json --steps 1 rows.yaml", "", EXIT_OK, "\"max_steps\"");
    assert_says("peek --cache c --json lists.yaml", "", EXIT_OK,
                "\"row_splits\": [[0, 2, 3]], \"values\": [\"a\", \"b\", \"c\"]");
    assert_says("peek --cache c --raw lists.yaml", "", EXIT_OK,
                "\"shape\": [2, -1], \"parts\": [3, 32, 24]}}}\nabc");
    assert_says("peek --cache c --num-workers 2 --worker 1 --epochs 2 rows.yaml", "", EXIT_OK,
                "worker 1: epoch 1 ends");
    assert_says("peek --cache c --stats rows.yaml", "", EXIT_OK, "rows parsed 4");
}

static void
explain_names_the_rows_of_a_batch(void **state)
{
    (void)state;
    assert_prints("explain --cache c rows.yaml", "",
                  "stream rows, epoch 0, step 0, worker 0 of 1, replica 0 of 1: 3 rows\n"
                  "row 0\n  csv (line 4): rows.csv, record 0, 5 bytes at 0\n"
                  "row 1\n  csv (line 4): rows.csv, record 1, 6 bytes at 6\n"
                  "row 2\n  csv (line 4): rows.csv, record 2, 5 bytes at 13\n");
    assert_prints("explain --cache c --step 1 --row 0 --show rows.yaml", "",
                  "stream rows, epoch 0, step 1, worker 0 of 1, replica 0 of 1: 1 row\n"
                  "row 0\n  csv (line 4): rows.csv, record 3, 7 bytes at 19\n"
                  "    \"4,green\"\n"
                  "  x                int32[1] 4\n"
                  "  w                string[1] \"green\"\n"
                  "  y                int32[1] 8\n");
    assert_says("explain --cache c --json --epoch 5 rows.yaml", "", EXIT_OK,
                "\"file\": \"rows.csv\"");
    assert_says("explain --cache c --json --show lists.yaml", "", EXIT_OK,
                "\"row_splits\": [[0, 1]], \"values\": [\"c\"]");
    /* The worker that has no row of the batch is given an empty one. */
    assert_says("explain --cache c --step 1 --num-workers 2 --worker 1 rows.yaml", "", EXIT_OK,
                "no rows at this step");
    assert_says("explain --cache c sums.yaml", "", EXIT_OK, "element 0");
}

static void
explain_refuses_what_names_no_batch(void **state)
{
    (void)state;
    assert_says("explain --cache c --step 2 rows.yaml", "", EXIT_REFUSED, "--epoch 1 --step 0");
    assert_says("explain --cache c --step 9 rows.yaml", "", EXIT_REFUSED, "fewer steps");
    assert_says("explain --cache c --row 3 rows.yaml", "", EXIT_REFUSED, "3 rows (0 is the first)");
    assert_says("explain --cache c --replica 1 rows.yaml", "", EXIT_USAGE, "a worker has 1");
    assert_says("explain --cache c --worker 2 rows.yaml", "", EXIT_USAGE, "--num-workers is 1");
    assert_says("explain --cache c --place tnd1.x --seed 1 rows.yaml", "", EXIT_USAGE, "not both");
    assert_says("explain --cache c --place here rows.yaml", "", EXIT_REFUSED,
                "not a place's token");
    assert_says("explain --cache c --place tnd1.AAAA rows.yaml", "", EXIT_REFUSED, "not a place");
    assert_says("explain --cache c none.yaml", "", EXIT_SYSTEM, "none.yaml");
    assert_says("explain --cache c bad.yaml", "", EXIT_REFUSED, "rnage");
    assert_says("explain --cache c mixed.yaml", "", EXIT_REFUSED, "--place");
    assert_says("explain --cache c --seed 3 mixed.yaml", "", EXIT_OK, "4 bytes");
    assert_says("explain --cache c shards.yaml", "", EXIT_REFUSED, "evaluation");
}

static void
what_is_wrong_has_its_status(void **state)
{
    (void)state;
    assert_says("peek --cache c bad.yaml", "", EXIT_REFUSED, "rnage");
    assert_says("peek --cache c --json bad.yaml", "", EXIT_REFUSED, "\"refused\": true");
    assert_says("peek", "", EXIT_USAGE, "usage: tundish peek");
    assert_says("peek --stpes 3 rows.yaml", "", EXIT_USAGE, "usage: tundish peek");
    put_text("nan.yaml", "streams:\n  a:\n    dataset:\n      - csv: {filenames: rows.csv, "
                         "record_defaults: [NaN, string], column_names: [a, b]}\n");
    assert_says("peek --cache c nan.yaml", "", EXIT_REFUSED, "'a' is the text NaN: write .nan");
    assert_says("plan --cache c none.yaml", "", EXIT_SYSTEM, "none.yaml");
    assert_says("vocab", "", EXIT_USAGE, "usage: tundish vocab");
    assert_says("index --kind jpeg rows.csv", "", EXIT_REFUSED, "not as jpeg");
    assert_says("status --socket none.sock", "", EXIT_SYSTEM, "none.sock");
    assert_says("help unheard", "", EXIT_USAGE, "unheard");
}

static void
plan_tells_the_stages(void **state)
{
    (void)state;
    assert_says("plan --cache c rows.yaml", "", EXIT_OK, "batch");
    assert_says("plan --cache c --num-workers 2 --worker 1 --replicas 1 rows.yaml", "", EXIT_OK,
                "DATA");
    assert_says("plan --cache c --json rows.yaml", "", EXIT_OK, "\"element_spec\"");
    assert_says("plan --cache c --dot rows.yaml", "", EXIT_OK, "digraph");
    assert_says("plan --cache c --dot rows.yaml", "", EXIT_OK,
                "n0 [label=\"csv (line 4)\\n{filenames: rows.csv");
    assert_says("plan --cache c --dot rows.yaml", "", EXIT_OK, "n0 -> n1;");
}

/* Each is named with the line of its stage. */
static void
plan_refuses_what_serving_would(void **state)
{
    enum { STAGES = 129 };
    FILE *file;

    (void)state;
    put_text("rank.yaml", "streams:\n  a:\n    dataset:\n      - text_line: rows.csv\n"
                          "      - decode_image\n      - batch: 2\n");
    assert_says("plan --cache c rank.yaml", "", EXIT_REFUSED,
                "rank.yaml:5:9: decode_image: column 'value' has an unknown number of dimensions");
    assert_says("plan --cache c rank.yaml", "", EXIT_REFUSED, "set expand_animations: false");
    file = fopen("shuffles.yaml", "w");
    assert_non_null(file);
    fputs("streams:\n  a:\n    dataset:\n      - range: 3\n", file);
    for (int i = 0; i < STAGES; i++)
        fputs("      - shuffle: 2\n", file);
    assert_int_equal(fclose(file), 0);
    assert_says("plan --cache c shuffles.yaml", "", EXIT_REFUSED,
                "shuffles.yaml:133:9: shuffle: this is random stage 129");
}

/* Before anything is served. */
static void
plan_looks_for_the_program(void **state)
{
    static const char text[] = "streams:\n  a:\n    dataset:\n"
                               "      - program: {command: [%s], spec: {x: {dtype: int64}}}\n"
                               "      - batch: 2\n";
    static const struct {
        const char *program;
        int status;
        const char *words;
    } cases[] = {
        { "no-such-program", EXIT_SYSTEM, "program no-such-program cannot be started: No such" },
        { "./no-such-program", EXIT_SYSTEM, "./no-such-program cannot be started: No such file" },
        { "./rows.csv", EXIT_SYSTEM, "./rows.csv cannot be started: Permission denied" },
        { "sh", EXIT_OK, "program" },
        { "/bin/sh", EXIT_OK, "program" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[256];

        snprintf(file, sizeof file, text, cases[i].program);
        put_text("program.yaml", file);
        assert_says("plan --cache c program.yaml", "", cases[i].status, cases[i].words);
    }
}

static void
rows_pass_through_a_transform(void **state)
{
    (void)state;
    assert_prints("transform --cache c rows.yaml", "5,red\n6,x\n",
                  "{\"x\": 5, \"w\": \"red\", \"y\": 10}\n{\"x\": 6, \"w\": \"x\", \"y\": 12}\n");
    assert_prints("transform --cache c --from jsonl sums.yaml", "{\"b\": 4, \"a\": 3}\n",
                  "{\"a\": 3, \"b\": 4, \"sum\": 7}\n");
    assert_says("transform --cache c --from jsonl --to npy --output made sums.yaml",
                "{\"b\": 4, \"a\": 3}\n", EXIT_OK, "");
    assert_int_equal(access("made/sum.npy", R_OK), 0);
    assert_says("transform --cache c --to npy rows.yaml", "", EXIT_USAGE, "--output");
    assert_says("transform --cache c rows.yaml", "five,red\n", EXIT_REFUSED, "five");
    assert_says("transform --cache c --from jsonl sums.yaml", "{\"a\": [}\n", EXIT_REFUSED,
                "row 0");
}

/* Columns of every kind and many dtypes. */
#define KINDS                                                                                      \
    "streams: {rows: {dataset: [{from_tensor_slices: {u: {values: [1, 2], dtype: uint8}, "         \
    "i: {values: [-1, -2], dtype: int16}, f: {values: [0.5, 1.5], dtype: float16}, "               \
    "d: {values: [0.25, 2.0], dtype: float64}, b: {values: [true, false]}, t: ['a b', 'c d'], "    \
    "s: [[0, 7], [8, 0]], m: [[1, 2], [3, 4]]}}, {string_split: {columns: t}}, "                   \
    "{to_sparse: {columns: s}}, {batch: 2}]}}\n"

static void
columns_of_every_kind_are_printed(void **state)
{
    static const struct saying sayings[] = {
        { "peek --cache c kinds.yaml", EXIT_OK, "uint8[2] 1, 2" },
        { "peek --cache c kinds.yaml", EXIT_OK, "int16[2] -1, -2" },
        { "peek --cache c kinds.yaml", EXIT_OK, "float16[2] 0.5, 1.5" },
        { "peek --cache c kinds.yaml", EXIT_OK, "float64[2] 0.25, 2.0" },
        { "peek --cache c kinds.yaml", EXIT_OK, "bool[2] true, false" },
        { "peek --cache c --json kinds.yaml", EXIT_OK, "\"indices\": [[0, 1], [1, 0]]" },
        { "peek --cache c --json kinds.yaml", EXIT_OK, "\"sparse\": true" },
        { "plan --cache c kinds.yaml", EXIT_OK, "bool" },
    };

    (void)state;
    put_text("kinds.yaml", KINDS);
    ALL_SAY(sayings);
}

/* Records written by one transform are what the next one reads. */
static void
rows_pass_through_tfrecords(void **state)
{
    static const char rows[] = "{\"a\": 3, \"f\": 0.5, \"t\": \"x y\"}\n"
                               "{\"a\": -4, \"f\": 1.5, \"t\": \"\"}\n";
    int status;

    (void)state;
    put_text("write.yaml", "streams: {rows: {dataset: [{from_tensor_slices: {a: [1], f: [1.0], "
                           "t: ['']}}, {map: {a: a * 2}}]}}\n");
    put_text("read.yaml",
             "streams: {rows: {dataset: [{tfrecord: records}, {parse_example: {features: {"
             "a: {type: FixedLen, dtype: int64, shape: []}, "
             "f: {type: FixedLen, dtype: float32, shape: []}, "
             "t: {type: FixedLen, dtype: string, shape: []}}}}]}}\n");
    (void)run_command("transform --cache c --from jsonl --to tfrecord write.yaml", rows, &status);
    assert_int_equal(status, EXIT_OK);
    assert_int_equal(rename("output", "records"), 0);
    assert_string_equal(
        run_command_on("transform --cache c --from tfrecord read.yaml", "records", &status),
        "{\"a\": 6, \"f\": 0.5, \"t\": \"x y\"}\n{\"a\": -8, \"f\": 1.5, \"t\": \"\"}\n");
    assert_int_equal(status, EXIT_OK);
}

static void
assert_refuses_records(const char *words)
{
    int status;
    const char *output =
        run_command_on("transform --cache c --from tfrecord read.yaml", "records", &status);

    if (status != EXIT_REFUSED || strstr(output, words) == NULL)
        fail_msg("status %d, or '%s' is not in: %s", status, words, output);
}

/* The two records of the test before. */
static void
damaged_tfrecords_are_refused_by_their_number(void **state)
{
    struct stat about;
    FILE *file;

    (void)state;
    assert_int_equal(stat("records", &about), 0);
    file = fopen("records", "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_not_equal(fputc('?', file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_refuses_records("record 1 is damaged: its checksum is wrong");
    assert_int_equal(truncate("records", about.st_size - 1), 0);
    assert_refuses_records("record 1: the input ends within it");
    assert_int_equal(truncate("records", 5), 0);
    assert_refuses_records("record 0: the input ends within it");
    put_text("records", "this is a file of text\n");
    assert_refuses_records("record 0: its length is damaged");
}

static void
rows_pass_through_in_every_form_of_output(void **state)
{
    (void)state;
    assert_says("transform --cache c lists.yaml", "a b c\n", EXIT_OK,
                "{\"t\": [\"a\", \"b\", \"c\"]}\n");
    assert_says("transform --cache c --from yaml sums.yaml", "", EXIT_USAGE, "not 'yaml'");
    assert_says("transform --cache c --to yaml sums.yaml", "", EXIT_USAGE, "not 'yaml'");
    assert_says("transform --cache c --from jsonl --to npy --output made/sum.npy sums.yaml", "",
                EXIT_SYSTEM, "made/sum.npy");
}

static void
what_was_learned_is_applied(void **state)
{
    (void)state;
    assert_says("peek --cache c learned.yaml", "", EXIT_REFUSED, "run `tundish analyze");
    assert_says("analyze --cache c --quiet --threads 1 learned.yaml", "", EXIT_OK, "");
    assert_says("peek --cache c learned.yaml", "", EXIT_OK,
                "x                float32[4] 0.0, 0.33333334, 0.6666667, 1.0\n");
    /* Of terms that are equally frequent, the last in the alphabet comes first. */
    assert_says("peek --cache c learned.yaml", "", EXIT_OK,
                "w                int64[4] 1, 3, 1, 2\n");
    assert_says("transform --cache c learned.yaml", "2.5,blue\n", EXIT_OK, "\"x\": 0.5");
    assert_says("transform --cache c learned.yaml", "2.5,blue\n", EXIT_OK, "\"w\": 3");
    assert_says("analyze --cache c --quiet rows.yaml", "", EXIT_REFUSED, "no stage that learns");
}

static void
of_no_batch_an_empty_vocabulary_is_learned(void **state)
{
    (void)state;
    put_text("unseen.yaml",
             "streams:\n  rows:\n    dataset:\n"
             "      - from_tensor_slices: {w: [red, blue], n: [1, 2], t: [red, blue]}\n"
             "      - batch: {batch_size: 3, drop_remainder: true}\n"
             "      - string_lookup: {columns: w}\n"
             "      - integer_lookup: {columns: n, num_oov_indices: 2, output: m}\n"
             "      - text_vectorization: {columns: t}\n");
    assert_says("analyze --cache c --quiet --analysis unseen unseen.yaml", "", EXIT_OK, "");
    assert_says("peek --cache c --analysis unseen unseen.yaml", "", EXIT_OK, "");
    assert_prints("transform --cache c --analysis unseen --from jsonl unseen.yaml",
                  "{\"w\": \"red\", \"n\": 4, \"t\": \"red\"}\n",
                  "{\"w\": 0, \"n\": 4, \"t\": [1], \"m\": 0}\n");
}

static void
files_are_indexed_and_vocabularies_looked_up(void **state)
{
    (void)state;
    put_text("words", "red\nblue\n");
    assert_says("index --cache c --kind text_line rows.csv", "", EXIT_OK, "rows.csv");
    assert_says("index --cache c --kind text_line --json rows.csv", "", EXIT_OK, "4");
    assert_says("index --cache c rows.csv", "", EXIT_REFUSED, "rows.csv");
    assert_says("index --cache c none", "", EXIT_SYSTEM, "none");
    assert_says("vocab --cache c words", "", EXIT_OK, "2");
    assert_says("vocab --cache c words blue green", "", EXIT_OK, "blue");
    assert_says("vocab --cache c --json words blue", "", EXIT_OK, "1");
    assert_says("vocab --cache c --json words", "", EXIT_OK, "\"terms\": 2");
    assert_says("vocab --cache c words blue green", "", EXIT_OK, "blue\tline 1\ngreen\tabsent\n");
    put_text("numbers", "7\n-3\n");
    assert_says("vocab --cache c --integers numbers -- 7 -3 8", "", EXIT_OK,
                "7\tline 0\n-3\tline 1\n8\tabsent\n");
    assert_says("vocab --cache c --integers numbers seven", "", EXIT_REFUSED,
                "'seven' is not an integer");
    assert_says("vocab --cache c none", "", EXIT_SYSTEM, "none");
}

static void
help_describes_commands_and_stages(void **state)
{
    (void)state;
    assert_says("help", "", EXIT_OK, "transform");
    assert_says("help batch", "", EXIT_OK, "batch_size");
}

static void
help_lists_each_option_once(void **state)
{
    const char *line, *name;
    char option[64];
    size_t i;

    (void)state;
    for (i = 0; commands[i] != NULL; i++)
        for (line = commands[i]->details; line != NULL; line = strstr(line, "\n  --")) {
            name = line + strspn(line, "\n ");
            snprintf(option, sizeof option, "\n  %.*s ", (int)strcspn(name, " \n"), name);
            line = name;
            if (strstr(line, option) != NULL)
                fail_msg("tundish %s lists an option twice:%s", commands[i]->name, option);
        }
}

TEST_FILE(test_commands)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peek_prints_batches),
        cmocka_unit_test(explain_names_the_rows_of_a_batch),
        cmocka_unit_test(explain_refuses_what_names_no_batch),
        cmocka_unit_test(what_is_wrong_has_its_status),
        cmocka_unit_test(plan_tells_the_stages),
        cmocka_unit_test(plan_refuses_what_serving_would),
        cmocka_unit_test(plan_looks_for_the_program),
        cmocka_unit_test(rows_pass_through_a_transform),
        cmocka_unit_test(columns_of_every_kind_are_printed),
        cmocka_unit_test(rows_pass_through_tfrecords),
        cmocka_unit_test(damaged_tfrecords_are_refused_by_their_number),
        cmocka_unit_test(rows_pass_through_in_every_form_of_output),
        cmocka_unit_test(what_was_learned_is_applied),
        cmocka_unit_test(of_no_batch_an_empty_vocabulary_is_learned),
        cmocka_unit_test(files_are_indexed_and_vocabularies_looked_up),
        cmocka_unit_test(help_describes_commands_and_stages),
        cmocka_unit_test(help_lists_each_option_once),
    };

    return cmocka_run_group_tests(tests, write_home, close_home);
}
