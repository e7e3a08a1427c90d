/* test_cuda.c - libtundish_cuda against the stand-in for a driver, or a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/compare.h"
#include "cuda/expand.h"
#include "cuda/fake_cuda.h"
#include "rig/numbers.h"

#define PATIENCE (INT64_C(300) * 1000000000)
enum { ROWS = 64, STEPS = 12 };

static struct trainer_device device;
static fake_cuda_alive_call *alive; /* NULL: a real driver */
static fake_cuda_calls_call *calls;
static fake_cuda_fail_at_call *fail_at;
static fake_cuda_stranger_call *stranger;
static fake_cuda_register_call *registers;
static fake_cuda_registered_call *registered;
static fake_cuda_late_call *late;

/* Of the driver's calls those that only these tests make. */
enum { CAPTURE_GLOBAL = 0 };
static cu_result (*begin_capture)(cu_stream, int);
static cu_result (*end_capture)(cu_stream, void **ret_graph);
static cu_result (*destroy_graph)(void *);

static int
find_stand_in(void **state)
{
    void *found[] = {
        trainer_device_symbol(FAKE_CUDA_ALIVE),
        trainer_device_symbol(FAKE_CUDA_CALLS),
        trainer_device_symbol(FAKE_CUDA_FAIL_AT),
        trainer_device_symbol(FAKE_CUDA_STRANGER),
        trainer_device_symbol(FAKE_CUDA_REGISTER),
        trainer_device_symbol(FAKE_CUDA_REGISTERED),
        trainer_device_symbol(FAKE_CUDA_LATE),
        trainer_device_symbol("cuStreamBeginCapture_v2"),
        trainer_device_symbol("cuStreamEndCapture"),
        trainer_device_symbol("cuGraphDestroy"),
    };

    (void)state;
    memcpy(&alive, &found[0], sizeof alive);
    memcpy(&calls, &found[1], sizeof calls);
    memcpy(&fail_at, &found[2], sizeof fail_at);
    memcpy(&stranger, &found[3], sizeof stranger);
    memcpy(&registers, &found[4], sizeof registers);
    memcpy(&registered, &found[5], sizeof registered);
    memcpy(&late, &found[6], sizeof late);
    memcpy(&begin_capture, &found[7], sizeof begin_capture);
    memcpy(&end_capture, &found[8], sizeof end_capture);
    memcpy(&destroy_graph, &found[9], sizeof destroy_graph);
    trainer_device_open(&device);
    return 0;
}

static int
leave_device(void **state)
{
    (void)state;
    trainer_device_close(&device);
    return 0;
}

/* A server of numbers, and a host's reader of the same batches. */
struct job {
    struct numbers *numbers;
    tundish_reader *host, *reader;
    tundish_cuda *cuda;
};

static tundish_reader *
open_reader(const struct job *job, const char *group, const char *token)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    options.server = numbers_path(job->numbers);
    options.group = group;
    options.place_token = token;
    options.server_timeout_ns = PATIENCE;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

static void
open_job_in(struct job *ret_job, const struct numbers_options *numbers, uint32_t depth,
            tundish_cuda_mode mode)
{
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;

    *ret_job = (struct job){ 0 };
    options.depth = depth;
    options.mode = mode;
    numbers_open(numbers, &ret_job->numbers);
    ret_job->host = open_reader(ret_job, "host", NULL);
    ret_job->reader = open_reader(ret_job, "device", NULL);
    numbers_run(ret_job->numbers);
    if (tundish_cuda_open(ret_job->reader, &options, &ret_job->cuda) != TUNDISH_OK)
        fail_msg("%s", tundish_cuda_last_error());
}

static void
open_job(struct job *ret_job, const struct numbers_options *numbers, uint32_t depth)
{
    open_job_in(ret_job, numbers, depth, TUNDISH_CUDA_AUTO);
}

static void
close_job(struct job *job)
{
    tundish_cuda_close(job->cuda);
    tundish_close(job->reader);
    tundish_close(job->host);
    numbers_close(job->numbers);
}

static struct numbers_options
some_numbers(void)
{
    return (struct numbers_options){
        .steps = STEPS, .epochs = 2, .rows = ROWS, .idle = true, .narrow = true, .slots = 8
    };
}

