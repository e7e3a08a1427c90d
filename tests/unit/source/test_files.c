/* test_files.c - files that change while they are served, and waits that end. */
#include "source_fixture.h"
#include "unit/test_file.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/clock.h"

#define ROWS "record_defaults: [{values: '', dtype: string}], column_names: [x]"

static void
rewrite(const struct folder *folder, const char *name, const char *text)
{
    char path[128];
    int file;

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    file = open(path, O_WRONLY | O_TRUNC);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
}

static void
a_file_that_became_shorter_is_an_error_that_names_it(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[6];
    size_t count;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\ncoat\ndoor\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[csv: {filenames: a, " ROWS "}]"),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 3, &count), ORDER_OK);
    assert_int_equal(count, 3);
    assert_int_equal(pipeline_content(&pipeline, words, 3), TUNDISH_OK);
    rewrite(&folder, "a", "card\n");
    assert_int_equal(pipeline_content(&pipeline, words, 3), TUNDISH_E_DATA);
    assert_string_equal(tnd_error_text(),
                        "a: the file became shorter while it was served: 5 bytes, before 15");
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static int64_t
in_a_second(void *context)
{
    struct timespec now;

    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec + 1) * INT64_C(1000000000) + now.tv_nsec;
}

static int
put_clock_back(void **state)
{
    (void)state;
    tnd_clock_install(NULL);
    return 0;
}

static void
a_file_that_was_written_over_is_noticed_within_a_second(void **state)
{
    static const struct tnd_clock later = { .now_ns = in_a_second };
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[6];
    size_t count;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\ncoat\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[csv: {filenames: a, " ROWS "}]"),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 3, &count), ORDER_OK);
    assert_int_equal(pipeline_content(&pipeline, words, 2), TUNDISH_OK);
    rewrite(&folder, "a", "door\nfern\n");
    tnd_clock_install(&later);
    assert_int_equal(pipeline_content(&pipeline, words, 2), TUNDISH_E_DATA);
    assert_non_null(
        strstr(tnd_error_text(), "a: the file was changed or replaced while it was served"));
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
a_file_that_was_replaced_is_noticed_when_it_is_opened_again(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[6];
    size_t count;
    char path[128];

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\ncoat\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[csv: {filenames: a, " ROWS "}]"),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 3, &count), ORDER_OK);
    snprintf(path, sizeof path, "%s/a", folder.path);
    assert_int_equal(unlink(path), 0);
    put_text(&folder, "b", "to take the place of the inode\n");
    put_text(&folder, "a", "card\ncoat\n");
    assert_int_equal(pipeline_content(&pipeline, words, 2), TUNDISH_E_DATA);
    assert_non_null(strstr(tnd_error_text(), "a: the file was changed or replaced"));
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* A text has a length, and nothing behind it to stop at. */
static bool
is_row(struct byte_view text, size_t number)
{
    char expected[16];
    int bytes = snprintf(expected, sizeof expected, "row %zu", number);

    return text.size == (size_t)bytes && memcmp(text.data, expected, text.size) == 0;
}

/* With room for few descriptors, many files take turns. */
static void
more_files_than_descriptors_can_be_read(void **state)
{
    enum { FILES = 120 };
    struct rlimit before, few;
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[FILES * SOURCE_WIDTH];
    size_t used = 0;
    size_t count;
    struct bytes names = { 0 };
    char *stages;

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < FILES; i++) {
        char name[16], text[16];

        snprintf(name, sizeof name, "f%d", i);
        snprintf(text, sizeof text, "row %d\n", i);
        put_text(&folder, name, text);
        bytes_add(&names, name, strlen(name));
        bytes_add(&names, ",", i + 1 < FILES);
    }
    bytes_add(&names, "", 1);
    stages = tnd_sprintf("[csv: {filenames: [%s], " ROWS "}]", (char *)names.data);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ 64, before.rlim_max };
    pid_t child = fork(); /* the hard limit cannot be raised again */

    if (child == 0) {
        few.rlim_max = 64;
        if (setrlimit(RLIMIT_NOFILE, &few) != 0 ||
            pipeline_open(&pipeline, &folder, 0, stages) != TUNDISH_OK)
            _exit(1);
        while (order_next(pipeline.iterator, words + used, FILES, &count) == ORDER_OK)
            used += count * SOURCE_WIDTH;
        for (int round = 0; round < 3; round++) {
            if (pipeline_content(&pipeline, words, FILES) != TUNDISH_OK)
                _exit(2);
            for (size_t i = 0; i < FILES; i++)
                if (!is_row(text_at(&pipeline, 0, i), i))
                    _exit(3);
        }
        pipeline_close(&pipeline);
        _exit(used == FILES * SOURCE_WIDTH ? 0 : 4);
    }
    int result;

    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    free(stages);
    free(names.data);
    folder_close(&folder);
}

