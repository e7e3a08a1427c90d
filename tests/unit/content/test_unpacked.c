/* test_unpacked.c - texts and pictures that become far larger than their bytes: what they become,
 * and that threads together hold no more than their budget. */
#include "stage_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "column/budget.h"
#include "core/memory.h"
#include "core/must.h"
#include "unit/test_file.h"

enum { MIB = 1 << 20, BUDGET = 8 * MIB, THREADS = 4, TASKS = 12, ROWS = 4 };

/* `bytes` packed into *to, behind what is there. */
static void
pack(int window, const uint8_t *bytes, size_t size, uint8_t **to, size_t *to_size)
{
    z_stream stream = { 0 };

    must(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    *to = tnd_realloc(*to, *to_size + deflateBound(&stream, size) + 64, 1);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)size;
    stream.next_out = *to + *to_size;
    stream.avail_out = (uInt)deflateBound(&stream, size);
    must(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    *to_size += stream.total_out;
    deflateEnd(&stream);
}

static struct byte_view
packed(int window, const uint8_t *bytes, size_t size, int members)
{
    uint8_t *to = NULL;
    size_t to_size = 0;
    struct byte_view view;

    for (int i = 0; i < members; i++)
        pack(window, bytes, size, &to, &to_size);
    view = bytes_view(to, to_size);
    free(to);
    return view;
}

enum { GZIP = 31, ZLIB = 15 };

static struct byte_view
zeros(size_t size)
{
    uint8_t *bytes = tnd_zalloc(size, 1);
    struct byte_view view = packed(GZIP, bytes, size, 1);

    free(bytes);
    return view;
}

static struct stage_run *
rows_of(const struct byte_view *views, int64_t count, struct budget_task *task)
{
    struct stage_run *run = stage_run_open(count, 0);

    scratch_share(run->input.scratch, task);
    stage_run_add(run, "x", TUNDISH_STRING, views, NULL);
    return run;
}

static void
large_texts_are_whole(void **state)
{
    enum { SIZE = 3 * MIB + 7 };
    uint8_t *bytes = tnd_alloc(2 * SIZE);

    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * i >> 9);
    memcpy(bytes + SIZE, bytes, SIZE);
    for (int way = 0; way < 3; way++) {
        static const char *const stages[] = { "decode_compressed: {compression_type: GZIP}",
                                              "decode_compressed: {compression_type: GZIP}",
                                              "decode_compressed: {compression_type: ZLIB}" };
        int members = way == 1 ? 2 : 1;
        struct byte_view views[] = {
            packed(way == 2 ? ZLIB : GZIP, bytes, SIZE, members),
            packed(way == 2 ? ZLIB : GZIP, bytes, 100, 1),
            packed(way == 2 ? ZLIB : GZIP, bytes, SIZE, members),
        };
        struct budget_task task = { .budget = budget_open(24 * MIB, 1, "memory_limit") };
        struct stage_run *run = rows_of(views, 3, &task);
        const struct byte_view *texts;

        assert_int_equal(stage_run(run, stages[way]), TUNDISH_OK);
        texts = run->outputs[0].values;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(texts[i].size, i == 1 ? 100 : members * SIZE);
            assert_memory_equal(texts[i].data, bytes, texts[i].size);
        }
        stage_run_close(run);
        budget_close(task.budget);
    }
    free(bytes);
}

/* Threads that make tasks of the same rows. */
struct job {
    struct budget *budget;
    const char *stage;
    struct byte_view rows[ROWS];
    pthread_mutex_t lock;
    uint32_t handed_out;
    atomic_uint made;
};

static void *
work(void *context)
{
    struct job *job = context;
    struct budget_task task = { .budget = job->budget };
    struct stage_run *run = rows_of(job->rows, ROWS, &task);

    for (;;) {
        bool is_over;

        pthread_mutex_lock(&job->lock);
        is_over = job->handed_out == TASKS;
        if (!is_over) {
            job->handed_out++;
            budget_begin(&task);
        }
        pthread_mutex_unlock(&job->lock);
        if (is_over)
            break;
        if (stage_run(run, job->stage) == TUNDISH_OK)
            atomic_fetch_add(&job->made, 1);
        scratch_reset(run->input.scratch);
        budget_end(&task);
    }
    stage_run_close(run);
    return NULL;
}

/* How many tasks could be made. No more was held than there is, and `peak_min` at some time. */
static uint32_t
run_threads(struct job *job, uint64_t peak_min)
{
    pthread_t threads[THREADS];

    job->budget = budget_open(BUDGET, THREADS, "memory_limit");
    pthread_mutex_init(&job->lock, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, job), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(budget_peak(job->budget), peak_min, BUDGET);
    budget_close(job->budget);
    pthread_mutex_destroy(&job->lock);
    return job->made;
}

/* Each batch fits, two do not. */
static void
threads_unpack_texts_within_their_budget(void **state)
{
    struct job job = { .stage = "decode_compressed: {compression_type: GZIP}" };

    (void)state;
    for (int i = 0; i < ROWS; i++)
        job.rows[i] = zeros(MIB + MIB / 4);
    assert_int_equal(run_threads(&job, ROWS * (MIB + MIB / 4)), TASKS);
}

