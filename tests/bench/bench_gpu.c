/* bench_gpu.c - batches to a GPU, beside what the link gives: bench_gpu MODE SECONDS [GROUP]
 *
 * Reads, in mode auto, copy or pin, the stream of the environment (TUNDISH_SERVER, TUNDISH_STREAM)
 * to device 0, and prints one line of JSON: bytes of columns a second on the device, how long
 * `next` and `wait` take the trainer's thread, the bytes of a batch over the link, and, for as many
 * bytes as a batch of columns has, the peaks of copies from pinned memory and from other memory and
 * one core's memcpy into pinned memory. Where the kernel makes columns, also the bytes that it
 * reads and writes, by itself and again and again, a second, and those of copies on the device of
 * as many. With a second GROUP, which reads the same steps to the host, instead the time from there
 * to the device, and that of the bare copy.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "cuda/region.h"

enum { WARM_UP = 8, CALLS = 100, STEPS = 1 << 16 };
#define PEAK_NS INT64_C(200000000)
#define PAUSE_NS INT64_C(2000000) /* of a trainer's step, at least */

static const struct cuda_driver *driver;

/* When a step was there on the host. */
static _Atomic int64_t host_ns[STEPS];
static _Atomic bool is_over;

static void
fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_gpu: %s: %s\n", what, why);
    exit(1);
}

static void
must_work(cu_result result, const char *what)
{
    if (cuda_check(driver, result, what) != TUNDISH_OK)
        fail(what, tundish_cuda_last_error());
}

static tundish_reader *
open_reader(const char *group)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader;

    options.group = group;
    options.server_timeout_ns = INT64_C(120) * 1000000000;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail("open", tundish_last_error());
    return reader;
}

static cu_stream
open_stream(void)
{
    cu_context context;
    cu_device device;
    cu_stream stream;

    if (cuda_driver_open(&driver) != TUNDISH_OK)
        fail("driver", tundish_cuda_last_error());
    must_work(driver->device_get(&device, 0), "find the device");
    must_work(driver->context_retain(&context, device), "make a context");
    must_work(driver->context_push(context), "use a context");
    must_work(driver->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), "make a stream");
    return stream;
}

/* Bytes a second of copies from this memory, each of so many bytes. */
static double
copy_rate(cu_address to, const void *from, size_t bytes, cu_stream stream)
{
    int64_t begun_ns = tnd_clock_ns(), now_ns = begun_ns;
    uint64_t copied = 0;

    while (now_ns < begun_ns + PEAK_NS) {
        for (int i = 0; i < 4; i++, copied += bytes)
            must_work(driver->copy_to_device(to, from, bytes, stream), "copy");
        must_work(driver->stream_synchronize(stream), "synchronize");
        now_ns = tnd_clock_ns();
    }
    return (double)copied * 1e9 / (double)(now_ns - begun_ns);
}

static double
memcpy_rate(void *to, const void *from, size_t bytes)
{
    int64_t begun_ns = tnd_clock_ns(), now_ns = begun_ns;
    uint64_t copied = 0;

    while (now_ns < begun_ns + PEAK_NS) {
        memcpy(to, from, bytes);
        copied += bytes;
        now_ns = tnd_clock_ns();
    }
    return (double)copied * 1e9 / (double)(now_ns - begun_ns);
}

/* The time of one copy and of waiting for it. */
static double
copy_us(cu_address to, const void *from, size_t bytes, cu_stream stream)
{
    enum { TRIES = 20 };
    int64_t begun_ns = tnd_clock_ns();

    for (int i = 0; i < TRIES; i++) {
        must_work(driver->copy_to_device(to, from, bytes, stream), "copy");
        must_work(driver->stream_synchronize(stream), "synchronize");
    }
    return (double)(tnd_clock_ns() - begun_ns) / 1e3 / TRIES;
}

