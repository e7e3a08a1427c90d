/* test_source_program.c - programs that write rows, and what else programs do. */

#include "source_fixture.h"
#include "unit/test_file.h"

/* Stages that run a shell script whose rows are {s: string}. */
static char *
shell(const char *script, const char *behind)
{
    return tnd_sprintf("[program: {command: [sh, -c, \"%s\"], spec: {s: {dtype: string}}}%s]",
                       script, behind);
}

/* Writes "one", "two". */
#define TWO_ROWS                                                                                   \
    "printf "                                                                                      \
    "'\\\\003\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0one\\\\003\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0two'"

static void
assert_shell(const char *script, const char *behind, const char *expected)
{
    struct folder folder;
    char *stages = shell(script, behind);

    folder_open(&folder);
    assert_texts(&folder, stages, expected);
    folder_close(&folder);
    free(stages);
}

enum { WIDTH = SOURCE_WIDTH + 1 }; /* of an element, with the word that tells its content */

/* A failure whose sentence has these words, behind the rows. */
static void
assert_fails(const char *script, const char *rows, const char *words)
{
    struct folder folder;
    struct pipeline pipeline;
    char *stages = shell(script, "");
    char *texts;

    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 64);
    if (strncmp(texts, rows, strlen(rows)) != 0 || strstr(texts, words) == NULL)
        fail_msg("'%s', then '%s' is not: %s", rows, words, texts);
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(stages);
}

static void
its_rows_are_elements(void **state)
{
    (void)state;
    assert_shell(TWO_ROWS, "", "one|two|");
    assert_shell("true", "", "");
    assert_shell(TWO_ROWS, ", repeat: 2", "one|two|one|two|");
    assert_shell(TWO_ROWS, ", skip: 1", "two|");
}

static void
it_runs_in_the_root_with_its_variables(void **state)
{
    (void)state;
    assert_shell("printf '\\\\003\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0'; printf "
                 "$TUNDISH_EPOCH$TUNDISH_WORKER$TUNDISH_NUM_WORKERS",
                 ", repeat: 2", "001|101|");
    assert_shell("test -d cache && " TWO_ROWS, "", "one|two|");
}

static void
it_cannot_stop_its_guard_for_good(void **state)
{
    (void)state;
    assert_shell("kill -STOP $PPID; " TWO_ROWS, "", "one|two|");
    assert_shell(TWO_ROWS "; kill -STOP $PPID; exec sleep 1000", ", take: 2", "one|two|");
}

static void
what_it_does_wrong_is_told(void **state)
{
    (void)state;
    assert_fails(TWO_ROWS "; echo why >&2; echo indeed >&2; exit 3", "one|two|!",
                 "returned 3; the end of its standard error: why | indeed");
    assert_fails(TWO_ROWS "; kill -9 $$", "one|two|!", "ended by signal 9");
    assert_fails(TWO_ROWS "; printf abc", "one|two|!", "ended inside row 2: it wrote 3 bytes");
    assert_fails(TWO_ROWS "; printf '\\\\377\\\\377\\\\377\\\\377\\\\377\\\\377\\\\377\\\\377'",
                 "one|two|!", "row 2: column 's' of a row would take more than 2 GiB");
}

static void
a_program_that_is_not_there_is_told(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char *texts;

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0,
                                   "[program: {command: [no-such-program], spec: {s: {dtype: "
                                   "string}}}]"),
                     TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 64);
    assert_non_null(strstr(texts, "no-such-program cannot be started: No such file"));
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

#define STAGE " (program, line 3 of case.yaml)"

/* Instead of a row. */
#define REJECTED(length, why)                                                                      \
    "printf $TUNDISH_REJECT'\\\\" length "\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0" why "'"