static void
threads_take_no_text_that_becomes_too_large(void **state)
{
    struct job job = { .stage = "decode_compressed: {compression_type: GZIP}" };

    (void)state;
    for (int i = 0; i < ROWS; i++)
        job.rows[i] = zeros(2 * MIB);
    assert_int_equal(run_threads(&job, 4 * MIB), 0);
}

static void
what_is_too_large_is_said_with_the_arithmetic(void **state)
{
    struct byte_view rows[] = { zeros(2 * MIB), zeros(2 * MIB), zeros(2 * MIB), zeros(64 * MIB) };
    struct budget_task task = { .budget = budget_open(BUDGET, THREADS, "memory_limit") };
    struct stage_run *run = rows_of(rows, 3, &task);

    (void)state;
    assert_int_equal(stage_run(run, "decode_compressed: {compression_type: GZIP}"),
                     TUNDISH_E_MEMORY);
    assert_non_null(strstr(run->text, "the decompressed texts of 3 rows exceed 5242880 bytes"));
    stage_run_close(run);
    /* One of them alone is its row's fault. */
    run = rows_of(rows + 2, 2, &task);
    assert_int_equal(stage_run(run, "decode_compressed: {compression_type: GZIP}"), TUNDISH_E_DATA);
    assert_non_null(strstr(run->text, "the decompressed text exceeds the 5242880 bytes"));
    assert_int_equal(run->errors.bad_count, 1);
    stage_run_close(run);
    assert_in_range(budget_peak(task.budget), 1, BUDGET);
    budget_close(task.budget);
}

/* A text whose end says a size that it has not, and one that ends too soon: the others are made. */
static void
ends_that_lie_cost_their_rows_alone(void **state)
{
    struct byte_view whole = zeros(MIB);
    uint8_t lie[4096];
    struct byte_view rows[3];
    struct budget_task task = { .budget = budget_open(BUDGET, THREADS, "memory_limit") };
    struct stage_run *run;

    (void)state;
    must(whole.size < sizeof lie);
    memcpy(lie, whole.data, whole.size);
    lie[whole.size - 4] ^= 1;
    rows[0] = bytes_view(lie, whole.size);
    rows[1] = bytes_view(whole.data, whole.size - 9);
    rows[2] = whole;
    run = rows_of(rows, 3, &task);
    assert_int_equal(stage_run(run, "decode_compressed: {compression_type: GZIP}"), TUNDISH_E_DATA);
    assert_int_equal(run->errors.bad_count, 2);
    assert_int_equal(((const struct byte_view *)run->outputs[0].values)[2].size, MIB);
    stage_run_close(run);
    budget_close(task.budget);
}

/* A BMP of one colour. */
static struct byte_view
picture(uint32_t width, uint32_t height)
{
    uint32_t size = 54 + height * width * 3;
    uint8_t *bytes = tnd_zalloc(size, 1);
    const uint32_t header[] = { size, 0, 54, 40, width, height };
    struct byte_view view;

    must(width % 4 == 0);
    memcpy(bytes, "BM", 2);
    memcpy(bytes + 2, header, sizeof header);
    bytes[26] = 1;
    bytes[28] = 24;
    view = bytes_view(bytes, size);
    free(bytes);
    return view;
}

static void
threads_decode_pictures_within_their_budget(void **state)
{
    struct job job = { .stage = "decode_image: {expand_animations: false, channels: 3}" };

    (void)state;
    for (int i = 0; i < ROWS; i++)
        job.rows[i] = picture(400, 600);
    assert_int_equal(run_threads(&job, ROWS * 400 * 600 * 3), TASKS);
}

static void
pictures_that_are_too_large_are_said_with_the_arithmetic(void **state)
{
    const char *stage = "decode_image: {expand_animations: false, channels: 3}";
    struct byte_view rows[] = { picture(600, 600), picture(600, 600), picture(600, 600),
                                picture(600, 600), picture(1000, 1000) };
    struct budget_task task = { .budget = budget_open(BUDGET, THREADS, "memory_limit") };
    struct stage_run *run = rows_of(rows, 4, &task);

    (void)state;
    assert_int_equal(stage_run(run, stage), TUNDISH_E_MEMORY);
    assert_non_null(strstr(
        run->text,
        "decode_image: 6480000 more bytes, besides the 0 of this batch, exceed the 5242880"));
    stage_run_close(run);
    run = rows_of(rows + 3, 2, &task);
    assert_int_equal(stage_run(run, stage), TUNDISH_E_DATA);
    assert_non_null(
        strstr(run->text, "the image needs 9000000 bytes, but memory_limit leaves 5242880"));
    stage_run_close(run);
    budget_close(task.budget);
}

TEST_FILE(test_unpacked)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_texts_are_whole),
        cmocka_unit_test(threads_unpack_texts_within_their_budget),
        cmocka_unit_test(threads_take_no_text_that_becomes_too_large),
        cmocka_unit_test(what_is_too_large_is_said_with_the_arithmetic),
        cmocka_unit_test(ends_that_lie_cost_their_rows_alone),
        cmocka_unit_test(threads_decode_pictures_within_their_budget),
        cmocka_unit_test(pictures_that_are_too_large_are_said_with_the_arithmetic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