static void
print_peaks(size_t bytes, cu_stream stream)
{
    void *pinned, *pageable = malloc(bytes);
    cu_address device;

    if (pageable == NULL)
        fail("memory", "none left");
    memset(pageable, 1, bytes);
    must_work(driver->host_alloc(&pinned, bytes, CU_HOST_ALLOC_PORTABLE), "get pinned memory");
    must_work(driver->memory_alloc(&device, bytes), "get memory");
    printf(", \"memcpy_bytes_per_s\": %.0f", memcpy_rate(pinned, pageable, bytes));
    printf(", \"pinned_bytes_per_s\": %.0f", copy_rate(device, pinned, bytes, stream));
    printf(", \"pageable_bytes_per_s\": %.0f", copy_rate(device, pageable, bytes, stream));
    printf(", \"copy_us\": %.1f", copy_us(device, pinned, bytes, stream));
    driver->memory_free(device);
    driver->host_free(pinned);
    free(pageable);
}

/* What is put into the device's stream, again and again. */
struct work {
    struct device device;
    const struct region *region;
    cu_address from, to;
    size_t bytes;
};
typedef tundish_status put_call(const struct work *work);

static tundish_status
put_kernel(const struct work *work)
{
    return region_expand(&work->device, work->region);
}

static tundish_status
put_copy(const struct work *work)
{
    return cuda_check(
        driver, driver->copy_on_device(work->to, work->from, work->bytes, work->device.stream),
        "copy on the device");
}

/* Seconds on the device, by its own clock, of one among as many as take PEAK_NS. */
static double
device_seconds(put_call *put, const struct work *work)
{
    cu_stream stream = work->device.stream;
    int64_t begun_ns, passed_ns = 0;
    cu_event begun, ended;
    float passed_ms = 0;
    uint64_t count = 1;

    must_work(driver->event_create(&begun, CU_EVENT_DEFAULT), "make an event");
    must_work(driver->event_create(&ended, CU_EVENT_DEFAULT), "make an event");
    for (;; count *= 2) {
        begun_ns = tnd_clock_ns();
        must_work(driver->event_record(begun, stream), "record an event");
        for (uint64_t i = 0; i < count; i++)
            if (put(work) != TUNDISH_OK)
                fail("kernel", tundish_cuda_last_error());
        must_work(driver->event_record(ended, stream), "record an event");
        must_work(driver->event_synchronize(ended), "wait for an event");
        must_work(driver->event_elapsed(&passed_ms, begun, ended), "time events");
        passed_ns = tnd_clock_ns() - begun_ns;
        if (passed_ns >= PEAK_NS)
            break;
    }
    driver->event_destroy(begun);
    driver->event_destroy(ended);
    return (double)passed_ms / 1e3 / (double)count;
}

/* Of one launch: what it reads, and what it writes. */
static uint64_t
kernel_bytes(const struct pack *pack)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < pack->job_count; i++) {
        const struct expansion *job = &pack->jobs[i];
        uint64_t bits = job->is_packed ? job->bits : 8 * job->value_bytes;
        uint8_t made = job->to_dtype != 0 ? job->to_dtype : job->from_dtype;

        bytes += (job->count * bits + 7) / 8;
        bytes += job->count * tundish_dtype_bytes((tundish_dtype)made);
    }
    return bytes;
}

/* Beside a copy of half as many bytes, each of which is read and written. */
static void
print_kernel(struct work *work)
{
    uint64_t bytes = kernel_bytes(&work->region->pack);

    work->bytes = bytes / 2;
    must_work(driver->memory_alloc(&work->from, work->bytes), "get memory");
    must_work(driver->memory_alloc(&work->to, work->bytes), "get memory");
    printf(", \"kernel\": {\"bytes\": %" PRIu64 ", \"bytes_per_s\": %.0f", bytes,
           (double)bytes / device_seconds(put_kernel, work));
    printf(", \"copy_bytes_per_s\": %.0f}", (double)bytes / device_seconds(put_copy, work));
    driver->memory_free(work->from);
    driver->memory_free(work->to);
}

static void *
read_to_host(void *group)
{
    tundish_reader *reader = open_reader(group);
    const tundish_batch *batch;
    tundish_status status = TUNDISH_OK;

    while (!is_over && status != TUNDISH_END_OF_STREAM) {
        status = tundish_next(reader, INT64_C(100000000), &batch);
        if (status != TUNDISH_OK)
            continue;
        host_ns[batch->sequence % STEPS] = tnd_clock_ns();
        tundish_release(reader, batch);
    }
    tundish_close(reader);
    return NULL;
}