static void
a_row_that_is_rejected_is_a_bad_row(void **state)
{
    (void)state;
    assert_shell(TWO_ROWS "; " REJECTED("003", "why") "; " TWO_ROWS, ", skip: 1",
                 "two|?sh, row 2: why" STAGE "|one|two|");
    assert_shell(REJECTED("003", "why") "; " TWO_ROWS, ", skip: 1", "one|two|");
    assert_shell(REJECTED("000", "") "; " REJECTED("003", "a\\tb"), ", repeat: 2",
                 "?sh, row 0: " STAGE "|?sh, row 1: a b" STAGE "|?sh, row 0: " STAGE
                 "|?sh, row 1: a b" STAGE "|");
    /* Its word may come in parts. */
    assert_shell("printf %.5s $TUNDISH_REJECT; sleep 0.01; printf $${TUNDISH_REJECT#?????}; "
                 "printf '\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0'",
                 "", "?sh, row 0: " STAGE "|");
    assert_fails(
        "printf $TUNDISH_REJECT; printf '\\\\0\\\\0\\\\1\\\\0\\\\0\\\\0\\\\0\\\\0'; " TWO_ROWS, "!",
        "ended inside row 0");
    assert_fails("printf $TUNDISH_REJECT; printf '\\\\0\\\\0\\\\2\\\\0\\\\0\\\\0\\\\0\\\\0'", "!",
                 "row 0: it is rejected with a text of 131072 bytes");
}

/* How many elements a program has, and how many of them are bad. */
static void
assert_counts(const char *script, const char *spec, int expected, int expected_bad)
{
    struct folder folder;
    struct pipeline pipeline;
    char *stages =
        tnd_sprintf("[program: {command: [sh, -c, \"%s\"], spec: {x: {%s}}}]", script, spec);
    uint64_t words[WIDTH];
    int elements = 0, bad = 0;
    size_t count;

    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    for (; order_next(pipeline.iterator, words, 1, &count) == ORDER_OK; elements++)
        bad += pipeline_content(&pipeline, words, 1) != TUNDISH_OK;
    assert_int_equal(elements, expected);
    assert_int_equal(bad, expected_bad);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(stages);
}

static void
a_rejection_and_a_row_are_never_taken_for_each_other(void **state)
{
    (void)state;
    /* "rejected row 0: a" is kept of it, which is as long as a row. */
    assert_counts(REJECTED("001", "a"), "dtype: uint8, shape: [17]", 1, 1);
    /* Rows that are the beginning of its word. */
    assert_counts("printf %.31s $TUNDISH_REJECT", "dtype: uint8", 31, 0);
    /* A word that is not this run's is data. */
    assert_counts("printf 00112233445566778899aabbccddeeff", "dtype: uint8, shape: [32]", 1, 0);
}

/* Is there a process that has this word among its arguments? */
static bool
is_running(const char *word)
{
    char command[160];

    snprintf(command, sizeof command,
             "for p in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$p 2>/dev/null | grep -qx %s && "
             "exit 0; done; exit 1",
             word);
    return system(command) == 0;
}

static void
nothing_of_it_is_left_when_it_is_not_wanted_any_more(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char seconds[16], script[256];
    char *stages;
    uint64_t words[WIDTH];
    size_t count;

    (void)state;
    snprintf(seconds, sizeof seconds, "%d", 100000 + getpid()); /* ours alone */
    snprintf(script, sizeof script, "setsid sleep %s & (sleep %s &) ; %s; sleep %s", seconds,
             seconds, TWO_ROWS, seconds);
    stages = shell(script, "");
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_OK);
    assert_true(is_running(seconds));
    pipeline_close(&pipeline);
    assert_false(is_running(seconds));
    folder_close(&folder);
    free(stages);
}

static void
a_program_that_hangs_does_not_hold_up_the_end(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char *stages = shell("sleep 1000", "");
    _Atomic int stop = 1;
    uint64_t words[WIDTH];
    size_t count;

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    pipeline.services.stop = &stop;
    assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_FAILED);
    assert_non_null(strstr(tnd_error_text(), "stopped while program sh was writing nothing"));
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(stages);
}

/* The rows of a second pass that is like the first are the first's. */
static void
a_pass_that_repeats_takes_no_more_room(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    char *stages = shell(TWO_ROWS, ", repeat: 2");
    uint64_t words[4][WIDTH];
    size_t at = 0, count;

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    while (at < 4 && order_next(pipeline.iterator, words[at], 4 - at, &count) == ORDER_OK)
        at += count;
    assert_int_equal(at, 4);
    assert_memory_equal(words[0], words[2], sizeof words[0]);
    assert_memory_equal(words[1], words[3], sizeof words[0]);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(stages);
}

static void
parameters_are_checked_when_planned(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    assert_refused(&folder, "[program: {command: [], spec: {s: {dtype: string}}}]", "command");
    assert_refused(&folder, "[program: {command: [x], spec: {s: {dtype: strin}}}]", "string");
    assert_refused(&folder, "[program: {command: [x], spec: {s: {dtype: int8, shape: [0]}}}]",
                   "no bytes");
    assert_refused(&folder,
                   "[program: {command: [x], spec: {s: {dtype: int8, shape: [4000000000]}}}]",
                   "2 GiB");
    folder_close(&folder);
}

