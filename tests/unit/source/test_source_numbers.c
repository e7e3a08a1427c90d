/* test_source_numbers.c - lists of integers, of which each epoch has its own. */
#include "source_fixture.h"

#include <pthread.h>

#include "unit/test_file.h"

static void
put_list(const struct folder *folder, const char *name, const int64_t *list, size_t count)
{
    struct bytes all = { 0 };
    char head[128];
    int bytes = snprintf(head + 10, sizeof head - 10,
                         "{'descr': '<i8', 'fortran_order': False, 'shape': (%zu,)}\n", count);
    const uint16_t length = (uint16_t)bytes;

    memcpy(head, "\x93NUMPY\1\0", 8);
    memcpy(head + 8, &length, 2);
    bytes_add(&all, head, 10 + (size_t)bytes);
    bytes_add(&all, list, count * sizeof *list);
    put_file(folder, name, all.data, all.used);
    free(all.data);
}

static int64_t
value_of(const struct pipeline *pipeline)
{
    return *(const int64_t *)pipeline->frame.columns[0].values;
}

static void
each_epoch_has_the_list_of_its_own_file(void **state)
{
    const int64_t expected[] = { 7, -1, 7, 5 };
    struct folder folder;
    struct pipeline pipeline;

    (void)state;
    folder_open(&folder);
    put_list(&folder, "of-0.npy", (const int64_t[]){ 7, -1, 7 }, 3);
    put_list(&folder, "of-1.npy", NULL, 0);
    put_list(&folder, "of-2.npy", (const int64_t[]){ 5 }, 1);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[numbers: 'of-{epoch}.npy', repeat: 3]"),
                     TUNDISH_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        assert_int_equal(value_of(&pipeline), expected[i]);
    }
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
a_place_is_reached_directly(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    uint64_t passed;

    (void)state;
    folder_open(&folder);
    put_list(&folder, "0.npy", (const int64_t[]){ 9, 8, 7 }, 3);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[numbers: '{epoch}.npy']"), TUNDISH_OK);
    assert_int_equal(order_pass_over(pipeline.iterator, 2, &passed), ORDER_OK);
    assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
    assert_int_equal(value_of(&pipeline), 7);
    assert_int_equal(order_pass_over(pipeline.iterator, 2, &passed), ORDER_END);
    assert_int_equal(passed, 0);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

struct later {
    const struct folder *folder;
    const struct source_files *files;
};

/* As soon as a wait for it is counted, or after a minute. */
static void *
put_later(void *context)
{
    const struct later *later = context;
    struct source_files_stats stats = { 0 };
    char path[96], there[96];

    for (int i = 0; i < 6000 && stats.program_wait_ns == 0; i++) {
        usleep(10000);
        source_files_stats(later->files, &stats);
    }
    put_list(later->folder, "new", (const int64_t[]){ 3 }, 1);
    snprintf(path, sizeof path, "%s/new", later->folder->path);
    snprintf(there, sizeof there, "%s/0.npy", later->folder->path);
    assert_int_equal(rename(path, there), 0);
    return NULL;
}

static void
a_file_is_waited_for_until_the_server_stops(void **state)
{
    _Atomic int stop = 1;
    struct folder folder;
    struct pipeline pipeline;
    struct later later = { .folder = &folder };
    struct source_files_stats stats;
    pthread_t thread;

    (void)state;
    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[numbers: '{epoch}.npy']"), TUNDISH_OK);
    later.files = pipeline.files;
    pipeline.services.stop = &stop;
    assert_int_equal(pipeline_next(&pipeline), ORDER_FAILED);
    assert_non_null(strstr(tnd_error_text(), "/0.npy was not there"));
    pipeline.services.stop = NULL;
    assert_int_equal(pthread_create(&thread, NULL, put_later, &later), 0);
    assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    source_files_stats(pipeline.files, &stats);
    assert_true(stats.program_wait_ns > 0);
    assert_int_equal(value_of(&pipeline), 3);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
assert_bad(const struct folder *folder, const char *words)
{
    struct pipeline pipeline;

    assert_int_equal(pipeline_open(&pipeline, folder, 0, "[numbers: '{epoch}.npy']"), TUNDISH_OK);
    assert_int_equal(pipeline_next(&pipeline), ORDER_FAILED);
    if (strstr(tnd_error_text(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tnd_error_text());
    assert_int_equal(pipeline_next(&pipeline), ORDER_END);
    pipeline_close(&pipeline);
}

static void
what_is_no_list_is_named(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    assert_refused(&folder, "[numbers: order.npy]", "'order.npy' needs {epoch}");
    put_text(&folder, "0.npy", "0 1 2");
    assert_bad(&folder, "0.npy: ");
    put_file(&folder, "0.npy",
             "\x93NUMPY\1\0\x38\0{'descr': '<f8', 'fortran_order': False, 'shape': (0,)} ", 66);
    assert_bad(&folder, "this file has float64 of 1 dimensions");
    folder_close(&folder);
}

TEST_FILE(test_source_numbers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_epoch_has_the_list_of_its_own_file),
        cmocka_unit_test(a_place_is_reached_directly),
        cmocka_unit_test(a_file_is_waited_for_until_the_server_stops),
        cmocka_unit_test(what_is_no_list_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