/* What was measured of one loop. */
struct figures {
    uint64_t batches, rows, bytes, batch_bytes, batch_rows; /* of a batch: the most rows */
    int64_t begun_ns, ended_ns;
    uint64_t late_count;
    int64_t late_ns;        /* from the host to the device */
    int64_t call_ns[CALLS]; /* of next and wait, of a batch that was there */
};

static uint64_t
rows_of(const tundish_cuda_batch *batch)
{
    const tundish_cuda_tensor *tensor;

    if (tundish_cuda_tensor_at(batch, 0, &tensor) != TUNDISH_OK)
        fail("rows", tundish_cuda_last_error());
    return tensor->rank > 0 ? (uint64_t)tensor->shape[0] : 1;
}

static void
count_columns(const tundish_cuda_batch *batch, struct figures *figures)
{
    uint64_t rows = rows_of(batch);

    figures->batch_bytes = 0;
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_cuda_tensor *tensor;

        tundish_cuda_tensor_at(batch, i, &tensor);
        figures->batch_bytes += tensor->data_bytes;
    }
    figures->rows += rows;
    figures->batch_rows = rows > figures->batch_rows ? rows : figures->batch_rows;
    figures->bytes += figures->batch_bytes;
    figures->batches++;
}

static tundish_status
step(tundish_cuda *cuda, cu_stream stream, bool is_watched, struct figures *figures)
{
    const tundish_cuda_batch *batch;
    tundish_status status = tundish_cuda_next(cuda, TUNDISH_FOREVER, &batch);

    if (status != TUNDISH_OK)
        return status;
    status = tundish_cuda_wait(cuda, batch, stream);
    if (is_watched) {
        must_work(driver->stream_synchronize(stream), "synchronize");
        int64_t there_ns = host_ns[batch->sequence % STEPS];

        if (there_ns != 0 && figures->batches >= WARM_UP) {
            figures->late_ns += tnd_clock_ns() - there_ns;
            figures->late_count++;
        }
    }
    count_columns(batch, figures);
    tundish_cuda_release(cuda, batch, stream);
    return status;
}

static void
run(tundish_cuda *cuda, cu_stream stream, int64_t seconds, bool is_watched, struct figures *figures)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK || status == TUNDISH_END) {
        status = step(cuda, stream, is_watched, figures);
        if (figures->batches == WARM_UP) {
            figures->begun_ns = tnd_clock_ns();
            figures->bytes = figures->rows = 0;
        }
        figures->ended_ns = tnd_clock_ns();
        if (figures->batches > WARM_UP &&
            figures->ended_ns > figures->begun_ns + seconds * 1000000000)
            break;
    }
    must_work(driver->stream_synchronize(stream), "synchronize");
    figures->ended_ns = tnd_clock_ns();
    if (status < TUNDISH_OK)
        fail("next", tundish_cuda_last_error());
    if (figures->batches <= WARM_UP)
        fail("next", "too few batches came");
}

/* As where a step takes longer than a batch does: the next one is there when it is asked for. */
static void
time_calls(tundish_cuda *cuda, cu_stream stream, struct figures *figures)
{
    int64_t pause_ns =
        PAUSE_NS + 3 * (figures->ended_ns - figures->begun_ns) / (int64_t)figures->batches;

    for (uint32_t count = 0; count < CALLS;) {
        const tundish_cuda_batch *batch;
        tundish_status status;
        int64_t begun_ns;

        nanosleep(&(struct timespec){ pause_ns / 1000000000, pause_ns % 1000000000 }, NULL);
        begun_ns = tnd_clock_ns();
        status = tundish_cuda_next(cuda, TUNDISH_FOREVER, &batch);
        if (status == TUNDISH_END)
            continue;
        if (status != TUNDISH_OK || tundish_cuda_wait(cuda, batch, stream) != TUNDISH_OK)
            fail("next", tundish_cuda_last_error());
        figures->call_ns[count++] = tnd_clock_ns() - begun_ns;
        tundish_cuda_release(cuda, batch, stream);
    }
}