static void
rows_are_told_apart_by_what_is_in_them(void **state)
{
    uint64_t words[2][WIDTH];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct folder folder;
        struct pipeline pipeline;
        char *stages = shell(i == 0 ? TWO_ROWS : TWO_ROWS " | tr o a", "");
        size_t count;

        folder_open(&folder);
        assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
        assert_int_equal(order_next(pipeline.iterator, words[i], 1, &count), ORDER_OK);
        pipeline_close(&pipeline);
        folder_close(&folder);
        free(stages);
    }
    assert_memory_equal(words[0], words[1], SOURCE_WIDTH * sizeof words[0][0]);
    assert_int_not_equal(words[0][SOURCE_WIDTH], words[1][SOURCE_WIDTH]);
}

/* Writes the rows 000 to 006 that are this process's, and says which was its first. The rest is
 * done before row i is written. */
#define SEVEN(before)                                                                              \
    "echo $TUNDISH_FIRST_ROW >>starts; i=$TUNDISH_FIRST_ROW; while [ $i -lt 7 ]; do " before       \
    " printf '\\\\003\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0%03d' $i; "                                \
    "i=$((i + TUNDISH_ROW_STEP)); done"

#define PROGRAM "case.yaml:3:15: program: program "
#define PASS "000|001|002|003|004|005|006|"

/* Where processes began. */
static void
assert_starts(const struct folder *folder, const char *expected)
{
    char path[128], starts[256] = "";
    FILE *file;

    snprintf(path, sizeof path, "sort -n %s/starts | tr '\\n' ' '", folder->path);
    file = popen(path, "r");
    assert_non_null(file);
    (void)!fread(starts, 1, sizeof starts - 1, file);
    pclose(file);
    assert_string_equal(starts, expected);
}

/* The rows, and where processes began, in the order of these words. */
static void
assert_run(const char *script, const char *parameters, const char *behind, const char *expected,
           const char *expected_starts)
{
    struct folder folder;
    struct pipeline pipeline;
    char *stages = tnd_sprintf("[program: {command: [sh, -c, \"%s\"], spec: {s: {dtype: string}}, "
                               "%s}%s]",
                               script, parameters, behind);
    char *texts;

    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 64);
    pipeline_close(&pipeline);
    if (strstr(texts, expected) != texts ||
        (strchr(expected, '!') == NULL && strcmp(texts, expected) != 0))
        fail_msg("%s %s: '%s' is not: %s", parameters, behind, expected, texts);
    free(texts);
    free(stages);
    if (expected_starts != NULL)
        assert_starts(&folder, expected_starts);
    folder_close(&folder);
}

/* Make a number of rows to be measured, and then all of them. */
static void
assert_goes_on(size_t measured, const char *parameters, const char *expected_starts)
{
    struct folder folder;
    struct pipeline pipeline;
    char *texts, *stages = tnd_sprintf("[program: {command: [sh, -c, \"%s\"], spec: {s: {dtype: "
                                       "string}}, %s}]",
                                       SEVEN(""), parameters);
    uint64_t words[WIDTH];
    size_t count;

    folder_open(&folder);
    folder.samples = true;
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    for (size_t i = 0; i < measured; i++)
        (void)order_next(pipeline.iterator, words, 1, &count);
    order_close(pipeline.iterator);
    order_instance_close(pipeline.instance);
    pipeline.services.samples = false;
    pipeline.instance = order_instance_open(pipeline.plan->graph, NULL, &pipeline.services);
    assert_int_equal(order_open(pipeline.node, pipeline.instance, &pipeline.iterator), TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 3);
    assert_string_equal(texts, PASS);
    free(texts);
    pipeline_close(&pipeline);
    assert_starts(&folder, expected_starts);
    folder_close(&folder);
    free(stages);
}

/* Programs that a measured first step begins go on where it is delivered. */
static void
a_program_that_was_begun_goes_on(void **state)
{
    (void)state;
    for (size_t measured = 0; measured <= 8; measured += 4) {
        assert_goes_on(measured, "processes: 1", "0 ");
        assert_goes_on(measured, "processes: 2", "0 1 ");
        assert_goes_on(measured, "processes: 2, seek: true", "0 1 ");
    }
}