static void
a_wait_ends_when_the_session_stops(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    _Atomic int stop = 1;
    uint64_t words[2];
    size_t count;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\n");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[csv: {filenames: a, " ROWS "}]"),
                     TUNDISH_OK);
    pipeline.services.stop = &stop;
    assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_FAILED);
    assert_non_null(strstr(tnd_error_text(), "stopped"));
    pipeline_close(&pipeline);
    folder_close(&folder);
}

enum { LINES = 20000, THREADS = 4 };

struct reading {
    struct pipeline *pipeline;
    const uint64_t *words;
    uint32_t seed;
    bool is_good;
};

static void *
read_at_random(void *argument)
{
    struct reading *reading = argument;
    struct evaluation evaluation = { .files = reading->pipeline->files, .scratch = scratch_open() };

    reading->is_good = true;
    for (int round = 0; round < 200; round++) {
        uint64_t words[50 * SOURCE_WIDTH];
        int rows[50];
        struct frame frame;
        struct evaluate_request request = { .words = words, .stride = SOURCE_WIDTH, .count = 50 };

        for (int i = 0; i < 50; i++) {
            reading->seed = reading->seed * 1664525 + 1013904223;
            rows[i] = (int)(reading->seed >> 8) % LINES;
            memcpy(&words[2 * i], &reading->words[2 * rows[i]], 16);
        }
        scratch_reset(evaluation.scratch);
        if (evaluate(&evaluation, reading->pipeline->node, &request, &frame) != TUNDISH_OK)
            reading->is_good = false;
        for (int i = 0; i < 50 && reading->is_good; i++) {
            struct byte_view text = ((const struct byte_view *)frame.columns[0].values)[i];
            char expected[32];

            snprintf(expected, sizeof expected, "line %d", rows[i]);
            reading->is_good =
                text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
        }
    }
    scratch_close(evaluation.scratch);
    return NULL;
}

static void
any_number_of_threads_may_read(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    struct bytes file = { 0 };
    uint64_t *words = tnd_zalloc(LINES, 16);
    pthread_t threads[THREADS];
    struct reading readings[THREADS];
    size_t used = 0;
    size_t count;

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < LINES; i++) {
        char line[32];

        bytes_add(&file, line, (size_t)snprintf(line, sizeof line, "line %d\n", i));
    }
    put_file(&folder, "a", file.data, file.used);
    assert_int_equal(pipeline_open(&pipeline, &folder, 2, "[csv: {filenames: a, " ROWS "}]"),
                     TUNDISH_OK);
    while (order_next(pipeline.iterator, words + used, 64, &count) == ORDER_OK)
        used += count * SOURCE_WIDTH;
    for (uint32_t i = 0; i < THREADS; i++) {
        readings[i] = (struct reading){ &pipeline, words, i, false };
        assert_int_equal(pthread_create(&threads[i], NULL, read_at_random, &readings[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(readings[i].is_good);
    }
    pipeline_close(&pipeline);
    free(words);
    free(file.data);
    folder_close(&folder);
}

TEST_FILE(test_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_became_shorter_is_an_error_that_names_it),
        cmocka_unit_test_teardown(a_file_that_was_written_over_is_noticed_within_a_second,
                                  put_clock_back),
        cmocka_unit_test(a_file_that_was_replaced_is_noticed_when_it_is_opened_again),
        cmocka_unit_test(more_files_than_descriptors_can_be_read),
        cmocka_unit_test(a_wait_ends_when_the_session_stops),
        cmocka_unit_test(any_number_of_threads_may_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