static int
compare_times(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

    return (a > b) - (a < b);
}

static void
print_figures(struct figures *figures)
{
    double seconds = (double)(figures->ended_ns - figures->begun_ns) / 1e9;

    qsort(figures->call_ns, CALLS, sizeof *figures->call_ns, compare_times);
    printf("{\"batches\": %" PRIu64 ", \"batch_bytes\": %" PRIu64 ", \"bytes_per_s\": %.0f"
           ", \"rows_per_s\": %.0f, \"next_wait_us\": {\"p50\": %.2f, \"p99\": %.2f}",
           figures->batches, figures->batch_bytes, (double)figures->bytes / seconds,
           (double)figures->rows / seconds, (double)figures->call_ns[CALLS / 2] / 1e3,
           (double)figures->call_ns[CALLS - 1 - CALLS / 100] / 1e3);
    if (figures->late_count > 0)
        printf(", \"ready_us\": %.1f",
               (double)figures->late_ns / 1e3 / (double)figures->late_count);
}

/* On a batch that is no short one: its bytes over the link, and the kernel if it has work. */
static void
measure_batch(tundish_reader *reader, tundish_cuda *cuda, const struct figures *figures)
{
    const tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    const tundish_cuda_batch *batch = NULL;
    const tundish_spec *spec;
    struct work work = { 0 };
    tundish_status status;

    if (tundish_element_spec(reader, &spec) != TUNDISH_OK ||
        device_open(&options, spec, &work.device) != TUNDISH_OK)
        fail("device", tundish_cuda_last_error());
    do {
        tundish_cuda_release(cuda, batch, TUNDISH_CUDA_NO_STREAM);
        batch = NULL;
        status = tundish_cuda_next(cuda, TUNDISH_FOREVER, &batch);
    } while (status == TUNDISH_END ||
             (status == TUNDISH_OK && rows_of(batch) < figures->batch_rows));
    if (status != TUNDISH_OK || tundish_cuda_wait(cuda, batch, work.device.stream) != TUNDISH_OK)
        fail("next", tundish_cuda_last_error());
    work.region = (const struct region *)(const void *)batch; /* of which it is the first member */
    printf(", \"link_bytes\": %" PRIu64, work.region->pack.copied_bytes);
    if (work.region->pack.blocks > 0)
        print_kernel(&work);
    tundish_cuda_release(cuda, batch, work.device.stream);
    must_work(driver->stream_synchronize(work.device.stream), "synchronize");
    device_close(&work.device);
}

static tundish_cuda_mode
mode_of(const char *name)
{
    return strcmp(name, "copy") == 0  ? TUNDISH_CUDA_COPY
           : strcmp(name, "pin") == 0 ? TUNDISH_CUDA_PIN
                                      : TUNDISH_CUDA_AUTO;
}

int
main(int argc, char **argv)
{
    tundish_cuda_options options = TUNDISH_CUDA_OPTIONS_INIT;
    static struct figures figures;
    bool is_watched = argc > 3;
    tundish_reader *reader;
    tundish_cuda *cuda;
    pthread_t host;
    cu_stream stream;

    if (argc < 3)
        fail("usage", "bench_gpu MODE SECONDS [GROUP]");
    options.mode = mode_of(argv[1]);
    reader = open_reader(NULL);
    if (is_watched)
        pthread_create(&host, NULL, read_to_host, argv[3]);
    if (tundish_cuda_open(reader, &options, &cuda) != TUNDISH_OK)
        fail("device", tundish_cuda_last_error());
    stream = open_stream();
    run(cuda, stream, strtol(argv[2], NULL, 10), is_watched, &figures);
    is_over = true;
    if (is_watched)
        pthread_join(host, NULL);
    time_calls(cuda, stream, &figures);
    print_figures(&figures);
    if (!is_watched)
        measure_batch(reader, cuda, &figures);
    tundish_cuda_close(cuda);
    tundish_close(reader);
    print_peaks(figures.batch_bytes, stream);
    printf("}\n");
    return 0;
}