static void
several_processes_write_the_rows_in_turn(void **state)
{
    (void)state;
    assert_run(SEVEN(""), "processes: 1", "", PASS, "0 ");
    assert_run(SEVEN(""), "processes: 2", "", PASS, "0 1 ");
    assert_run(SEVEN(""), "processes: 3", ", repeat: 2", PASS PASS, NULL);
    assert_run(SEVEN(""), "processes: 9", ", skip: 5", "005|006|", "0 1 2 3 4 5 6 7 8 ");
    for (int processes = 1; processes <= 4; processes++) {
        char parameters[32];

        snprintf(parameters, sizeof parameters, "processes: %d", processes);
        assert_run(SEVEN("[ $i = 4 ] && " REJECTED("001", "w") " ||"), parameters, ", skip: 3",
                   "003|?sh, row 4: w" STAGE "|005|006|", NULL);
    }
}

static void
what_one_of_several_does_wrong_comes_in_its_turn(void **state)
{
    (void)state;
    assert_run(SEVEN("[ $i = 5 ] && exit 3;"), "processes: 2", "",
               "000|001|002|003|004|!" PROGRAM "sh (process 1 of 2) returned 3", NULL);
    assert_run(SEVEN("[ $i = 4 ] && exit 0;"), "processes: 2", "",
               "000|001|002|003|!" PROGRAM
               "sh (process 1 of 2) wrote a row although there is no row 4",
               NULL);
    assert_run(SEVEN("") "; printf abc; exit $((TUNDISH_FIRST_ROW % 3))", "processes: 3", "",
               PASS "!" PROGRAM "sh (process 1 of 3) returned 1", NULL);
    assert_run(SEVEN("") "; [ $TUNDISH_FIRST_ROW = 0 ] || exit 2", "processes: 2", "",
               PASS "!" PROGRAM "sh (process 1 of 2) returned 2", NULL);
}

static void
one_that_seeks_begins_at_the_last_row_that_is_skipped(void **state)
{
    (void)state;
    assert_run(SEVEN(""), "seek: true", "", PASS, "0 ");
    assert_run(SEVEN(""), "seek: true", ", skip: 5", "005|006|", "4 ");
    assert_run(SEVEN(""), "seek: true, processes: 3", ", skip: 5", "005|006|", "4 5 6 ");
    assert_run(SEVEN(""), "seek: true", ", skip: 7", "", "6 ");
    /* With fewer rows than that it is not known how many there are. */
    assert_run(SEVEN(""), "seek: true", ", skip: 9", "", "0 8 ");
    assert_run(SEVEN(""), "seek: true", ", repeat: 3, skip: 9", "002|003|004|005|006|" PASS,
               "0 0 1 8 ");
    assert_run(SEVEN("[ $i = 4 ] && " REJECTED("001", "w") " ||"), "seek: true", ", skip: 4",
               "?sh, row 4: w" STAGE "|005|006|", "3 ");
    assert_run(SEVEN("[ $i = 4 ] && exit 3;"), "seek: true", ", skip: 5",
               "!" PROGRAM "sh returned 3", "4 ");
}

TEST_FILE(test_source_program)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_rows_are_elements),
        cmocka_unit_test(it_runs_in_the_root_with_its_variables),
        cmocka_unit_test(it_cannot_stop_its_guard_for_good),
        cmocka_unit_test(what_it_does_wrong_is_told),
        cmocka_unit_test(a_row_that_is_rejected_is_a_bad_row),
        cmocka_unit_test(a_rejection_and_a_row_are_never_taken_for_each_other),
        cmocka_unit_test(a_program_that_is_not_there_is_told),
        cmocka_unit_test(nothing_of_it_is_left_when_it_is_not_wanted_any_more),
        cmocka_unit_test(a_program_that_hangs_does_not_hold_up_the_end),
        cmocka_unit_test(a_pass_that_repeats_takes_no_more_room),
        cmocka_unit_test(a_program_that_was_begun_goes_on),
        cmocka_unit_test(several_processes_write_the_rows_in_turn),
        cmocka_unit_test(what_one_of_several_does_wrong_comes_in_its_turn),
        cmocka_unit_test(one_that_seeks_begins_at_the_last_row_that_is_skipped),
        cmocka_unit_test(rows_are_told_apart_by_what_is_in_them),
        cmocka_unit_test(parameters_are_checked_when_planned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