/* The next batch of the device, which is the host's next one. */
static const tundish_cuda_batch *
take_alike(struct job *job)
{
    const tundish_cuda_batch *made = NULL;
    const tundish_batch *batch = NULL;

    /* The device's reader has a thread of its own, so it is the host's that must not fall back. */
    if (tundish_next(job->host, PATIENCE, &batch) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    if (tundish_cuda_next(job->cuda, PATIENCE, &made) != TUNDISH_OK)
        fail_msg("%s", tundish_cuda_last_error());
    assert_int_equal(tundish_cuda_wait(job->cuda, made, device.stream), TUNDISH_OK);
    assert_true(compare_batches(&device, job->host, batch, made));
    tundish_release(job->host, batch);
    return made;
}

static void
step(struct job *job)
{
    tundish_cuda_release(job->cuda, take_alike(job), device.stream);
}

/* The device's stream does not wait, which would make up for a missing wait of the library's. */
static void
step_quietly(struct job *job)
{
    const tundish_cuda_batch *made = NULL;
    const tundish_batch *batch = NULL;

    assert_int_equal(tundish_next(job->host, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(tundish_cuda_next(job->cuda, PATIENCE, &made), TUNDISH_OK);
    tundish_release(job->host, batch);
    tundish_cuda_release(job->cuda, made, TUNDISH_CUDA_NO_STREAM);
}

static tundish_status
outcome(struct job *job)
{
    const tundish_cuda_batch *batch;

    return tundish_cuda_next(job->cuda, PATIENCE, &batch);
}

static void
read_epochs(const struct numbers_options *numbers, uint32_t depth)
{
    struct job job;
    const tundish_batch *batch;

    open_job(&job, numbers, depth);
    for (uint64_t epoch = 0; epoch < numbers->epochs; epoch++) {
        for (uint64_t i = 0; i < numbers->steps; i++)
            step(&job);
        assert_int_equal(tundish_next(job.host, PATIENCE, &batch), TUNDISH_END);
        assert_int_equal(outcome(&job), TUNDISH_END);
    }
    assert_int_equal(outcome(&job), TUNDISH_END_OF_STREAM);
    assert_int_equal(outcome(&job), TUNDISH_END_OF_STREAM);
    close_job(&job);
}

static void
every_batch_is_the_hosts_bit_by_bit(void **state)
{
    struct numbers_options numbers = some_numbers();

    (void)state;
    for (uint32_t depth = 1; depth <= 3; depth++)
        read_epochs(&numbers, depth);
    numbers.narrow = false;
    read_epochs(&numbers, 2);
}

/* Of values that are NaN, and of one that becomes it: the bits that this processor makes. */
static void
nan_has_the_hosts_bits(void **state)
{
    static const uint32_t bits[] = { 0x7fc00000, 0xffc00000, 0x7f812345, 0xff9abcde, 0x7f800000 };
    static const uint64_t wide[] = { 0x7ff8000000000000, 0xfff8000000000000, 0x7ff0123456789abc,
                                     0xfff4fedcba987654, 0x7ff0000000000000 };

    (void)state;
    for (uint64_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        struct expansion job = { .from = (uint64_t)(uintptr_t)bits, .from_dtype = TUNDISH_FLOAT32 };
        volatile float in, factor = i == 4 ? 0 : 2, made;
        volatile double wide_in, made_wide;
        float found;
        double found_wide;

        memcpy((void *)&in, &bits[i], sizeof in);
        made = in * factor + 1;
        found = expand_nan_float(&job, i);
        assert_memory_equal(&found, (const void *)&made, sizeof found);
        made_wide = (double)in * factor + 1;
        found_wide = expand_nan_double(&job, i);
        assert_memory_equal(&found_wide, (const void *)&made_wide, sizeof found_wide);
        job.from = (uint64_t)(uintptr_t)wide;
        job.from_dtype = TUNDISH_FLOAT64;
        memcpy((void *)&wide_in, &wide[i], sizeof wide_in);
        made_wide = wide_in * factor + 1;
        found_wide = expand_nan_double(&job, i);
        assert_memory_equal(&found_wide, (const void *)&made_wide, sizeof found_wide);
        made = (float)wide_in * factor + 1;
        found = expand_nan_float(&job, i);
        assert_memory_equal(&found, (const void *)&made, sizeof found);
    }
}

static void
batches_of_changing_sizes_find_room(void **state)
{
    struct numbers_options numbers = some_numbers();

    (void)state;
    numbers.wide_step = 5;
    numbers.max_batch_bytes = 1 << 20;
    read_epochs(&numbers, 2);
}

static void
held_batches_keep_their_memory(void **state)
{
    struct numbers_options numbers = some_numbers();
    const tundish_cuda_batch *first, *second, *third;
    const tundish_batch *host;
    tundish_reader *again;
    struct job job;

    (void)state;
    open_job(&job, &numbers, 2);
    again = open_reader(&job, "again", NULL);
    first = take_alike(&job);
    second = take_alike(&job);
    assert_int_equal(tundish_cuda_next(job.cuda, PATIENCE, &third), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_cuda_last_error(), "2 batches are held"));
    tundish_cuda_release(job.cuda, second, device.stream);
    step(&job);
    step(&job);
    assert_int_equal(tundish_next(again, PATIENCE, &host), TUNDISH_OK);
    assert_true(compare_batches(&device, again, host, first));
    tundish_cuda_release(job.cuda, first, device.stream);
    tundish_close(again);
    close_job(&job);
}

static void
kept_batches_make_room_and_outlive_the_close(void **state)
{
    enum { KEPT = 5 };
    struct numbers_options numbers = some_numbers();
    const tundish_cuda_batch *kept[KEPT];
    const tundish_batch *host;
    tundish_reader *again;
    struct job job;
    int before = alive != NULL ? alive() : 0;

    (void)state;
    open_job(&job, &numbers, 1);
    again = open_reader(&job, "again", NULL);
    for (int i = 0; i < KEPT; i++) {
        kept[i] = take_alike(&job);
        assert_int_equal(tundish_cuda_keep(job.cuda, kept[i]), TUNDISH_OK);
        assert_int_equal(tundish_cuda_keep(job.cuda, kept[i]), TUNDISH_OK);
    }
    /* Memory that came back serves for the next that is kept. */
    tundish_cuda_release(job.cuda, kept[KEPT - 1], device.stream);
    kept[KEPT - 1] = take_alike(&job);
    assert_int_equal(tundish_cuda_keep(job.cuda, kept[KEPT - 1]), TUNDISH_OK);
    tundish_cuda_release(job.cuda, kept[KEPT - 1], device.stream);
    assert_int_equal(tundish_cuda_keep(job.cuda, NULL), TUNDISH_E_ARGUMENT);
    step(&job);
    tundish_cuda_close(job.cuda);
    for (int i = 0; i < KEPT - 1; i++) {
        assert_int_equal(tundish_next(again, PATIENCE, &host), TUNDISH_OK);
        assert_true(compare_batches(&device, again, host, kept[i]));
        tundish_cuda_release(job.cuda, kept[i], device.stream);
        tundish_release(again, host);
    }
    if (alive != NULL)
        assert_int_equal(alive(), before);
    job.cuda = NULL;
    tundish_close(again);
    close_job(&job);
}

enum { STREAMS = 6, LATE = 20, REGIONS = 3 };

/* Several streams read a batch late, and its memory comes round meanwhile: each copy is right all
 * the same. `is_told`: the library is told of each stream; else that it may be any. */
static void
use_late(struct job *job, const cu_stream *streams, int count, bool is_told)
{
    const struct cuda_driver *driver = device.driver;
    const tundish_cuda_batch *batch;
    const tundish_cuda_tensor *made;
    const tundish_tensor *tensor;
    const tundish_batch *host;
    cu_address copies[STREAMS];
    uint64_t wanted[ROWS], found[ROWS];
    cu_event event;

    assert_int_equal(driver->event_create(&event, CU_EVENT_DISABLE_TIMING), CU_SUCCESS);
    assert_int_equal(tundish_next(job->host, PATIENCE, &host), TUNDISH_OK);
    assert_int_equal(tundish_tensor_at(host, 0, &tensor), TUNDISH_OK);
    memcpy(wanted, tensor->data, tensor->data_bytes);
    assert_int_equal(tundish_cuda_next(job->cuda, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(tundish_cuda_tensor_at(batch, 0, &made), TUNDISH_OK);
    for (int k = 0; k < count; k++) {
        assert_int_equal(driver->memory_alloc(&copies[k], sizeof found), CU_SUCCESS);
        assert_int_equal(tundish_cuda_wait(job->cuda, batch, streams[k]), TUNDISH_OK);
        for (int i = 0; i < LATE * (k + 1); i++)
            driver->event_record(event, streams[k]);
        driver->copy_on_device(copies[k], made->data, made->data_bytes, streams[k]);
        if (is_told)
            tundish_cuda_used(job->cuda, batch, streams[k]);
    }
    tundish_cuda_release(job->cuda, batch,
                         is_told ? TUNDISH_CUDA_NO_STREAM : TUNDISH_CUDA_ANY_STREAM);
    for (int i = 0; i < 2 * REGIONS; i++)
        step_quietly(job);
    for (int k = 0; k < count; k++) {
        assert_int_equal(driver->stream_synchronize(streams[k]), CU_SUCCESS);
        assert_int_equal(device.copy_to_host(found, copies[k], tensor->data_bytes), CU_SUCCESS);
        assert_memory_equal(found, wanted, tensor->data_bytes);
        driver->memory_free(copies[k]);
    }
    driver->event_destroy(event);
    tundish_release(job->host, host);
}

static void
memory_is_used_again_only_after_all_streams(void **state)
{
    struct numbers_options numbers = some_numbers();
    cu_stream streams[STREAMS];
    struct job job;

    (void)state;
    numbers.steps = 100;
    open_job(&job, &numbers, 1);
    for (int k = 0; k < STREAMS; k++)
        device.driver->stream_create(&streams[k], CU_STREAM_NON_BLOCKING, 0);
    use_late(&job, streams, 2, true);
    use_late(&job, streams, STREAMS, true); /* more than there are events for */
    use_late(&job, streams, 2, false);
    for (int k = 0; k < STREAMS; k++)
        device.driver->stream_destroy(streams[k]);
    close_job(&job);
}

static void
a_place_is_after_the_last_batch_that_was_returned(void **state)
{
    struct numbers_options numbers = some_numbers();
    const tundish_batch *host;
    char token[4096];
    size_t bytes;
    struct job job;
    tundish_reader *resumed;

    (void)state;
    open_job(&job, &numbers, 3);
    for (int i = 0; i < 5; i++)
        step(&job);
    assert_int_equal(tundish_cuda_place_token(job.cuda, token, sizeof token, &bytes), TUNDISH_OK);
    assert_int_equal(bytes, strlen(token) + 1);
    resumed = open_reader(&job, "resumed", token);
    assert_int_equal(tundish_next(resumed, PATIENCE, &host), TUNDISH_OK);
    assert_int_equal(host->step, 5);
    tundish_close(resumed);
    close_job(&job);
}

/* Wherever an epoch is left, the next one begins at its first step. */
static void
restart_begins_the_next_epoch(void **state)
{
    struct numbers_options numbers = some_numbers();

    (void)state;
    for (int left_after = 0; left_after <= STEPS; left_after++) {
        const tundish_cuda_batch *made;
        struct job job;

        open_job(&job, &numbers, 2);
        for (int i = 0; i < left_after; i++)
            step(&job);
        assert_int_equal(tundish_cuda_restart(job.cuda), TUNDISH_OK);
        assert_int_equal(tundish_restart(job.host), TUNDISH_OK);
        made = take_alike(&job);
        assert_int_equal(made->epoch, left_after == 0 ? 0 : 1);
        assert_int_equal(made->step, 0);
        tundish_cuda_release(job.cuda, made, device.stream);
        close_job(&job);
    }
}

static void
fixed_addresses_are_filled(void **state)
{
    struct numbers_options numbers = some_numbers();
    struct job job;
    cu_address words = 0;
    uint64_t found[ROWS];

    (void)state;
    open_job(&job, &numbers, 2);
    assert_int_equal(device.driver->memory_alloc(&words, sizeof found), CU_SUCCESS);
    for (int i = 0; i < STEPS; i++) {
        const tundish_cuda_address columns[4] = { words };
        uint64_t capacities[4] = { 8 };
        const tundish_cuda_batch *made;
        const tundish_tensor *tensor;
        const tundish_batch *host;

        assert_int_equal(tundish_next(job.host, PATIENCE, &host), TUNDISH_OK);
        assert_int_equal(tundish_tensor_at(host, 0, &tensor), TUNDISH_OK);
        if (tensor->element_count > 1)
            assert_int_equal(tundish_cuda_next_into(job.cuda, PATIENCE, columns, capacities,
                                                    device.stream, &made),
                             TUNDISH_E_ARGUMENT);
        capacities[0] = sizeof found;
        assert_int_equal(
            tundish_cuda_next_into(job.cuda, PATIENCE, columns, capacities, device.stream, &made),
            TUNDISH_OK);
        assert_int_equal(made->step, i);
        assert_int_equal(device.driver->stream_synchronize(device.stream), CU_SUCCESS);
        assert_int_equal(device.copy_to_host(found, words, tensor->data_bytes), CU_SUCCESS);
        assert_memory_equal(found, tensor->data, tensor->data_bytes);
        tundish_release(job.host, host);
    }
    assert_int_equal(outcome(&job), TUNDISH_END);
    device.driver->memory_free(words);
    close_job(&job);
}

static void
a_batch_over_the_limit_is_refused(void **state)
{
    struct numbers_options numbers = some_numbers();
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    struct job job = { 0 };

    (void)state;
    numbers_open(&numbers, &job.numbers);
    job.reader = open_reader(&job, "device", NULL);
    numbers_run(job.numbers);
    options.batch_bytes = 256;
    assert_int_equal(tundish_cuda_open(job.reader, &options, &job.cuda), TUNDISH_OK);
    assert_int_equal(outcome(&job), TUNDISH_E_MEMORY);
    assert_non_null(strstr(tundish_cuda_last_error(), "but batch_bytes is 256"));
    close_job(&job);
}

static void
wrong_calls_are_refused(void **state)
{
    struct numbers_options numbers = some_numbers();
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    const tundish_cuda_tensor *tensor;
    const tundish_cuda_batch *batch;
    tundish_cuda *other;
    struct job job;
    pid_t child;
    int ended;

    (void)state;
    open_job(&job, &numbers, 2);
    batch = take_alike(&job);
    assert_int_equal(tundish_cuda_tensor_named(batch, "no", &tensor), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_cuda_tensor_at(batch, 4, &tensor), TUNDISH_E_ARGUMENT);
    assert_int_equal(tundish_cuda_wait(job.cuda, NULL, device.stream), TUNDISH_E_ARGUMENT);
    if (stranger != NULL)
        assert_int_equal(tundish_cuda_wait(job.cuda, batch, stranger()), TUNDISH_E_ARGUMENT);
    child = fork();
    if (child == 0) {
        bool is_refused = tundish_cuda_next(job.cuda, 0, &batch) == TUNDISH_E_ARGUMENT;

        tundish_cuda_close(job.cuda);
        _exit(is_refused ? 0 : 1);
    }
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
    /* A release into a stream that is not ours is made good by waiting. */
    tundish_cuda_release(job.cuda, batch, stranger != NULL ? stranger() : device.stream);
    tundish_cuda_release(job.cuda, NULL, device.stream);
    for (int i = 1; i < STEPS; i++)
        step(&job);
    tundish_cuda_close(job.cuda);
    job.cuda = NULL;
    options.device = 1000;
    assert_int_equal(tundish_cuda_open(job.reader, &options, &other), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_cuda_last_error(), "there is no device 1000"));
    close_job(&job);
}

static void
capture(cu_stream stream)
{
    assert_int_equal(begin_capture(stream, CAPTURE_GLOBAL), CU_SUCCESS);
}

/* Nothing broke it. */
static void
end_good_capture(cu_stream stream)
{
    void *graph;

    assert_int_equal(end_capture(stream, &graph), CU_SUCCESS);
    assert_int_equal(destroy_graph(graph), CU_SUCCESS);
}

static void
another_streams_capture_is_not_spoiled(void **state)
{
    struct numbers_options numbers = some_numbers();
    cu_stream stream;
    struct job job;

    (void)state;
    numbers.wide_step = 3;
    numbers.max_batch_bytes = 1 << 20;
    open_job(&job, &numbers, 2);
    device.driver->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    for (int i = 0; i < STEPS; i++) {
        const tundish_cuda_batch *made = take_alike(&job);

        capture(stream);
        usleep(2000); /* the thread reads on meanwhile */
        tundish_cuda_release(job.cuda, made, device.stream);
        end_good_capture(stream);
    }
    device.driver->stream_destroy(stream);
    close_job(&job);
}

/* In a capture a batch is taken, which no stream may wait for there, and given back. */
static void
release_in_capture(struct job *job, cu_stream stream)
{
    const tundish_cuda_batch *made;
    const tundish_batch *batch;

    assert_int_equal(tundish_next(job->host, PATIENCE, &batch), TUNDISH_OK);
    assert_int_equal(tundish_cuda_next(job->cuda, PATIENCE, &made), TUNDISH_OK);
    assert_int_equal(tundish_cuda_wait(job->cuda, made, stream), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_cuda_last_error(), "is being captured"));
    tundish_release(job->host, batch);
    tundish_cuda_release(job->cuda, made, stream);
}

/* Neither the captures nor the reading break. `stream` is the captured one, or the default one,
 * which waits for that. */
static void
read_beside_capture(cu_stream captured, cu_stream stream)
{
    const tundish_cuda_address columns[4] = { 0 };
    const uint64_t capacities[4] = { 0 };
    struct numbers_options numbers = some_numbers();
    const tundish_cuda_batch *first, *kept, *next;
    const tundish_cuda_tensor *made;
    uint64_t wanted[ROWS], found[ROWS];
    struct job job;
    int i;

    open_job(&job, &numbers, 2);
    first = take_alike(&job);
    assert_int_equal(tundish_cuda_tensor_at(first, 0, &made), TUNDISH_OK);
    assert_int_equal(device.copy_to_host(wanted, made->data, made->data_bytes), CU_SUCCESS);
    kept = take_alike(&job);
    assert_int_equal(tundish_cuda_keep(job.cuda, kept), TUNDISH_OK);
    capture(captured);
    tundish_cuda_used(job.cuda, first, stream);
    tundish_cuda_release(job.cuda, first, TUNDISH_CUDA_NO_STREAM);
    tundish_cuda_release(job.cuda, kept, stream);
    for (i = 2; i < 2 + 2 * REGIONS; i++)
        release_in_capture(&job, stream);
    assert_int_equal(tundish_cuda_next_into(job.cuda, PATIENCE, columns, capacities, stream, &next),
                     TUNDISH_E_ARGUMENT);
    end_good_capture(captured);
    for (; i < STEPS; i++)
        step(&job);
    /* What came back in the capture was not used again. */
    assert_int_equal(device.copy_to_host(found, made->data, made->data_bytes), CU_SUCCESS);
    assert_memory_equal(found, wanted, made->data_bytes);
    assert_int_equal(outcome(&job), TUNDISH_END);
    close_job(&job);
}

static void
batches_are_not_for_a_stream_that_is_captured(void **state)
{
    cu_stream blocking;
    int before = alive != NULL ? alive() : 0;

    (void)state;
    device.driver->stream_create(&blocking, 0, 0);
    read_beside_capture(device.stream, device.stream);
    read_beside_capture(blocking, blocking);
    read_beside_capture(blocking, NULL);
    device.driver->stream_destroy(blocking);
    if (alive != NULL)
        assert_int_equal(alive(), before);
}

/* Batches of a size that is worth a copy of its own: their words alone have more than 64 KiB. */
static struct numbers_options
large_numbers(uint32_t slots)
{
    return (struct numbers_options){ .steps = STEPS,
                                     .epochs = 2,
                                     .rows = 20000,
                                     .idle = true,
                                     .slots = slots,
                                     .arena_bytes = 16 << 20,
                                     .max_batch_bytes = 4 << 20 };
}

/* As the server is told. The words are looked for in its page, so wait until there are any. */
static struct device_stats
told_of_device(const struct job *job)
{
    struct feed_reader_stats lines[4] = { 0 };

    for (;;) {
        uint32_t count = feed_stats(numbers_feed(job->numbers), lines, 4);

        for (uint32_t i = 0; i < count && i < 4; i++)
            if (strcmp(lines[i].group, "device") == 0 && lines[i].device.mode != 0)
                return lines[i].device;
        usleep(1000);
    }
}

static size_t
bytes_registered(void)
{
    size_t bytes, copied;

    registered(&bytes, &copied);
    return bytes;
}

/* Two epochs are alike on the host and on the device. Returns how many bytes came out of registered
 * memory. */
static size_t
read_memory(bool is_sealed, uint32_t slots, tundish_cuda_mode mode, tundish_device_why *ret_why)
{
    struct numbers_options numbers = large_numbers(slots);
    size_t bytes, before, after;
    const tundish_batch *batch;
    struct device_stats told;
    struct job job;

    numbers.memfd = is_sealed;
    registered(&bytes, &before);
    assert_int_equal(bytes, 0);
    open_job_in(&job, &numbers, 2, mode);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < STEPS; i++)
            step(&job);
        assert_int_equal(tundish_next(job.host, PATIENCE, &batch), TUNDISH_END);
        assert_int_equal(outcome(&job), TUNDISH_END);
    }
    assert_int_equal(outcome(&job), TUNDISH_END_OF_STREAM);
    told = told_of_device(&job);
    *ret_why = (tundish_device_why)told.why;
    registered(&bytes, &after);
    assert_int_equal(told.mode, bytes > 0 ? TUNDISH_DEVICE_PIN : TUNDISH_DEVICE_COPY);
    assert_true(told.copied_bytes > 2 * STEPS * (64 << 10) && told.copied_bytes >= after - before);
    /* The stand-in says a millisecond for each. */
    assert_true(told.copy_ns >= 1000000 && told.kernel_ns >= 1000000);
    close_job(&job);
    assert_int_equal(bytes_registered(), 0);
    return after - before;
}

static size_t
read_large(uint32_t slots, tundish_cuda_mode mode, tundish_device_why *ret_why)
{
    return read_memory(false, slots, mode, ret_why);
}

static void
pinned_batches_come_out_of_the_servers_memory(void **state)
{
    tundish_device_why why;

    (void)state;
    if (registers == NULL)
        skip();
    registers(FAKE_CUDA_READS_ONLY);
    for (uint32_t slots = 3; slots < 6; slots++) {
        assert_true(read_large(slots, TUNDISH_CUDA_PIN, &why) > 0);
        assert_int_equal(why, TUNDISH_DEVICE_ASKED);
        assert_true(read_large(slots, TUNDISH_CUDA_AUTO, &why) > 0);
        assert_int_equal(why, TUNDISH_DEVICE_REGISTERED);
    }
    assert_int_equal(read_large(4, TUNDISH_CUDA_COPY, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_ASKED);
    registers(FAKE_CUDA_NEEDS_WRITING);
}

/* The server fills slots anew as fast as the device's reader gives them back: the host reads the
 * same from another server. */
static void
slots_are_given_back_after_the_device_has_read_them(void **state)
{
    struct numbers_options numbers = large_numbers(3);
    struct job device_job, host_job;

    (void)state;
    if (registers == NULL)
        skip();
    registers(FAKE_CUDA_READS_ONLY);
    late(20000);
    numbers.rows = 10000;
    numbers.arena_bytes = 3 << 20;
    for (numbers.slots = 3; numbers.slots < 5; numbers.slots++) {
        device_job = host_job = (struct job){ 0 };
        numbers_open(&numbers, &host_job.numbers);
        host_job.host = open_reader(&host_job, "host", NULL);
        numbers_run(host_job.numbers);
        numbers_open(&numbers, &device_job.numbers);
        device_job.reader = open_reader(&device_job, "device", NULL);
        numbers_run(device_job.numbers);
        assert_int_equal(tundish_cuda_open(device_job.reader, NULL, &device_job.cuda), TUNDISH_OK);
        device_job.host = host_job.host;
        host_job.host = NULL;
        for (int i = 0; i < STEPS; i++)
            step(&device_job);
        assert_true(bytes_registered() > 0);
        host_job.host = device_job.host;
        device_job.host = NULL;
        close_job(&device_job);
        close_job(&host_job);
    }
    late(0);
    registers(FAKE_CUDA_NEEDS_WRITING);
}

static void
memory_that_cannot_be_registered_is_copied(void **state)
{
    tundish_device_why why;

    (void)state;
    if (registers == NULL)
        skip();
    registers(FAKE_CUDA_NEEDS_WRITING);
    assert_int_equal(read_large(4, TUNDISH_CUDA_AUTO, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_UNSUPPORTED);
    assert_int_equal(read_memory(true, 4, TUNDISH_CUDA_PIN, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_REFUSED);
    registers(FAKE_CUDA_REFUSES);
    assert_int_equal(read_large(4, TUNDISH_CUDA_AUTO, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_REFUSED);
    assert_int_equal(read_large(4, TUNDISH_CUDA_PIN, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_REFUSED);
    registers(FAKE_CUDA_NEEDS_WRITING);
}

/* Mappings of the server's memory, most of which are its own, that this process may write to. */
static int
count_writable(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], writes = '-';
    int count = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        count += sscanf(line, "%*s %*c%c", &writes) == 1 && writes == 'w' &&
                 strstr(line, "/dev/shm/tundish") != NULL;
    fclose(maps);
    return count;
}

/* Most drivers take only memory that may be written to. */
static void
memory_may_be_written_to_until_it_is_registered(void **state)
{
    struct numbers_options numbers = large_numbers(4);
    tundish_device_why why;
    struct job job;
    int before;

    (void)state;
    if (registers == NULL)
        skip();
    registers(FAKE_CUDA_NEEDS_WRITING);
    assert_true(read_large(4, TUNDISH_CUDA_PIN, &why) > 0);
    assert_int_equal(why, TUNDISH_DEVICE_ASKED);
    open_job_in(&job, &numbers, 2, TUNDISH_CUDA_COPY);
    step(&job);
    before = count_writable();
    assert_true(before > 0);
    close_job(&job);
    open_job_in(&job, &numbers, 2, TUNDISH_CUDA_PIN);
    step(&job);
    assert_true(bytes_registered() > 0);
    assert_int_equal(count_writable(), before);
    close_job(&job);
}

/* The library calls this in place of the C library's mprotect. */
static bool refuses_to_protect;
int __real_mprotect(void *bytes, size_t byte_count, int protection);
int __wrap_mprotect(void *bytes, size_t byte_count, int protection);

int
__wrap_mprotect(void *bytes, size_t byte_count, int protection)
{
    if (!refuses_to_protect)
        return __real_mprotect(bytes, byte_count, protection);
    errno = ENOMEM;
    return -1;
}

static void
memory_that_stays_writable_is_copied(void **state)
{
    tundish_device_why why;

    (void)state;
    if (registers == NULL)
        skip();
    registers(FAKE_CUDA_NEEDS_WRITING);
    refuses_to_protect = true;
    assert_int_equal(read_large(4, TUNDISH_CUDA_PIN, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_REFUSED);
    refuses_to_protect = false;
}

/* The registration returns when all is over, and takes back what it did. */
static void
a_registration_that_does_not_return_is_given_up(void **state)
{
    tundish_device_why why;
    int before;

    (void)state;
    if (registers == NULL)
        skip();
    before = alive();
    registers(FAKE_CUDA_HANGS);
    assert_int_equal(read_large(4, TUNDISH_CUDA_AUTO, &why), 0);
    assert_int_equal(why, TUNDISH_DEVICE_SLOW);
    assert_int_equal(alive(), before + 1); /* its thread's context */
    registers(FAKE_CUDA_READS_ONLY);
    while (alive() != before)
        usleep(1000);
    assert_int_equal(bytes_registered(), 0);
    registers(FAKE_CUDA_NEEDS_WRITING);
}

static tundish_status
read_one(tundish_reader *reader, const struct numbers_options *numbers)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(reader, PATIENCE, &batch);

    assert_true(status >= TUNDISH_OK);
    if (status != TUNDISH_OK)
        return status;
    assert_true(numbers_check(batch, 0, numbers->rows, 0));
    tundish_release(reader, batch);
    return status;
}

/* It is told; its slots went back when they were copied. */
static void
a_trainer_that_never_releases_is_told(void **state)
{
    struct numbers_options numbers = some_numbers();
    const tundish_cuda_batch *made;
    struct job job;
    tundish_status status = TUNDISH_OK;
    int before = alive != NULL ? alive() : 0;

    (void)state;
    open_job(&job, &numbers, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_cuda_next(job.cuda, PATIENCE, &made), TUNDISH_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tundish_cuda_next(job.cuda, PATIENCE, &made), TUNDISH_E_ARGUMENT);
        assert_non_null(strstr(tundish_cuda_last_error(), "release one first"));
    }
    tundish_cuda_close(job.cuda);
    job.cuda = NULL;
    if (alive != NULL)
        assert_int_equal(alive(), before);
    /* The reader is as it was: the host goes on with it, and no slot is lost to the other group. */
    while (status != TUNDISH_END_OF_STREAM) {
        (void)read_one(job.host, &numbers);
        status = read_one(job.reader, &numbers);
    }
    do
        status = read_one(job.host, &numbers);
    while (status != TUNDISH_END_OF_STREAM);
    close_job(&job);
}

/* One short job of which some call of the driver fails. Returns whether one did. */
static bool
fails_at(const char *symbol, int n, int is_lost, struct numbers_options numbers)
{
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    const tundish_batch *batch = NULL;
    struct job job = { 0 };
    tundish_status status;
    int before = alive();

    numbers_open(&numbers, &job.numbers);
    job.host = open_reader(&job, "host", NULL);
    job.reader = open_reader(&job, "device", NULL);
    numbers_run(job.numbers);
    fail_at(symbol, n, is_lost);
    status = tundish_cuda_open(job.reader, &options, &job.cuda);
    for (int i = 0; status >= TUNDISH_OK && i < 4; i++) {
        const tundish_cuda_batch *made;

        status = tundish_cuda_next(job.cuda, PATIENCE, &made);
        if (status == TUNDISH_OK) {
            status = tundish_cuda_wait(job.cuda, made, device.stream);
            tundish_cuda_release(job.cuda, made, device.stream);
        }
    }
    if (status < TUNDISH_OK) {
        assert_true(status == TUNDISH_E_SYSTEM || status == TUNDISH_E_ARGUMENT);
        assert_true(strlen(tundish_cuda_last_error()) > 10);
    }
    tundish_cuda_close(job.cuda);
    fail_at("any", 0, 0);
    device.driver->stream_synchronize(device.stream);
    assert_int_equal(alive(), before);
    assert_int_equal(tundish_next(job.host, PATIENCE, &batch), TUNDISH_OK);
    assert_true(numbers_check(batch, 0, numbers.rows, 0));
    job.cuda = NULL;
    close_job(&job);
    return status < TUNDISH_OK;
}

static void
any_call_may_fail_and_nothing_leaks(void **state)
{
    int n = 1, quiet = 0;

    (void)state;
    if (fail_at == NULL)
        skip();
    /* Until the calls of a whole job are past; some failures are made good without a word. */
    for (; quiet < 12 && n < 400; n++)
        quiet = fails_at("any", n, 0, some_numbers()) ? 0 : quiet + 1;
    assert_true(n > 40 && n < 400);
    registers(FAKE_CUDA_READS_ONLY);
    for (n = 1; n < 120; n++)
        fails_at("any", n, 0, large_numbers(4));
    registers(FAKE_CUDA_NEEDS_WRITING);
}

static void
a_device_may_be_lost_at_any_call(void **state)
{
    (void)state;
    if (fail_at == NULL)
        skip();
    for (int n = 1; n < 60; n += 3)
        fails_at("any", n, 1, some_numbers());
    registers(FAKE_CUDA_READS_ONLY);
    for (int n = 1; n < 120; n += 7)
        fails_at("any", n, 1, large_numbers(4));
    registers(FAKE_CUDA_NEEDS_WRITING);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_is_the_hosts_bit_by_bit),
        cmocka_unit_test(nan_has_the_hosts_bits),
        cmocka_unit_test(batches_of_changing_sizes_find_room),
        cmocka_unit_test(held_batches_keep_their_memory),
        cmocka_unit_test(kept_batches_make_room_and_outlive_the_close),
        cmocka_unit_test(memory_is_used_again_only_after_all_streams),
        cmocka_unit_test(a_place_is_after_the_last_batch_that_was_returned),
        cmocka_unit_test(restart_begins_the_next_epoch),
        cmocka_unit_test(fixed_addresses_are_filled),
        cmocka_unit_test(a_batch_over_the_limit_is_refused),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(another_streams_capture_is_not_spoiled),
        cmocka_unit_test(batches_are_not_for_a_stream_that_is_captured),
        cmocka_unit_test(pinned_batches_come_out_of_the_servers_memory),
        cmocka_unit_test(slots_are_given_back_after_the_device_has_read_them),
        cmocka_unit_test(memory_may_be_written_to_until_it_is_registered),
        cmocka_unit_test(memory_that_stays_writable_is_copied),
        cmocka_unit_test(memory_that_cannot_be_registered_is_copied),
        cmocka_unit_test(a_registration_that_does_not_return_is_given_up),
        cmocka_unit_test(a_trainer_that_never_releases_is_told),
        cmocka_unit_test(any_call_may_fail_and_nothing_leaks),
        cmocka_unit_test(a_device_may_be_lost_at_any_call),
    };

    return cmocka_run_group_tests(tests, find_stand_in, leave_device);
}
